import { expect, test } from "bun:test";
import fc from "fast-check";
import { concat, indexOfMark, MarkScanner, mark, nonceFrom, syncOf } from "./sync.ts";

const plain = fc
  .array(fc.oneof(fc.nat({ max: 255 }), fc.constantFrom(0xff, 0x00, 0xfe)), { maxLength: 60 })
  .map((bytes) => Uint8Array.from(bytes))
  .filter((bytes) => indexOfMark(bytes) < 0);
const nonce = fc.uint8Array({ minLength: 16, maxLength: 16 }).map(nonceFrom);

/** What a scanner makes of pieces: marks as "mark NONCE", everything between them as one text. */
function scan(pieces: readonly Uint8Array[]): string[] {
  const scanner = new MarkScanner();
  const seen: string[] = [""];
  for (const piece of pieces) {
    scanner.push(piece);
    for (let found = scanner.next(); found; found = scanner.next())
      if ("nonce" in found) seen.push(`mark ${Buffer.from(found.nonce).toString("hex")}`, "");
      else seen[seen.length - 1] += Buffer.from(found.bytes).toString("hex");
  }
  seen[seen.length - 1] += Buffer.from(scanner.rest()).toString("hex");
  return seen;
}

function cut(bytes: Uint8Array, places: readonly number[]): Uint8Array[] {
  const ends = places.map((place) => place % (bytes.length + 1)).sort((one, two) => one - two);
  return [...ends, bytes.length].map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end));
}

test("a mark is found wherever it stands, and nothing else is taken for one", () => {
  fc.assert(
    fc.property(plain, nonce, plain, fc.array(fc.nat()), (before, sent, after, places) => {
      const pieces = cut(concat([before, syncOf(sent), after]), places);
      const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
      expect(scan(pieces)).toEqual([hex(before), `mark ${hex(sent)}`, hex(after)]);
    }),
    { numRuns: 500 },
  );
});

test("a mark is found behind one that was cut off at any byte", () => {
  fc.assert(
    fc.property(nonce, fc.nat({ max: 31 }), nonce, fc.array(fc.nat()), (lost, at, sent, places) => {
      const pieces = cut(concat([syncOf(lost).subarray(0, at), syncOf(sent)]), places);
      expect(scan(pieces)).toContain(`mark ${Buffer.from(sent).toString("hex")}`);
    }),
    { numRuns: 500 },
  );
});

test("bytes that cannot begin a mark are passed on at once", () => {
  const scanner = new MarkScanner();
  const line = new TextEncoder().encode("a whole message\n");
  scanner.push(line);
  expect(scanner.next()).toEqual({ bytes: line });
  scanner.push(mark.subarray(0, 9));
  expect(scanner.next()).toBeUndefined();
});
