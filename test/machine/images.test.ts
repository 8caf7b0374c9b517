import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { download } from "../../src/images/archive.ts";
import { bringBase, bringBoot, recipeOf } from "../../src/images/build.ts";
import { type Lock, readLock } from "../../src/images/lock.ts";
import { guestPrograms } from "../../src/images/programs.ts";
import { testImages } from "./images.ts";

const builder = { store: testImages(), say: () => {} };

test("the same lock gives the same base, byte for byte", async () => {
  const [before] = builder.store.baseManifests();
  const { manifest, isNew } = await bringBase(builder, recipeOf("slim"), true);
  expect(isNew).toBe(true);
  expect(manifest.digest).toBe(before?.digest as string);
  expect(readdirSync(join(builder.store.root, "bases"))).toHaveLength(1);
});

test("what is up to date is not built again", async () => {
  expect((await bringBase(builder, recipeOf("slim"))).isNew).toBe(false);
  expect((await bringBoot(builder, guestPrograms())).isNew).toBe(false);
});

test("a download that was broken off goes on, and one that was changed is refused", async () => {
  const { downloads, victim } = someDownload();
  const path = join(downloads, victim);
  const whole = readFileSync(path);
  rmSync(path);
  await Bun.write(join(downloads, "partial", victim.replace(".deb", "")), whole.subarray(0, 1000));
  await download(lockOf(), { ...builder, downloads, scratch: "", log: "/dev/null" });
  expect(existsSync(path)).toBe(true);
  expect(readFileSync(path).equals(whole)).toBe(true);
});

const lockOf = (): Lock =>
  readLock(builder.store.lockPathOf(recipeOf("slim").name)) ?? {
    recipe: "",
    lockedAtSeconds: 0,
    packages: [],
  };

function someDownload(): { downloads: string; victim: string } {
  const downloads = join(builder.store.root, "downloads");
  const [file = ""] = builder.store.baseManifests()[0]?.packages.map(({ sha256 }) => sha256) ?? [];
  return { downloads, victim: `${file}.deb` };
}
