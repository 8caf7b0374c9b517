/**
 * The locked packages as an archive of their own, so that mmdebstrap can take these and no others.
 */
import { linkSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathOf, type Workplace } from "./archive.ts";
import { sha256Of } from "./digests.ts";
import type { Lock, LockedPackage } from "./lock.ts";
import { run } from "./run.ts";

/** Returns its folder. Format: the Debian policy's Packages and Release files. */
export async function makeRepository(lock: Lock, suite: string, place: Workplace): Promise<string> {
  const root = join(place.scratch, "repository");
  const index = join(root, "dists", suite, "main", "binary-amd64");
  mkdirSync(index, { recursive: true });
  mkdirSync(join(root, "pool"), { recursive: true });
  const stanzas: string[] = [];
  for (const each of lock.packages) stanzas.push(await stanzaOf(each, root, place));
  const packages = join(index, "Packages");
  writeFileSync(packages, `${stanzas.join("\n")}\n`);
  const digest = `${await sha256Of(packages)} ${statSync(packages).size} main/binary-amd64/Packages`;
  writeFileSync(
    join(root, "dists", suite, "Release"),
    [
      ...[`Suite: ${suite}`, `Codename: ${suite}`, "Components: main", "Architectures: amd64"],
      ...[`Date: ${new Date(lock.lockedAtSeconds * 1000).toUTCString()}`, "SHA256:", ` ${digest}`],
      "",
    ].join("\n"),
  );
  return root;
}

async function stanzaOf(each: LockedPackage, root: string, place: Workplace): Promise<string> {
  const file = join("pool", `${each.sha256}.deb`);
  linkSync(pathOf(each, place), join(root, file));
  const control = await run(["dpkg-deb", "-f", join(root, file)], { log: place.log });
  return [
    new TextDecoder().decode(control).trimEnd(),
    `Filename: ${file}`,
    `Size: ${each.sizeBytes}`,
    `SHA256: ${each.sha256}`,
    "",
  ].join("\n");
}
