/**
 * Asks a distribution's archive by apt: with state of its own, so that the machine's is neither read
 * nor changed. apt checks signatures and hashes, goes on with half a download, and knows the
 * machine's proxies.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Fault } from "../core/fault.ts";
import { fsyncPath, publish } from "../system/files.ts";
import { sha256Of } from "./digests.ts";
import { type Lock, type LockedPackage, parseUris } from "./lock.ts";
import type { Archive, Recipe } from "./recipe.ts";
import { type Running, run } from "./run.ts";

export interface Workplace {
  /** Kept: downloads, by hash. */
  readonly downloads: string;
  /** Removed afterwards. */
  readonly scratch: string;
  readonly log: string;
  readonly say: (progress: string) => void;
}

type Sources = Pick<Recipe, "name" | "archives" | "packages">;

const helper = "/usr/lib/apt/apt-helper";
const atOnce = 25;

/**
 * The packages that apt would install on an empty system, with all they depend on.
 * @throws Fault `unavailable` the archive does not answer, or is not signed as it should be.
 */
export async function resolve(sources: Sources, place: Workplace): Promise<Lock> {
  const root = join(place.scratch, "apt");
  const options = prepareApt(root, sources.archives);
  const running: Running = { log: place.log };
  place.say(`asking ${new Set(sources.archives.map(mirrorOf)).values().next().value}`);
  await run(["apt-get", ...options, "update", "--error-on=any"], running);
  const wanted = ["--print-uris", "-qq", "install", ...sources.packages];
  const text = await run(["apt-get", ...options, ...wanted], running);
  return {
    recipe: sources.name,
    lockedAtSeconds: Math.floor(Date.now() / 1000),
    packages: parseUris(new TextDecoder().decode(text)),
  };
}

function prepareApt(root: string, archives: readonly Archive[]): string[] {
  for (const each of ["state/lists/partial", "cache/archives/partial", "etc", "log"])
    mkdirSync(join(root, each), { recursive: true });
  writeFileSync(join(root, "status"), "");
  writeFileSync(join(root, "etc/sources.list"), `${sourceLines(archives, mirrorOf).join("\n")}\n`);
  const settings = {
    "Dir::State": join(root, "state"),
    "Dir::State::status": join(root, "status"),
    "Dir::Cache": join(root, "cache"),
    "Dir::Etc::sourcelist": join(root, "etc/sources.list"),
    "Dir::Etc::sourceparts": "/dev/null",
    "Dir::Etc::preferencesparts": "/dev/null",
    "Dir::Log": join(root, "log"),
    "APT::Architecture": "amd64",
    "APT::Architectures": "amd64",
    "APT::Install-Recommends": "false",
    "APT::Sandbox::User": "root",
    "Acquire::Languages": "none",
    "Acquire::ForceHash": "SHA256",
    "Acquire::Retries": "3",
    "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
  };
  return Object.entries(settings).flatMap(([name, value]) => ["-o", `${name}=${value}`]);
}

/** One-line sources (sources.list(5)). */
export function sourceLines(
  archives: readonly Archive[],
  uriOf: (archive: Archive) => string,
): string[] {
  return archives.flatMap((archive) =>
    archive.suites.map(
      (suite) =>
        `deb [signed-by=${archive.keyring}] ${uriOf(archive)} ${suite} ${archive.component}`,
    ),
  );
}

/** The machine's own mirror of this archive, known by the last part of its address. */
export function mirrorOf({ uri }: Archive): string {
  const tail = uri.slice(uri.lastIndexOf("/"));
  const own = machineUris().find((each) => each.endsWith(tail));
  return own ?? uri;
}

function machineUris(): string[] {
  const folder = "/etc/apt/sources.list.d";
  const parts = existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : [];
  const texts = ["/etc/apt/sources.list", ...parts]
    .filter((path) => existsSync(path))
    .map((path) => readFileSync(path, "utf8").replaceAll(/^\s*#.*$/gm, ""));
  const uris = texts.flatMap((text) => [...text.matchAll(/https?:\/\/[^\s\]]+/g)]);
  return uris.map(([uri]) => uri.replace(/\/+$/, ""));
}

/** Every package of the lock as a file named by its hash. May be called twice: what is there stays. */
export async function download(lock: Lock, place: Workplace): Promise<void> {
  mkdirSync(join(place.downloads, "partial"), { recursive: true });
  const missing = lock.packages.filter((each) => !existsSync(pathOf(each, place)));
  let done = 0;
  for (let at = 0; at < missing.length; at += atOnce) {
    const some = missing.slice(at, at + atOnce);
    const megabytes = missing.slice(at).reduce((sum, each) => sum + each.sizeBytes, 0) / 1e6;
    place.say(`downloading: ${done}/${missing.length} packages, ${megabytes.toFixed(0)} MB to go`);
    await fetchSome(some, place);
    for (const each of some) await keep(each, place);
    done += some.length;
  }
}

export const pathOf = ({ sha256 }: LockedPackage, { downloads }: Pick<Workplace, "downloads">) =>
  join(downloads, `${sha256}.deb`);

const partialOf = ({ sha256 }: LockedPackage, { downloads }: Workplace): string =>
  join(downloads, "partial", sha256);

async function fetchSome(some: readonly LockedPackage[], place: Workplace): Promise<void> {
  const words = some.flatMap((each) => [each.uri, partialOf(each, place), `SHA256:${each.sha256}`]);
  const options = ["-o", "APT::Sandbox::User=root", "-o", "Acquire::Retries=3"];
  try {
    await run([helper, ...options, "download-file", ...words], { log: place.log });
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    throw new Fault("unavailable", "a locked package could not be downloaded", {
      code: "package_gone",
      hint: `run it again to go on; where the archive has newer versions: holdfast images lock (${error.hint})`,
      cause: error,
    });
  }
}

/** Looked at once more, because the file's name vouches for it from now on. */
async function keep(each: LockedPackage, place: Workplace): Promise<void> {
  const partial = partialOf(each, place);
  if ((await sha256Of(partial)) !== each.sha256) {
    rmSync(partial);
    throw new Fault("unavailable", `${each.file} came with the wrong hash`, {
      hint: "run it again; a proxy may have changed it",
    });
  }
  fsyncPath(partial);
  publish(partial, pathOf(each, place));
}
