/** Writing so that a crash leaves a whole thing or nothing: write, fsync, rename, fsync the folder. */
import {
  closeSync,
  createReadStream,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";

export function fsyncPath(path: string): void {
  const fd = openSync(path, "r");
  fsyncSync(fd);
  closeSync(fd);
}

/** Puts a file or a folder, whose contents were fsynced, in its place. */
export function publish(from: string, to: string): void {
  renameSync(from, to);
  fsyncPath(dirname(to));
}

export function writeWhole(path: string, text: string | Uint8Array): void {
  const fresh = `${path}.${process.pid}.new`;
  writeFileSync(fresh, text);
  fsyncPath(fresh);
  publish(fresh, path);
}

/** Hex. Reads the file in pieces. */
export async function sha256Of(path: string): Promise<string> {
  const hasher = new Bun.CryptoHasher("sha256");
  for await (const piece of createReadStream(path, { highWaterMark: 1024 ** 2 }))
    hasher.update(piece as Buffer);
  return hasher.digest("hex");
}

export function sha256(...texts: (string | Uint8Array)[]): string {
  const hasher = new Bun.CryptoHasher("sha256");
  for (const text of texts) {
    hasher.update(text);
    hasher.update("\0");
  }
  return hasher.digest("hex");
}

/** Undefined where there is no such file. */
export function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}
