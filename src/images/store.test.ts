import { expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BaseManifest, ImageStore } from "./store.ts";

const manifestOf = (digit: string, builtAtMs: number): BaseManifest => ({
  kind: "base",
  digest: `sha256:${digit.repeat(64)}`,
  name: "debian-13-slim",
  sizeBytes: 5,
  builtAtMs,
  inputs: digit,
  packages: [],
});

function opened(): ImageStore {
  return new ImageStore(mkdtempSync(join(tmpdir(), "images-")));
}

function built(store: ImageStore, content = "image"): string {
  const folder = join(store.scratch(), "base");
  mkdirSync(folder);
  writeFileSync(join(folder, "disk.img"), content);
  return folder;
}

test("bases are listed newest first, and only when they are whole", async () => {
  const store = opened();
  store.publishBase(built(store), manifestOf("a", 1));
  store.publishBase(built(store), manifestOf("b", 2));
  const half = built(store);
  expect((await store.bases()).map(({ builtAtMs }) => builtAtMs)).toEqual([2, 1]);
  expect(half).not.toBe("");
  truncateSync(store.imageOf(manifestOf("b", 2).digest), 3);
  expect((await store.bases()).map(({ builtAtMs }) => builtAtMs)).toEqual([1]);
  store.publishBase(built(store), manifestOf("b", 3));
  expect((await store.bases()).map(({ builtAtMs }) => builtAtMs)).toEqual([3, 1]);
});

test("a base that is there already is never written again", async () => {
  const store = opened();
  store.publishBase(built(store), manifestOf("a", 1));
  store.publishBase(built(store, "other"), manifestOf("a", 2));
  const [base] = await store.bases();
  expect(base?.builtAtMs).toBe(1);
  expect(await Bun.file(base?.path ?? "").text()).toBe("image");
});

test("a damaged manifest hides its base and no other, and a new build mends it", async () => {
  const store = opened();
  store.publishBase(built(store), manifestOf("a", 1));
  store.publishBase(built(store), manifestOf("b", 2));
  const path = join(store.root, "bases", "b".repeat(64), "manifest.json");
  for (const damage of ["", "{", "[]", '{"kind":"base"}']) {
    writeFileSync(path, damage);
    expect((await store.bases()).map(({ builtAtMs }) => builtAtMs)).toEqual([1]);
  }
  store.publishBase(built(store), manifestOf("b", 3));
  expect((await store.bases()).map(({ builtAtMs }) => builtAtMs)).toEqual([3, 1]);
});

test("without boot files it is said how to get them", async () => {
  expect(opened().bootFiles()).rejects.toMatchObject({
    code: "boot_files_missing",
    hint: "holdfast images build",
  });
});

test("old boot files go, those in use stay", async () => {
  const store = opened();
  for (const [at, digit] of ["1", "2", "3", "4", "5"].entries()) {
    const folder = join(store.scratch(), "boot");
    mkdirSync(folder);
    store.publishBoot(folder, {
      kind: "boot",
      digest: `sha256:${digit.repeat(64)}`,
      kernelVersion: "6.12",
      builtAtMs: at,
      inputs: digit,
    });
  }
  expect(store.bootManifests()).toHaveLength(3);
  expect((await store.bootFiles()).kernelPath).toContain("5".repeat(64));
});
