import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { mutants } from "../../scripts/mutants.ts";

test("every mutant still finds what it breaks, once", () => {
  const stale = mutants.filter(({ file, edits }) => {
    const text = readFileSync(file, "utf8");
    return edits.some(([from]) => text.split(from).length !== 2);
  });
  expect(stale.map(({ name }) => name)).toEqual([]);
});
