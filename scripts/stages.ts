/** The stages of `check` and of the whole test run, as values; and how one is run. */
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";

export interface Stage {
  readonly name: string;
  readonly argv: readonly string[];
  /** Where its junit report appears; a stage without one counts as a single case. */
  readonly report?: string;
  readonly timeoutMs: number;
  /** What to type to run it alone. */
  readonly again: string;
}

export interface StageRun {
  readonly exitCode: number;
  readonly output: string;
  readonly seconds: number;
}

const bin = (name: string): string => join("node_modules", ".bin", name);
const minute = 60_000;

function tests(name: string, paths: readonly string[], timeoutMs: number): Stage {
  const report = join("reports", `${name}.xml`);
  const reporter = ["--reporter=junit", `--reporter-outfile=${report}`];
  const argv = [bin("bun"), "test", "--timeout", String(timeoutMs), ...reporter, ...paths];
  return { name, argv, report, timeoutMs, again: `bun test ${paths.join(" ")}` };
}

function tool(name: string, ...argv: string[]): Stage {
  return { name, argv, timeoutMs: 2 * minute, again: `bun run ${name}` };
}

export const checkStages: readonly Stage[] = [
  tool("tidy", bin("bun"), "scripts/tidy.ts"),
  tool("types", bin("tsc"), "--noEmit"),
  tool("format-and-lint", bin("biome"), "check", "--error-on-warnings", "--no-errors-on-unmatched"),
  tool("lint-promises", bin("oxlint"), "--type-aware", "--deny-warnings", "src", "scripts", "test"),
  tool("unused", bin("knip")),
  tests("unit", ["./src", "./test/tools", "./test/contracts"], 5 * minute),
  tests("api", ["./test/api"], 5 * minute),
  tests("simulation", ["./test/simulation"], 5 * minute),
];

export const machineStages: readonly Stage[] = [
  {
    name: "images",
    argv: [bin("bun"), "scripts/test-images.ts"],
    timeoutMs: 30 * minute,
    again: "bun scripts/test-images.ts",
  },
  tests("machine", ["./test/machine"], 30 * minute),
];

/** Runs a stage in a process group of its own, which its time limit ends as a whole. */
export async function runStage(stage: Stage, cwd = "."): Promise<StageRun> {
  if (stage.report) {
    mkdirSync(join(cwd, "reports"), { recursive: true });
    rmSync(join(cwd, stage.report), { force: true });
  }
  const began = performance.now();
  const child = Bun.spawn([...stage.argv], {
    cwd,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    detached: true,
  });
  const timer = setTimeout(() => endGroup(child.pid), stage.timeoutMs);
  const [stdout, stderr, exitCode] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  clearTimeout(timer);
  return { exitCode, output: stdout + stderr, seconds: (performance.now() - began) / 1000 };
}

function endGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch (error) {
    console.error(`a stage over its time limit was gone already: ${error}`);
  }
}
