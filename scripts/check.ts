/** What every commit passes, in about a minute: shape, types, lint, and tests that need no VM. */
import { checkStages, runStage } from "./stages.ts";

const wanted = process.argv.slice(2);
for (const stage of checkStages) {
  if (wanted.length > 0 && !wanted.includes(stage.name)) continue;
  const run = await runStage(stage);
  if (run.exitCode === 0) continue;
  process.stdout.write(run.output);
  console.error(`check: ${stage.name} failed; ${stage.again}`);
  process.exit(1);
}
