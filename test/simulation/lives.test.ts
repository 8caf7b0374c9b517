import { expect, test } from "bun:test";
import { join } from "node:path";
import { live } from "./lives.ts";
import { traceOf } from "./trace.ts";

const seeds = process.env["SEED"]
  ? [Number(process.env["SEED"])]
  : Array.from({ length: Number(process.env["SEEDS"] ?? 100) }, (_, index) => index + 1);

for (const seed of seeds)
  test(`a stormy life ends in agreement (SEED=${seed})`, async () => {
    expect((await live(seed)).occasions.length).toBeGreaterThan(0);
  });

test("the same seed lives the same life, to the last message and record", async () => {
  const [one, again, other] = [await live(7), await live(7), await live(8)];
  expect(traceOf(again)).toBe(traceOf(one));
  expect(traceOf(other)).not.toBe(traceOf(one));
});

test("a life is lived again in another process by its seed", async () => {
  const script = join(import.meta.dir, "../../scripts/simulate.ts");
  const words = ["--seeds", "1", "--from", "9", "--journal"];
  const { stdout } = Bun.spawnSync([process.execPath, script, ...words]);
  expect(stdout.toString()).toContain(`trace ${traceOf(await live(9))}`);
});
