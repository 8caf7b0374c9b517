import { expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MiB } from "../../src/core/units.ts";
import { rawDisks } from "../../src/disk/raw.ts";
import { newSandbox } from "../contracts/disks.contract.ts";

/** A file system of this size, its base of 40 MiB beside it. */
async function withRoom(
  sizeBytes: number,
  use: (directory: string, basePath: string) => Promise<void>,
): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), "room-"));
  const [mount, basePath] = [join(root, "mount"), join(root, "base.raw")];
  mkdirSync(mount);
  writeFileSync(basePath, crypto.getRandomValues(new Uint8Array(MiB)).toHex().repeat(20));
  run("mount", "-t", "tmpfs", "-o", `size=${sizeBytes}`, "room", mount);
  try {
    await use(join(mount, "disks"), basePath);
  } finally {
    run("umount", mount);
    rmSync(root, { recursive: true });
  }
}

function run(...argv: string[]): void {
  const { exitCode, stderr } = Bun.spawnSync(argv);
  if (exitCode !== 0) throw new Error(`${argv.join(" ")}: ${stderr}`);
}

test("a disk that does not fit is refused as full and leaves nothing behind", () =>
  withRoom(80 * MiB, async (directory, basePath) => {
    const disks = rawDisks(directory);
    const sandbox = newSandbox();
    const from = { basePath, sizeBytes: 64 * MiB };
    expect(disks.make(sandbox, from)).rejects.toMatchObject({ kind: "full", code: "disk_full" });
    expect(await disks.look(sandbox)).toBe("absent");
    expect(readdirSync(directory)).toEqual([]);
  }));

test("a disk may be larger than what is free, as long as its base fits", () =>
  withRoom(128 * MiB, async (directory, basePath) => {
    const disks = rawDisks(directory);
    const sandbox = newSandbox();
    await disks.make(sandbox, { basePath, sizeBytes: 1024 * MiB });
    expect(Bun.file(disks.pathOf(sandbox)).size).toBe(1024 * MiB);
  }));
