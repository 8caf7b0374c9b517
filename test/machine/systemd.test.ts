import { expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const tree = resolve(import.meta.dir, "..", "..");
const report = join(tree, "reports", "systemd-world.log");

/** In a machine of its own as far as systemd can tell; undefined status: it was killed. */
async function inSystemd(...command: string[]): Promise<{ status: number | null; words: string }> {
  const scratch = mkdtempSync(join(tmpdir(), "systemd-"));
  const script = join(import.meta.dir, "systemd-world.sh");
  const child = Bun.spawn(
    ["unshare", "-pfmCuin", "--kill-child", "sh", script, scratch, tree, ...command],
    { stdio: ["ignore", "ignore", "pipe"] },
  );
  const words = await new Response(child.stderr).text();
  await child.exited;
  rmSync(scratch, { recursive: true });
  return { status: child.exitCode, words };
}

const isThere = existsSync("/usr/lib/systemd/systemd") && process.getuid?.() === 0;
const able = isThere ? await inSystemd() : { status: 1, words: "no root, or no systemd" };
const suites = ["test/machine/qemu.test.ts", "test/machine/qemu-life.test.ts"];

if (able.status !== 0) test.skip(`systemd cannot be tried here: ${able.words.trim()}`, () => {});
else
  test("where systemd runs, each VM is a unit of it, and all that holds for VMs holds", async () => {
    mkdirSync(join(tree, "reports"), { recursive: true });
    rmSync(report, { force: true });
    const bun = [process.execPath, "test", "--timeout", "120000"];
    const { words } = await inSystemd(...bun, ...suites.map((each) => `./${each}`));
    const said = existsSync(report) ? readFileSync(report, "utf8") : words;
    expect(said).toMatch(/^ [1-9]\d* pass$/m);
    expect(said).toMatch(/^ 0 fail$/m);
    expect(said).toContain("holdfast-vm@");
  });
