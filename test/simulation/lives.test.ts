import { expect, test } from "bun:test";
import { live } from "./lives.ts";

const seeds = process.env["SEED"]
  ? [Number(process.env["SEED"])]
  : Array.from({ length: Number(process.env["SEEDS"] ?? 100) }, (_, index) => index + 1);

for (const seed of seeds)
  test(`a stormy life ends in agreement (SEED=${seed})`, async () => {
    expect((await live(seed)).occasions.length).toBeGreaterThan(0);
  });

test("the same seed lives the same life", async () => {
  expect((await live(7)).journal).toEqual((await live(7)).journal);
});
