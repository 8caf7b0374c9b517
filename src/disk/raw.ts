/**
 * Disks as sparse raw files in one directory. What stands under a disk's name is complete and
 * durable; unfinished copies have other names and are cleared away.
 */
import {
  constants,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  type Stats,
  statfsSync,
  statSync,
} from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { assert } from "../core/assert.ts";
import { Fault } from "../core/fault.ts";
import { isId } from "../core/ids.ts";
import { MiB } from "../core/units.ts";
import { fsyncPath, ifThere, isErrno, noRoom } from "../system/files.ts";
import type { DiskOrigin, Disks } from "./disk.ts";

/** A file system with less than this free is full. */
const spareBytes = 64 * MiB;
const suffix = ".raw";
const unfinished = ".new";

/**
 * The directory is made where it is missing; what an earlier process left unfinished is removed, so
 * one process at a time has it.
 */
export function rawDisks(directory: string): RawDisks {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  for (const name of readdirSync(directory))
    if (name.endsWith(unfinished)) rmSync(join(directory, name));
  return new RawDisks(directory);
}

export class RawDisks implements Disks {
  readonly #directory: string;
  readonly #making = new Map<string, Promise<void>>();

  constructor(directory: string) {
    this.#directory = directory;
  }

  pathOf(sandbox: string): string {
    assert(isId("sandbox", sandbox), `"${sandbox}" is not a sandbox's id`);
    return join(this.#directory, `${sandbox}${suffix}`);
  }

  async look(sandbox: string): Promise<"absent" | "ready"> {
    return existsSync(this.pathOf(sandbox)) ? "ready" : "absent";
  }

  /** Makings of one disk share one attempt. */
  async make(sandbox: string, from: DiskOrigin): Promise<void> {
    const running = this.#making.get(sandbox);
    if (running) return running;
    const attempt = this.#make(sandbox, from).finally(() => this.#making.delete(sandbox));
    this.#making.set(sandbox, attempt);
    return attempt;
  }

  async #make(sandbox: string, { basePath, sizeBytes }: DiskOrigin): Promise<void> {
    const path = this.pathOf(sandbox);
    if (existsSync(path)) return;
    const base = ifThere(() => statSync(basePath));
    if (!base) throw new Fault("missing", `no base at ${basePath}`, { code: "base_missing" });
    const fresh = `${path}${unfinished}`;
    try {
      await this.#copy(basePath, fresh, base);
      await grow(fresh, Math.max(sizeBytes, base.size));
      renameSync(fresh, path);
      fsyncPath(this.#directory);
    } catch (cause) {
      rmSync(fresh, { force: true });
      if (isErrno(cause, ...noRoom)) throw this.#full(cause);
      throw cause;
    }
  }

  /** Shares the base's blocks where the file system can, and copies what is not a hole elsewhere. */
  async #copy(from: string, to: string, base: Stats): Promise<void> {
    rmSync(to, { force: true });
    if (isReflinked(from, to)) return;
    const neededBytes = base.blocks * 512;
    if (this.#freeBytes() < neededBytes + spareBytes) throw this.#full();
    const argv = ["cp", "--reflink=auto", "--sparse=always", "--", from, to];
    const cp = Bun.spawn(argv, { stdio: ["ignore", "ignore", "pipe"] });
    const words = (await new Response(cp.stderr).text()).trim();
    if ((await cp.exited) === 0) return;
    if (this.#freeBytes() < spareBytes) throw this.#full(words);
    throw new Fault("unavailable", `copying ${from} to a new disk failed: ${words}`, {
      code: "disk_copy_failed",
    });
  }

  /** Durable: a disk that was removed does not come back after a power cut. */
  async remove(sandbox: string): Promise<void> {
    rmSync(this.pathOf(sandbox), { force: true });
    fsyncPath(this.#directory);
  }

  async list(): Promise<string[]> {
    return readdirSync(this.#directory)
      .filter((name) => name.endsWith(suffix))
      .map((name) => name.slice(0, -suffix.length))
      .filter((name) => isId("sandbox", name));
  }

  #freeBytes(): number {
    const { bavail, bsize } = statfsSync(this.#directory);
    return bavail * bsize;
  }

  #full(cause?: unknown): Fault {
    return new Fault("full", `no room for another disk in ${this.#directory}`, {
      code: "disk_full",
      hint: "delete sandboxes that are no longer needed, or give the file system more room",
      cause,
    });
  }
}

/** ioctl_ficlone(2). */
function isReflinked(from: string, to: string): boolean {
  try {
    copyFileSync(from, to, constants.COPYFILE_FICLONE_FORCE | constants.COPYFILE_EXCL);
    return true;
  } catch (error) {
    rmSync(to, { force: true });
    if (isErrno(error, "ENOTSUP", "EOPNOTSUPP", "EXDEV", "EINVAL", "ENOSYS", "ENOTTY"))
      return false;
    throw error;
  }
}

/** Durable on return. Off the main thread: a whole image may have to reach the disk first. */
async function grow(path: string, sizeBytes: number): Promise<void> {
  const file = await open(path, "r+");
  try {
    await file.truncate(sizeBytes);
    await file.sync();
  } finally {
    await file.close();
  }
}
