import { expect, test } from "bun:test";
import fc from "fast-check";
import { addCommand, openRecords, sent } from "../../test/records.ts";
import type { Db } from "../db/open.ts";
import { stdinHeldBytesMax } from "./command.ts";
import { acceptStdin } from "./stdin.ts";
import { getCommand, stdinFrom, takeStdin } from "./store.ts";

interface Piece {
  offset: number;
  data: Uint8Array;
  eof?: boolean;
}

async function begin(): Promise<Db> {
  const db = await openRecords();
  await addCommand(db, "cmd_1", sent);
  return db;
}

/** Where stdin is at afterwards, or why the piece was refused. */
async function accept(db: Db, { eof = false, ...piece }: Piece): Promise<number | string> {
  try {
    return await db.write(async (tx) =>
      acceptStdin(tx, { command: await getCommand(tx, "cmd_1"), eof, ...piece }),
    );
  } catch (error) {
    return (error as { code: string }).code;
  }
}

const take = (db: Db, offset: number): Promise<void> =>
  db.write(async (tx) => takeStdin(tx, await getCommand(tx, "cmd_1"), offset));

/** What is held, from `offset` on. */
async function heldFrom(db: Db, offset: number): Promise<Buffer> {
  let all = Buffer.alloc(0);
  while (true) {
    const at = offset + all.length;
    const piece = await stdinFrom(db.read, "cmd_1", at);
    if (!piece) return all;
    const fresh = new Uint8Array(piece.data).subarray(at - piece.offset_bytes);
    all = Buffer.concat([all, fresh]);
  }
}

const whole = Buffer.from(Array.from({ length: 400 }, (_, index) => `${index},`).join(""));

test("whatever is sent again, whole or in part, stdin holds every byte once and in order", async () => {
  const step = fc.record({
    back: fc.nat(30),
    length: fc.nat(50),
    /** How much of what is held the guest takes over. */
    takes: fc.nat(40),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
      const db = await begin();
      let [end, taken] = [0, 0];
      for (const { back, length, takes } of steps) {
        const offset = Math.max(0, end - back);
        const data = whole.subarray(offset, offset + length);
        end = Math.max(end, offset + data.length);
        expect(await accept(db, { offset, data })).toBe(end);
        taken = Math.min(end, taken + takes);
        await take(db, taken);
        expect(await heldFrom(db, taken)).toEqual(whole.subarray(taken, end));
      }
    }),
    { numRuns: 60 },
  );
});

test("a piece behind a hole is refused, and says where stdin is", async () => {
  const db = await begin();
  expect(await accept(db, { offset: 0, data: whole.subarray(0, 5) })).toBe(5);
  expect(await accept(db, { offset: 6, data: whole.subarray(6, 9) })).toBe("stdin_gap");
  expect(await heldFrom(db, 0)).toEqual(whole.subarray(0, 5));
});

test("behind its end nothing is taken, but what was sent before may come again", async () => {
  const db = await begin();
  const last = { offset: 0, data: whole.subarray(0, 5), eof: true };
  expect(await accept(db, last)).toBe(5);
  expect(await accept(db, last)).toBe(5);
  expect(await accept(db, { offset: 5, data: whole.subarray(5, 6) })).toBe("stdin_closed");
});

test("no more is held than agreed until the guest takes some over", async () => {
  const db = await begin();
  expect(await accept(db, { offset: 0, data: new Uint8Array(stdinHeldBytesMax) })).toBe(
    stdinHeldBytesMax,
  );
  const more = { offset: stdinHeldBytesMax, data: new Uint8Array(1) };
  expect(await accept(db, more)).toBe("stdin_full");
  await take(db, stdinHeldBytesMax);
  expect(await accept(db, more)).toBe(stdinHeldBytesMax + 1);
});
