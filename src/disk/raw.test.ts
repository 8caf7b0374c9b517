import { expect, test } from "bun:test";
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { disksContract, newSandbox } from "../../test/contracts/disks.contract.ts";
import { MiB } from "../core/units.ts";
import { rawDisks } from "./raw.ts";

interface Place {
  root: string;
  directory: string;
  basePath: string;
}

/** A base of 8 MiB of which only the first and the last block are there. */
function makePlace(): Place {
  const root = mkdtempSync(join(tmpdir(), "disks-"));
  const basePath = join(root, "base.raw");
  writeFileSync(basePath, "the beginning");
  truncateSync(basePath, 8 * MiB - 4);
  writeFileSync(basePath, "end\n", { flag: "a" });
  return { root, directory: join(root, "disks"), basePath };
}

async function withPlace(use: (place: Place) => Promise<void>): Promise<void> {
  const place = makePlace();
  await use(place);
  rmSync(place.root, { recursive: true });
}

disksContract("raw disks", async () => {
  const { root, directory, basePath } = makePlace();
  return {
    disks: rawDisks(directory),
    base: { basePath, sizeBytes: 16 * MiB },
    reopen: async () => rawDisks(directory),
    end: async () => rmSync(root, { recursive: true }),
  };
});

test("a disk has the base's bytes, then nothing up to its size, and takes little room", () =>
  withPlace(async ({ directory, basePath }) => {
    const disks = rawDisks(directory);
    const sandbox = newSandbox();
    await disks.make(sandbox, { basePath, sizeBytes: 32 * MiB });
    const bytes = readFileSync(disks.pathOf(sandbox));
    expect(bytes.length).toBe(32 * MiB);
    expect(bytes.subarray(0, 8 * MiB).equals(readFileSync(basePath))).toBe(true);
    expect(bytes.subarray(8 * MiB).every((byte) => byte === 0)).toBe(true);
    expect(statSync(disks.pathOf(sandbox)).blocks * 512).toBeLessThan(MiB);
  }));

test("a disk is never smaller than its base", () =>
  withPlace(async ({ directory, basePath }) => {
    const disks = rawDisks(directory);
    const sandbox = newSandbox();
    await disks.make(sandbox, { basePath, sizeBytes: MiB });
    expect(statSync(disks.pathOf(sandbox)).size).toBe(8 * MiB);
  }));

test("what is on a disk outlives a second making", () =>
  withPlace(async ({ directory, basePath }) => {
    const disks = rawDisks(directory);
    const sandbox = newSandbox();
    await disks.make(sandbox, { basePath, sizeBytes: 8 * MiB });
    writeFileSync(disks.pathOf(sandbox), "work");
    await rawDisks(directory).make(sandbox, { basePath, sizeBytes: 8 * MiB });
    expect(readFileSync(disks.pathOf(sandbox), "utf8")).toBe("work");
  }));

test("an unfinished copy is no disk, and is cleared away by the next process", () =>
  withPlace(async ({ directory, basePath }) => {
    mkdirSync(directory);
    const sandbox = newSandbox();
    const left = join(directory, `${sandbox}.raw.new`);
    writeFileSync(left, "half");
    const disks = rawDisks(directory);
    expect(await Bun.file(left).exists()).toBe(false);
    expect(await disks.look(sandbox)).toBe("absent");
    await disks.make(sandbox, { basePath, sizeBytes: 8 * MiB });
    expect(await disks.list()).toEqual([sandbox]);
  }));

test("no name leads out of the directory", () =>
  withPlace(async ({ directory }) => {
    const disks = rawDisks(directory);
    for (const name of ["../base", "sb_../../x", "", "sb_1", "SB_000000000000000000000000aa"])
      expect(() => disks.pathOf(name)).toThrow("is not a sandbox's id");
  }));
