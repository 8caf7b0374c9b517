/**
 * Builds a base: locked packages → tree → ext4 image. The same recipe, lock and tools give the same
 * bytes, on any machine and on any day.
 */
import { mkdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fsyncPath } from "../system/files.ts";
import { download, sourceLines, type Workplace } from "./archive.ts";
import { sha256, sha256Of } from "./digests.ts";
import customize from "./guest/customize.sh" with { type: "text" };
import { type Lock, nameOf } from "./lock.ts";
import type { Recipe } from "./recipe.ts";
import { makeRepository } from "./repository.ts";
import { run } from "./run.ts";

/** Every disk begins with these; a file system's identity means nothing inside its own VM. */
const fileSystemUuid = "7f0d0a5e-0b1d-4c5a-9a55-686f6c646661";
const hashSeed = "686f6c64-6661-4374-8000-000000000001";
/** Raised when this file builds other bytes from the same inputs. */
const builderVersion = 2;

export interface BuiltBase {
  readonly folder: string;
  readonly digest: string;
  readonly sizeBytes: number;
}

/** What decides the bytes. Equal inputs: the base need not be built again. */
export async function inputsOf(recipe: Recipe, lock: Lock, log: string): Promise<string> {
  const versions = await Promise.all([
    run(["mmdebstrap", "--version"], { log }),
    run(["dpkg-query", "-W", "e2fsprogs"], { log }),
  ]);
  const { packages, lockedAtSeconds } = lock;
  const parts = [recipe, packages, lockedAtSeconds, builderVersion].map((part) =>
    JSON.stringify(part),
  );
  return sha256(...parts, customize, ...versions);
}

/** Leaves the image in a folder of the scratch directory, fsynced. */
export async function buildBase(recipe: Recipe, lock: Lock, place: Workplace): Promise<BuiltBase> {
  await download(lock, place);
  const epoch = { SOURCE_DATE_EPOCH: String(lock.lockedAtSeconds) };
  place.say(`${recipe.name}: unpacking ${lock.packages.length} packages (1 to 5 minutes)`);
  const tree = await makeTree(recipe, lock, place);
  place.say(`${recipe.name}: making the file system`);
  const folder = join(place.scratch, "base");
  mkdirSync(folder);
  const image = join(folder, "disk.img");
  const inodes = ["-N", String(Math.floor(recipe.sizeBytes / 16_384))];
  const fixed = ["-U", fileSystemUuid, "-E", `hash_seed=${hashSeed},${lazyNothing}`];
  const size = `${recipe.sizeBytes / 1024}k`;
  await run(
    ["mke2fs", "-q", "-t", "ext4", "-b", "4096", "-L", "root", "-m", "1", "-O", features].concat([
      ...inodes,
      ...fixed,
      "-d",
      tree,
      image,
      size,
    ]),
    { log: place.log, env: { ...epoch, E2FSPROGS_FAKE_TIME: String(lock.lockedAtSeconds) } },
  );
  rmSync(tree, { recursive: true });
  await forgetTimes(image, lock, place);
  await run(["e2fsck", "-fn", image], { log: place.log });
  fsyncPath(image);
  fsyncPath(folder);
  return { folder, digest: `sha256:${await sha256Of(image)}`, sizeBytes: statSync(image).size };
}

/** Nothing is left to be done in the background of a first boot, where a save would see it. */
const lazyNothing = "lazy_itable_init=0,lazy_journal_init=0,nodiscard,root_owner=0:0";
/** Written out, so that the machine's mke2fs.conf decides nothing; every kernel since 5.10 has them. */
const features = [
  ...["has_journal", "ext_attr", "resize_inode", "dir_index", "filetype", "extent", "64bit"],
  ...["flex_bg", "sparse_super", "large_file", "huge_file", "dir_nlink", "extra_isize"],
  ...["metadata_csum", "^orphan_file", "^metadata_csum_seed"],
].join(",");

/** mke2fs copies when files were last read and changed, which is when this build unpacked them. */
async function forgetTimes(image: string, lock: Lock, place: Workplace): Promise<void> {
  const log = place.log;
  const header = new TextDecoder().decode(await run(["dumpe2fs", "-h", image], { log }));
  const numberOf = (label: string): number =>
    Number(new RegExp(`^${label}: +(\\d+)$`, "m").exec(header)?.[1]);
  const used = numberOf("Inode count") - numberOf("Free inodes");
  // Inodes are taken in order: the root is 2, and all others follow from 11 on.
  const inodes = [2, ...Array.from({ length: used - 10 }, (_, at) => 11 + at)];
  const fields = [
    ...["atime", "ctime"].map((field) => `${field} @${lock.lockedAtSeconds}`),
    ...["atime_extra", "ctime_extra", "mtime_extra"].map((field) => `${field} 0`),
  ];
  const changes = inodes.flatMap((inode) => fields.map((each) => `sif <${inode}> ${each}`));
  const script = join(place.scratch, "times");
  writeFileSync(script, `${changes.join("\n")}\n`);
  const env = { E2FSPROGS_FAKE_TIME: String(lock.lockedAtSeconds) };
  await run(["debugfs", "-w", "-f", script, image], { log, env });
}

async function makeTree(recipe: Recipe, lock: Lock, place: Workplace): Promise<string> {
  const repository = await makeRepository(lock, recipe.suite, place);
  const [hook, archive, tree] = ["customize.sh", "tree.tar", "tree"].map((name) =>
    join(place.scratch, name),
  ) as [string, string, string];
  writeFileSync(hook, customize, { mode: 0o755 });
  const names = lock.packages.map(nameOf).join(",");
  await run(
    [
      ...["mmdebstrap", "--quiet", "--mode=root", "--variant=custom", "--architectures=amd64"],
      ...["--format=tar", `--include=${names}`, `--customize-hook=${hook}`],
      ...["--aptopt=Apt::Install-Recommends false", "--aptopt=APT::Sandbox::User root"],
      ...["--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/doc/*"],
      "--dpkgopt=path-include=/usr/share/doc/*/copyright",
      ...["--dpkgopt=path-exclude=/usr/share/locale/*", "--dpkgopt=path-exclude=/usr/share/info/*"],
      ...[recipe.suite, archive, `deb [trusted=yes] copy://${repository} ${recipe.suite} main`],
    ],
    {
      log: place.log,
      env: {
        SOURCE_DATE_EPOCH: String(lock.lockedAtSeconds),
        PYTHONDONTWRITEBYTECODE: "1",
        HOLDFAST_SOURCES: sourceLines(recipe.archives, ({ uri }) => uri).join("\n"),
        TMPDIR: place.scratch,
      },
    },
  );
  mkdirSync(tree);
  const keep = ["--numeric-owner", "--xattrs", "--xattrs-include=*", "--same-permissions"];
  await run(["tar", "-x", ...keep, "-f", archive, "-C", tree], { log: place.log });
  rmSync(archive);
  rmSync(repository, { recursive: true });
  return tree;
}
