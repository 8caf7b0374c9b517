import { expect, test } from "bun:test";
import fc from "fast-check";
import { addCommand, addSandbox, openOutputs, openRecords, ref, sent } from "../../test/records.ts";
import { MiB } from "../core/units.ts";
import type { Db, OutputDb } from "../db/open.ts";
import { systemClock } from "../system/clock.ts";
import { OutputIntake } from "./intake.ts";
import { extentOf, readOutput } from "./output.ts";

const whole = (id: string): Uint8Array =>
  Uint8Array.from({ length: 300 }, (_, index) => (index * (id === "cmd_1" ? 7 : 11)) % 251);

const chunk = (command_id: string, offset: number, payload: Uint8Array) =>
  ({ type: "output", command_id, offset, stream: "stdout", at_ms: 1, payload }) as const;

interface Bench {
  db: Db;
  output: OutputDb;
  /** The newest offset that was acknowledged, by command. */
  acked: Map<string, number>;
  intake: OutputIntake;
  /** What was acknowledged before it was durable. */
  early: string[];
}

async function begin(gather?: () => Promise<void>): Promise<Bench> {
  const db = await openRecords();
  for (const id of ["cmd_1", "cmd_2"]) await addCommand(db, id, sent);
  const output = await openOutputs(gather);
  const acked = new Map<string, number>();
  const early: string[] = [];
  const intake = new OutputIntake(
    output,
    { ...systemClock, sleep: () => Bun.sleep(1) },
    async (id, offset) => {
      acked.set(id, Math.max(offset, acked.get(id) ?? 0));
      void extentOf(output.read, id).then(({ endBytes }) => {
        if (endBytes < offset) early.push(`${id} ${offset}`);
      });
    },
  );
  return { db, output, acked, early, intake };
}

/** A last acknowledgement waits whether more comes. */
async function quiet(isTold: () => boolean): Promise<void> {
  while (!isTold()) await Bun.sleep(1);
}

const refused = (what: Promise<unknown>): Promise<string> =>
  what.then(
    () => "taken",
    (error: { code?: string }) => error.code ?? "a bug",
  );

test("whatever is sent again, every byte is stored once and acknowledged when it is durable", async () => {
  const piece = fc.record({
    id: fc.constantFrom("cmd_1", "cmd_2"),
    back: fc.nat(40),
    length: fc.integer({ min: 1, max: 60 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { maxLength: 25 }), async (pieces) => {
      const { db, output, acked, early, intake } = await begin();
      const ends = new Map<string, number>();
      for (const { id, back, length } of pieces) {
        const end = ends.get(id) ?? 0;
        const offset = Math.max(0, end - back);
        const payload = whole(id).subarray(offset, offset + length);
        ends.set(id, Math.max(end, offset + payload.length));
        await intake.take(ref.sandbox, db.read, chunk(id, offset, payload));
      }
      for (const [id, end] of ends) {
        await intake.settled(id, end);
        const page = await readOutput(output.read, id, { offset: 0, bytesMax: 1_000 });
        const stored = page.parts.map((part) => (part.kind === "chunk" ? part.data : []));
        expect(Buffer.concat(stored.map((data) => Buffer.from(data)))).toEqual(
          Buffer.from(whole(id).subarray(0, end)),
        );
        await quiet(() => acked.get(id) === end);
      }
      expect(early).toEqual([]);
    }),
    { numRuns: 40 },
  );
});

test("a hole is refused when the end is asked for, and nothing behind it is acknowledged", async () => {
  const { db, acked, intake } = await begin();
  await intake.take(ref.sandbox, db.read, chunk("cmd_1", 0, whole("cmd_1").subarray(0, 10)));
  await intake.take(ref.sandbox, db.read, chunk("cmd_1", 11, whole("cmd_1").subarray(11, 20)));
  expect(await refused(intake.settled("cmd_1", 20))).toBe("guest_protocol");
  await quiet(() => acked.get("cmd_1") === 10);
  expect(await refused(intake.settled("cmd_2", 1))).toBe("guest_protocol");
});

test("output of a command that this sandbox did not get is refused", async () => {
  const { db, output, intake } = await begin();
  await addSandbox(db, "sb_2");
  await addCommand(db, "cmd_other", { ...sent, sandbox_id: "sb_2" });
  await addCommand(db, "cmd_queued");
  for (const id of ["cmd_other", "cmd_queued"]) {
    const taken = intake.take(ref.sandbox, db.read, chunk(id, 0, new Uint8Array(5)));
    expect([id, await refused(taken)]).toEqual([id, "guest_protocol"]);
    expect((await extentOf(output.read, id)).endBytes).toBe(0);
  }
});

test("what comes again behind a recorded or forgotten end is acknowledged and not stored", async () => {
  const { db, output, acked, intake } = await begin();
  await addCommand(db, "cmd_over", { ...sent, state: "exited", ended_at_ms: 5 });
  for (const id of ["cmd_over", "cmd_forgotten"]) {
    await intake.take(ref.sandbox, db.read, chunk(id, 0, new Uint8Array(5)));
    expect(acked.get(id)).toBe(5);
    expect((await extentOf(output.read, id)).endBytes).toBe(0);
  }
});

test("a flood waits for the disk instead of filling memory", async () => {
  let goOn = (): void => {};
  const stalled = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const { db, intake } = await begin(() => stalled);
  let taken = 0;
  const flood = async (): Promise<void> => {
    for (; taken < 40; taken++)
      await intake.take(ref.sandbox, db.read, chunk("cmd_1", taken * MiB, new Uint8Array(MiB)));
  };
  const flooding = flood();
  for (let turn = 0; turn < 500; turn++) await new Promise((next) => setImmediate(next));
  expect(taken).toBeLessThanOrEqual(9);
  goOn();
  await flooding;
  await intake.settled("cmd_1", 40 * MiB);
});
