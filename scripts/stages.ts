/**
 * The stages of `check` and of the whole test run, as values. A stage without test files on disk is
 * left out; a test file that no stage runs turns the whole run red.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";

export interface Stage {
  readonly name: string;
  readonly argv: readonly string[];
  /** Where its junit report appears; a stage without one counts as a single case. */
  readonly report?: string;
  /** Folders whose test files it runs. */
  readonly folders?: readonly string[];
  /** The whole stage; past it, its process group is killed. */
  readonly timeoutMs: number;
  /** What to type to run it alone. */
  readonly again: string;
  /** Its output is shown while it runs. */
  readonly isShown?: boolean;
}

const minuteMs = 60_000;
const bin = (name: string): string => join("node_modules", ".bin", name);

const incremental = ["--noEmit", "--incremental", "--tsBuildInfoFile", ".cache/types.json"];
const checkLimits = { stageMs: 5 * minuteMs, testMs: minuteMs };
const machineLimits = { stageMs: 40 * minuteMs, testMs: 10 * minuteMs };

/** In the order in which they begin: what fails most, and what takes longest, first. */
export const checkStages: readonly Stage[] = [
  tool("tidy", "scripts/tidy.ts"),
  tool("types", "tsc", ...incremental),
  tests("simulation", ["test/simulation"], checkLimits),
  tool("format-and-lint", "biome", "check", "--error-on-warnings", "--no-errors-on-unmatched"),
  tool("lint-promises", "oxlint", "--type-aware", "--deny-warnings", "src", "scripts", "test"),
  tool("unused", "knip"),
  tests("unit", ["src", "test/tools", "test/contracts"], checkLimits),
  tests("api", ["test/api"], checkLimits),
];

/** What takes minutes, needs root, VMs or a browser; one after the other. */
export const machineStages: readonly Stage[] = [
  {
    name: "mutants",
    argv: [bin("bun"), "scripts/mutate.ts"],
    timeoutMs: 20 * minuteMs,
    again: "bun run mutate",
    isShown: true,
  },
  {
    name: "images",
    argv: [bin("bun"), "scripts/test-images.ts"],
    timeoutMs: 30 * minuteMs,
    again: "bun scripts/test-images.ts",
    isShown: true,
  },
  { ...tests("machine", ["test/machine"], machineLimits), isShown: true },
  tests("browser", ["test/browser"], machineLimits),
];

function tests(
  name: string,
  folders: readonly string[],
  { stageMs, testMs }: { stageMs: number; testMs: number },
): Stage {
  const report = join("reports", `${name}.xml`);
  const paths = folders.map((folder) => `./${folder}/`);
  const reporter = ["--reporter=junit", `--reporter-outfile=${report}`];
  const argv = [bin("bun"), "test", "--timeout", String(testMs), ...reporter, ...paths];
  return { name, argv, report, folders, timeoutMs: stageMs, again: `scripts/test ${name}` };
}

/** Runs under Bun, whatever Node.js the machine has. */
function tool(name: string, ...words: string[]): Stage {
  const argv = [bin("bun"), "--bun", "run", ...words];
  return { name, argv, timeoutMs: 2 * minuteMs, again: `bun run check ${name}` };
}

/** Those of the stages that have something to run in this tree. */
export function present(stages: readonly Stage[], testFiles: readonly string[]): Stage[] {
  return stages.filter(
    ({ name, folders, argv }) =>
      (name !== "images" || existsSync(argv.at(-1) ?? "")) &&
      (folders === undefined || testFiles.some((file) => isUnder(file, folders))),
  );
}

export function isUnder(file: string, folders: readonly string[]): boolean {
  return folders.some((folder) => file.startsWith(`${folder}/`));
}
