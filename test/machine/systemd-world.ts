/** Runs commands where systemd is PID 1: see systemd-world.sh. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

export const tree = resolve(import.meta.dir, "..", "..");
const report = join(tree, "reports", "systemd-world.log");

export interface World {
  /** Null: it was killed. */
  readonly status: number | null;
  /** What was said; where nothing could be run, why. */
  readonly said: string;
}

/** In a machine of its own as far as systemd can tell; without a command only whether it can be. */
export async function inSystemd(...command: string[]): Promise<World> {
  const scratch = mkdtempSync(join(tmpdir(), "systemd-"));
  mkdirSync(join(tree, "reports"), { recursive: true });
  rmSync(report, { force: true });
  const script = join(import.meta.dir, "systemd-world.sh");
  const child = Bun.spawn(
    ["unshare", "-pfmCuin", "--kill-child", "sh", script, scratch, tree, ...command],
    { stdio: ["ignore", "ignore", "pipe"] },
  );
  const words = await new Response(child.stderr).text();
  await child.exited;
  rmSync(scratch, { recursive: true });
  const said = existsSync(report) ? readFileSync(report, "utf8") : words.trim();
  return { status: child.exitCode, said };
}

/** Undefined: it can be tried here. */
export async function whyNoSystemd(): Promise<string | undefined> {
  if (!existsSync("/usr/lib/systemd/systemd")) return "systemd is not installed";
  if (process.getuid?.() !== 0) return "it needs root";
  const { status, said } = await inSystemd();
  return status === 0 ? undefined : said;
}
