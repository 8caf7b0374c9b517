/**
 * What every commit passes, in well under a minute: shape, types, lint, and the tests that need no
 * VM. It ends at the first stage that fails and says how to run that one alone.
 */

import { inLanes, Stages } from "./stages/run.ts";
import { filesOf, findTestFiles, Tally } from "./stages/tally.ts";
import { checkStages, present } from "./stages.ts";

/** Measured on two cores: half the time of one after the other. */
const lanes = 2;

const wanted = process.argv.slice(2);
const testFiles = findTestFiles(".");
const stages = present(checkStages, testFiles).filter(
  ({ name }) => wanted.length === 0 || wanted.includes(name),
);
const runner = new Stages(".");
const tally = new Tally(".");

await inLanes(stages, lanes, async (stage) => {
  const { exitCode, tail, seconds } = await runner.run(stage);
  if (tally.failed > 0) return "stop";
  if (tally.add(stage, exitCode) && tally.addUnseen(filesOf([stage], testFiles))) {
    console.log(`${stage.name.padEnd(16)} ${seconds.toFixed(1).padStart(5)} s`);
    return "go on";
  }
  runner.endAll();
  console.error(`${tail}\n\n${tally.remarks.filter((each) => !/^skipped/.test(each)).join("\n")}`);
  console.error(`check: ${stage.name} failed after ${seconds.toFixed(1)} s; ${stage.again}`);
  return "stop";
});
process.exit(tally.failed > 0 ? 1 : 0);
