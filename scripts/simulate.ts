/** `bun run simulate [--seeds N] [--seed S]`: lives random lives; one that fails prints its seed. */
import { parseArgs } from "node:util";
import { live } from "../test/simulation/lives.ts";

const { values } = parseArgs({
  options: {
    seeds: { type: "string", default: "1000" },
    /** The first seed; alone, the only one. */
    seed: { type: "string" },
    journal: { type: "boolean", default: false },
  },
});
const first = Number(values.seed ?? 1);
const count = values.seed === undefined ? Number(values.seeds) : 1;
let seed = first;
// A bug in what runs beside the life's own thread.
process.on("unhandledRejection", fail);
try {
  for (; seed < first + count; seed++) {
    const { journal } = await live(seed);
    if (values.journal) console.log(journal.join("\n"));
  }
} catch (error) {
  fail(error);
}
console.log(`${count} lives ended in agreement`);

function fail(error: unknown): never {
  console.error(error);
  console.error(`SEED=${seed}; again: bun run simulate --seed ${seed}`);
  process.exit(1);
}
