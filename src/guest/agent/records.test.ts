import { expect, test } from "bun:test";
import fc from "fast-check";
import { bytesRecord, RecordReader } from "./records.ts";

const piece = fc.oneof(fc.uint8Array({ maxLength: 40 }), fc.nat());

/** As the bridge says which offset was reached. */
function reachedRecord(offset: number): Uint8Array {
  const record = Buffer.from(bytesRecord(Buffer.from(String(offset))));
  record[4] = "r".charCodeAt(0);
  return record;
}

test("what the bridge says is told apart from the host's bytes, wherever it is cut", () => {
  const places = fc.array(fc.nat(), { maxLength: 20 });
  fc.assert(
    fc.property(fc.array(piece), places, (pieces, cuts) => {
      const whole = Buffer.concat(
        pieces.map((each) => (typeof each === "number" ? reachedRecord(each) : bytesRecord(each))),
      );
      const bytes: Uint8Array[] = [];
      const offsets: number[] = [];
      const reader = new RecordReader({
        bytes: (some) => void bytes.push(some.slice()),
        reached: (offset) => void offsets.push(offset),
      });
      const ends = cuts.map((place) => place % (whole.length + 1)).sort((one, two) => one - two);
      [...ends, whole.length].forEach((end, index) => {
        reader.push(whole.subarray(ends[index - 1] ?? 0, end));
      });
      const sent = pieces.filter((each) => typeof each !== "number");
      expect(Buffer.concat(bytes)).toEqual(Buffer.concat(sent));
      expect(offsets).toEqual(pieces.filter((each) => typeof each === "number"));
    }),
  );
});
