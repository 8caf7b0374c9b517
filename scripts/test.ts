/**
 * Runs every stage and ends with one line: N passed, N failed, N skipped. Nothing is printed after
 * it. Stages can be named, as `unit` or `--stage unit`; `--root` and `--plan` (a list of stages as
 * JSON) run another tree.
 */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { inLanes, Stages } from "./stages/run.ts";
import { filesOf, findTestFiles, Tally } from "./stages/tally.ts";
import { checkStages, machineStages, present, type Stage } from "./stages.ts";

const { values, positionals } = parseArgs({
  options: {
    stage: { type: "string", multiple: true, default: [] },
    root: { type: "string", default: "." },
    plan: { type: "string" },
  },
  allowPositionals: true,
});
const root = resolve(values.root);
const testFiles = findTestFiles(root);
const wanted = [...positionals, ...values.stage];
const runner = new Stages(root);
const tally = new Tally(root);

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
  process.on(signal, () => {
    runner.endAll();
    console.log(`ended by ${signal}`);
    process.exit(1);
  });

const planned: Stage[] = values.plan ? JSON.parse(readFileSync(values.plan, "utf8")) : [];
const quick = values.plan ? [] : choose(present(checkStages, testFiles));
const slow = choose(values.plan ? planned : present(machineStages, testFiles));
for (const name of wanted)
  if (![...quick, ...slow].some((stage) => stage.name === name)) {
    console.error(`there is no stage "${name}" with anything to run`);
    process.exit(2);
  }
await inLanes(quick, 2, run);
await inLanes(slow, 1, run);
tally.addUnseen(wanted.length === 0 ? testFiles : filesOf([...quick, ...slow], testFiles));
console.log(["", ...tally.remarks, tally.line].join("\n"));
process.exit(tally.failed > 0 ? 1 : 0);

function choose(stages: readonly Stage[]): Stage[] {
  return stages.filter(({ name }) => wanted.length === 0 || wanted.includes(name));
}

async function run(stage: Stage): Promise<"go on"> {
  console.log(`...  ${stage.name}`);
  const { exitCode, tail, seconds } = await runner.run(stage);
  const isGreen = tally.add(stage, exitCode);
  if (!isGreen && !stage.isShown) console.log(tail);
  console.log(`${isGreen ? "ok  " : "FAIL"} ${stage.name} (${seconds.toFixed(1)} s)`);
  if (!isGreen) console.log(`     whole log: reports/${stage.name}.log; again: ${stage.again}`);
  return "go on";
}
