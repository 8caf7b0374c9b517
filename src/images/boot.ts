/**
 * Builds what every VM boots with: the kernel, an initramfs, and the tools disk with our guest part.
 * None of it is ever on a sandbox's own disk, so that all of it is replaced with Holdfast itself.
 */
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { Fault } from "../core/fault.ts";
import { fsyncPath } from "../system/files.ts";
import { download, pathOf, type Workplace } from "./archive.ts";
import { compressedKernel } from "./bzimage.ts";
import { type CpioEntry, cpio, file, folder, link } from "./cpio.ts";
import { sha256, sha256Of } from "./digests.ts";
import growUnit from "./guest/holdfast-grow.service" with { type: "text" };
import guestUnit from "./guest/holdfast-guest.service" with { type: "text" };
import init from "./guest/init.sh" with { type: "text" };
import masks from "./guest/masks.txt" with { type: "text" };
import trimmed from "./guest/trimmed-units.txt" with { type: "text" };
import type { Lock } from "./lock.ts";
import { moduleName, modulesInOrder, wantedModules } from "./modules.ts";
import { run } from "./run.ts";

/** The programs that go into the guest. */
export interface GuestPrograms {
  /** This binary: `holdfast guest` is a command of it. */
  readonly holdfastPath: string;
  readonly runnerPath: string;
}

/** In its folder: vmlinux, initramfs, tools.erofs. */
export interface BuiltBoot {
  readonly folder: string;
  readonly digest: string;
  /** Of the kernel, as uname -r. */
  readonly kernelVersion: string;
}

/** Raised when this file builds other bytes from the same inputs. */
const builderVersion = 1;
const toolsUuid = "7f0d0a5e-0b1d-4c5a-9a55-746f6f6c7300";

export async function bootInputsOf(lock: Lock, programs: GuestPrograms): Promise<string> {
  const texts = [init, guestUnit, growUnit, masks, trimmed];
  const digests = [await sha256Of(programs.holdfastPath), await sha256Of(programs.runnerPath)];
  return sha256(JSON.stringify([lock.packages, builderVersion]), ...texts, ...digests);
}

/** Leaves the files in a folder of the scratch directory, fsynced. */
export async function buildBoot(
  lock: Lock,
  programs: GuestPrograms,
  place: Workplace,
): Promise<BuiltBoot> {
  await download(lock, place);
  place.say("boot files: kernel, initramfs, tools disk");
  const tree = join(place.scratch, "boot-packages");
  for (const each of lock.packages)
    await run(["dpkg-deb", "-x", pathOf(each, place), tree], { log: place.log });
  const target = join(place.scratch, "boot");
  mkdirSync(target);
  const [image] = readdirSync(join(tree, "boot")).filter((name) => name.startsWith("vmlinuz-"));
  if (image === undefined) throw new Fault("broken", "the kernel's package holds no kernel");
  await unpackKernel(join(tree, "boot", image), join(target, "vmlinux"), place);
  const kernelVersion = image.slice("vmlinuz-".length);
  writeFileSync(join(target, "initramfs"), await makeInitramfs(tree, kernelVersion, place));
  await makeToolsDisk(programs, join(target, "tools.erofs"), place);
  const digests: string[] = [];
  for (const name of ["vmlinux", "initramfs", "tools.erofs"]) {
    fsyncPath(join(target, name));
    digests.push(await sha256Of(join(target, name)));
  }
  fsyncPath(target);
  return { folder: target, digest: `sha256:${sha256(...digests)}`, kernelVersion };
}

async function unpackKernel(image: string, target: string, place: Workplace): Promise<void> {
  const { format, stream } = compressedKernel(readFileSync(image));
  const packed = join(place.scratch, `kernel.${format}`);
  writeFileSync(packed, stream);
  const unpack = format === "xz" ? ["xz", "-dc"] : ["zstd", "-dcq", "--long=31"];
  writeFileSync(target, await run([...unpack, packed], { log: place.log }));
}

async function makeInitramfs(tree: string, version: string, place: Workplace): Promise<Uint8Array> {
  // depmod looks in /lib, which newer packages no longer have.
  if (!existsSync(join(tree, "lib"))) symlinkSync("usr/lib", join(tree, "lib"));
  await run(["depmod", "-b", tree, version], { log: place.log });
  const root = join(tree, "lib/modules", version);
  const paths = modulesInOrder(readFileSync(join(root, "modules.dep"), "utf8"), wantedModules);
  const modules: { name: string; content: Uint8Array }[] = [];
  for (const path of paths)
    modules.push({
      name: `${moduleName(path)}.ko`,
      content: await unpackModule(join(root, path), place),
    });
  const busybox = readFileSync(join(tree, "usr/bin/busybox"));
  return cpio([
    ...["bin", "dev", "proc", "sys", "disk", "modules", "masks"].map(folder),
    file("bin/busybox", busybox, 0o755),
    link("bin/sh", "busybox"),
    file("init", init, 0o755),
    file("modules/order", `${modules.map(({ name }) => name).join("\n")}\n`),
    ...modules.map(({ name, content }) => file(`modules/${name}`, content)),
    ...["units", "units/multi-user.target.wants", "units/sysinit.target.wants"].map(folder),
    file("units/holdfast-guest.service", guestUnit),
    file("units/holdfast-grow.service", growUnit),
    link("units/multi-user.target.wants/holdfast-guest.service", "../holdfast-guest.service"),
    ...maskTree("masks/always", masks),
    ...maskTree("masks/trimmed", trimmed),
  ]);
}

/** As systemd.unit(5) and systemd.generator(7) want what shall not run. */
function maskTree(root: string, names: string): CpioEntry[] {
  const folders = [root, `${root}/system`, `${root}/system-generators`].map(folder);
  const masked = names.split("\n").filter((name) => name !== "" && !name.startsWith("#"));
  const links = masked.map((name) => {
    const under = name.endsWith("-generator") ? "system-generators" : "system";
    return link(`${root}/${under}/${name}`, "/dev/null");
  });
  return [...folders, ...links];
}

async function unpackModule(path: string, place: Workplace): Promise<Uint8Array> {
  if (path.endsWith(".ko")) return readFileSync(path);
  return run([path.endsWith(".zst") ? "zstd" : "xz", "-dc", path], { log: place.log });
}

async function makeToolsDisk(
  { holdfastPath, runnerPath }: GuestPrograms,
  target: string,
  place: Workplace,
): Promise<void> {
  const tree = join(place.scratch, "tools");
  mkdirSync(join(tree, "bin"), { recursive: true });
  for (const [from, name] of [
    [holdfastPath, "holdfast"],
    [runnerPath, "holdfast-run"],
  ] as const)
    await copyProgram(from, join(tree, "bin", name));
  const fixed = ["-T", "0", "-U", toolsUuid, "--all-root"];
  await run(["mkfs.erofs", "--quiet", ...fixed, target, tree], { log: place.log });
}

/** The runner is built into our binary, where only Bun can read it. */
async function copyProgram(from: string, to: string): Promise<void> {
  if (from.startsWith("/$bunfs/")) writeFileSync(to, await Bun.file(from).bytes());
  else copyFileSync(from, to);
  chmodSync(to, 0o755);
}
