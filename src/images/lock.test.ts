import { expect, test } from "bun:test";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { nameOf, parseUris, readLock, writeLock } from "./lock.ts";

const digest = "a".repeat(64);
const line = (file: string, hash = `SHA256:${digest}`): string =>
  `'http://archive.example/pool/${file}' ${file} 1234 ${hash}`;

test("apt's list is read, in an order of our own", () => {
  const packages = parseUris(`noise\n${line("b_1%3a2_amd64.deb")}\n${line("a_1_all.deb")}\n`);
  expect(packages.map(nameOf)).toEqual(["a", "b"]);
  expect(packages[0]).toMatchObject({ sizeBytes: 1234, sha256: digest });
});

test("a package without a good hash, or with a path for a name, is refused", () => {
  expect(() => parseUris(line("a_1_all.deb", "MD5Sum:abc"))).toThrow("do not understand");
  expect(() => parseUris(line("../a_1_all.deb"))).toThrow("do not understand");
});

test("a lock is read as it was written, and anything else is refused", () => {
  const path = join(mkdtempSync(join(tmpdir(), "lock-")), "slim.json");
  expect(readLock(path)).toBeUndefined();
  const lock = { recipe: "slim", lockedAtSeconds: 1, packages: parseUris(line("a_1_all.deb")) };
  writeLock(path, lock);
  expect(readLock(path)).toEqual(lock);
  writeFileSync(path, "{");
  expect(() => readLock(path)).toThrow("is not a lock");
});
