import { expect, test } from "bun:test";
import fc from "fast-check";
import { type IdKind, idPrefixes, isId, makeId } from "./ids.ts";

const kinds = Object.keys(idPrefixes) as IdKind[];
const atMs = fc.integer({ min: 0, max: 2 ** 45 });
const bytes = fc.uint8Array({ minLength: 10, maxLength: 10 });

test("an id has the shape of its kind and of no other", () => {
  fc.assert(
    fc.property(fc.constantFrom(...kinds), atMs, bytes, (kind, ms, random) => {
      const id = makeId(kind, ms, random);
      for (const each of kinds) expect(isId(each, id)).toBe(each === kind);
    }),
  );
});

test("ids sort by their time, whatever else they hold", () => {
  fc.assert(
    fc.property(atMs, atMs, bytes, bytes, (one, other, a, b) => {
      if (one >= other) return;
      expect(makeId("command", one, a) < makeId("command", other, b)).toBe(true);
    }),
  );
});

test("two ids of one instant differ where their random bytes do", () => {
  fc.assert(
    fc.property(bytes, bytes, (a, b) => {
      const same = Buffer.from(a).equals(Buffer.from(b));
      expect(makeId("sandbox", 1, a) === makeId("sandbox", 1, b)).toBe(same);
    }),
  );
});
