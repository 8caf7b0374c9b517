/** Runs every stage and ends with one line: N passed, N failed, N skipped. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { checkStages, machineStages, runStage, type Stage } from "./stages.ts";
import { Count, testFiles } from "./tally.ts";

const root = process.cwd();
const only = process.argv.slice(2);
const stages = [...checkStages, ...machineStages].filter(
  ({ name }) => only.length === 0 || only.includes(name),
);
const tailLines = 60;

mkdirSync(join(root, "reports"), { recursive: true });
const count = new Count(root);
for (const stage of stages) await run(stage);
if (only.length === 0) count.addUnseen(testFiles(root));
const { passed, failed, skipped, remarks } = count.tally;
for (const remark of remarks) console.log(remark);
console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
process.exit(failed > 0 ? 1 : 0);

async function run(stage: Stage): Promise<void> {
  const { exitCode, output, seconds } = await runStage(stage, root);
  writeFileSync(join(root, "reports", `${stage.name}.log`), output);
  console.log(`${exitCode === 0 ? "ok  " : "FAIL"} ${stage.name} (${seconds.toFixed(1)} s)`);
  if (exitCode !== 0) console.log(output.split("\n").slice(-tailLines).join("\n"));
  count.add(stage, exitCode);
}
