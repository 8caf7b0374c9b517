/** Files written so that a crash leaves the whole of them or nothing. Knows no formats. */
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

/** Also a directory: then its entries are durable. */
export function fsyncPath(path: string): void {
  const fd = openSync(path, "r");
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** Replaces the file; durable on return. One writer at a time. */
export function writeWhole(path: string, text: string): void {
  const fresh = `${path}.${process.pid}.new`;
  writeFileSync(fresh, text, { mode: 0o600 });
  fsyncPath(fresh);
  publish(fresh, path);
}

/** Puts a file or a folder, whose contents were fsynced, in its place; durable on return. */
export function publish(from: string, to: string): void {
  renameSync(from, to);
  fsyncPath(dirname(to));
}

/** Undefined where there is no such file. */
export function readIfThere(path: string): string | undefined {
  return ifThere(() => readFileSync(path, "utf8"));
}

/** What `read` returns, or undefined where what it reads is not there. */
export function ifThere<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (isErrno(error, "ENOENT", "ENOTDIR", "ESRCH")) return undefined;
    throw error;
  }
}

export function isErrno(error: unknown, ...codes: string[]): boolean {
  return error instanceof Error && "code" in error && codes.includes(String(error.code));
}

/** No room, on a file system or of a quota. */
export const noRoom: readonly string[] = ["ENOSPC", "EDQUOT", "EFBIG"];
