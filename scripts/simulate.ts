/**
 * `bun run simulate [--seeds N] [--from S] [--journal]`: lives random lives, one a seed. Ends at the
 * first that fails, and says how to live that one again, call by call.
 */
import { parseArgs } from "node:util";
import { live } from "../test/simulation/lives.ts";
import { traceOf } from "../test/simulation/trace.ts";
import type { World } from "../test/simulation/world.ts";

const { values } = parseArgs({
  options: {
    seeds: { type: "string", default: "1000" },
    from: { type: "string", default: "1" },
    /** Prints what happened in each life. */
    journal: { type: "boolean", default: false },
  },
});
const [from, seeds] = [Number(values.from), Number(values.seeds)];
if (!Number.isSafeInteger(from) || !Number.isSafeInteger(seeds) || seeds < 1) {
  console.error("--seeds and --from take whole numbers");
  process.exit(2);
}
const progressMs = 5_000;
const began = performance.now();
let shownAt = began;
let occasions = 0;
let seed = from;
let world: World | undefined;
// A bug in what runs beside the life's own thread.
process.on("unhandledRejection", fail);
try {
  for (; seed < from + seeds; seed++) {
    const lived = await live(seed, (begun) => {
      world = begun;
    });
    occasions += lived.occasions.length;
    if (values.journal) console.log(storyOf(lived));
    if (performance.now() - shownAt >= progressMs) showProgress(seed - from + 1);
  }
} catch (error) {
  fail(error);
}
console.log(`${seeds} lives ended in agreement; ${paceOf(seeds)}`);

function showProgress(lived: number): void {
  shownAt = performance.now();
  console.log(`${lived} of ${seeds} lives, ${paceOf(lived)}`);
}

function paceOf(lived: number): string {
  const seconds = (performance.now() - began) / 1_000;
  return `${(lived / seconds).toFixed(1)} seeds/s, ${occasions} calls, messages and commits struck at`;
}

function storyOf(lived: World): string {
  return [...lived.journal, `trace ${traceOf(lived)}`].join("\n");
}

function fail(error: unknown): never {
  if (values.journal && world) console.log(storyOf(world));
  console.error(error);
  console.error(`SEED=${seed} failed; again: bun run simulate --seeds 1 --from ${seed} --journal`);
  process.exit(1);
}
