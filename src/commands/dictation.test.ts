import { expect, test } from "bun:test";
import fc from "fast-check";
import { addCommand, bootId, change, openRecords, ref, sent } from "../../test/records.ts";
import { Fault } from "../core/fault.ts";
import type { Db } from "../db/open.ts";
import type { Channel, HostMessage } from "../guest/guest.ts";
import type { SandboxRow } from "../sandboxes/sandbox.ts";
import { stdinPieceBytesMax } from "./command.ts";
import { Dictation } from "./dictation.ts";
import type { CommandPorts } from "./ports.ts";
import { acceptStdin } from "./stdin.ts";
import { changeCommand, findCommand, getCommand, takeStdin } from "./store.ts";

class Bench {
  readonly db: Db;
  readonly said: HostMessage[] = [];
  readonly dictation: Dictation;
  closed = false;

  constructor(db: Db) {
    this.db = db;
    this.dictation = this.connect();
  }

  static async begin(sandbox: Partial<SandboxRow> = {}): Promise<Bench> {
    return new Bench(await openRecords(sandbox));
  }

  connect(): Dictation {
    const channel: Channel = {
      send: async (message) => {
        if (this.closed) throw new Fault("unavailable", "closed");
        this.said.push(message);
      },
      receive: async () => undefined,
      close: () => {},
    };
    const ports = { db: this.db, clock: { now: () => 5 } } as unknown as CommandPorts;
    return new Dictation(ports, ref, channel);
  }

  async say(dictation = this.dictation): Promise<string[]> {
    const before = this.said.length;
    await dictation.say(bootId, 30_000);
    return this.said.slice(before).map(({ type }) => type);
  }

  write(id: string, offset: number, text: string, eof = false): Promise<number> {
    const data = Buffer.from(text);
    return this.db.write(async (tx) =>
      acceptStdin(tx, { command: await getCommand(tx, id), offset, data, eof }),
    );
  }

  /** The guest part took stdin over up to there. */
  async taken(id: string, offset: number): Promise<void> {
    await this.db.write(async (tx) => takeStdin(tx, await getCommand(tx, id), offset));
  }
}

test("a command is sent once on a channel, after its record, and again on the next one", async () => {
  const bench = await Bench.begin();
  await addCommand(bench.db, "cmd_1");
  expect(await bench.say()).toEqual(["launch"]);
  expect(await findCommand(bench.db.read, "cmd_1")).toMatchObject({
    state: "launching",
    guest_boot_id: bootId,
    run: ref.run,
  });
  expect(await bench.say()).toEqual([]);
  expect(await bench.say(bench.connect())).toEqual(["launch"]);
});

test("what could not be sent is on record as sent: it may have arrived", async () => {
  const bench = await Bench.begin();
  await addCommand(bench.db, "cmd_1");
  bench.closed = true;
  await bench.dictation.say(bootId, 30_000).catch(() => {});
  expect((await findCommand(bench.db.read, "cmd_1"))?.state).toBe("launching");
});

test("nothing is said to another run or boot than the one on record", async () => {
  for (const other of [{ run: 2 }, { guest_boot_id: "another" }, { guest_boot_id: null }]) {
    const bench = await Bench.begin(other);
    await addCommand(bench.db, "cmd_1");
    await addCommand(bench.db, "cmd_2", { ...sent, kill_request: "req_1", kill_signal: "TERM" });
    expect(await bench.say()).toEqual([]);
    expect((await findCommand(bench.db.read, "cmd_1"))?.state).toBe("queued");
  }
});

test("a command that was sent to an earlier boot is not sent to this one", async () => {
  const bench = await Bench.begin();
  await addCommand(bench.db, "cmd_1", { ...sent, state: "launching", guest_boot_id: "earlier" });
  expect(await bench.say()).toEqual([]);
});

test("nothing is sent before its sandbox runs; while it stops, only what ends work is said", async () => {
  for (const phase of ["starting", "stopping", "lost"] as const) {
    const bench = await Bench.begin({ phase });
    await addCommand(bench.db, "cmd_1");
    await addCommand(bench.db, "cmd_2", { ...sent, kill_request: "req_1", kill_signal: "KILL" });
    const said = [...(await bench.say()), ...(await bench.say())];
    expect([phase, ...said]).toEqual(
      phase === "stopping" ? [phase, "power_off", "signal"] : [phase, "signal"],
    );
  }
});

test("a sandbox that is stopped between the look and the record gets no command", async () => {
  const bench = await Bench.begin();
  await addCommand(bench.db, "cmd_1");
  // Queued before the record of the launch, so that it commits first.
  void change(bench.db, { phase: "stopping" });
  const saying = bench.say();
  expect(await saying).toEqual([]);
  expect((await findCommand(bench.db.read, "cmd_1"))?.state).toBe("queued");
});

test("a wish to end a command is said until it is answered, a newer one again", async () => {
  const bench = await Bench.begin();
  await addCommand(bench.db, "cmd_1", { ...sent, kill_request: "req_1", kill_signal: "TERM" });
  expect(await bench.say()).toEqual(["signal"]);
  expect(await bench.say()).toEqual([]);
  expect(await bench.say(bench.connect())).toEqual(["signal"]);
  const wish = async (changes: object): Promise<void> =>
    bench.db.write(async (tx) => changeCommand(tx, await getCommand(tx, "cmd_1"), changes));
  await wish({ kill_request: "req_2", kill_signal: "KILL" });
  expect(await bench.say()).toEqual(["signal"]);
  await wish({ kill_done: 1 });
  expect(await bench.say(bench.connect())).toEqual([]);
});

interface Piece {
  text: string;
  /** How the guest part answers the next piece: whole, or only so much of it. */
  takes: number;
  reconnects: boolean;
}

const piece = fc.record<Piece>({
  text: fc.string({ maxLength: 40 }),
  takes: fc.nat(60),
  reconnects: fc.boolean(),
});

test("stdin is said in order and whole, one piece at a time, its end behind the last byte", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { maxLength: 10 }), async (pieces) => {
      const bench = await Bench.begin();
      await addCommand(bench.db, "cmd_1", sent);
      let { dictation } = bench;
      let got = Buffer.alloc(0);
      let closed = false;
      /** Once for each answer: a piece the guest has not taken is not followed by another. */
      const hear = async (most: number): Promise<boolean> => {
        const before = bench.said.length;
        await dictation.say(bootId, 30_000);
        await dictation.say(bootId, 30_000);
        const said = bench.said.slice(before);
        expect(said.length).toBeLessThanOrEqual(1);
        const [message] = said;
        if (message?.type !== "stdin") return false;
        expect(message.offset).toBe(got.length);
        const fits = Buffer.from(message.payload).subarray(0, most);
        got = Buffer.concat([got, fits]);
        closed ||= message.eof && fits.length === message.payload.length;
        await bench.taken("cmd_1", got.length);
        return true;
      };
      let written = 0;
      for (const { text, takes, reconnects } of pieces) {
        written = await bench.write("cmd_1", written, text);
        if (reconnects) dictation = bench.connect();
        await hear(takes);
      }
      await bench.write("cmd_1", written, "", true);
      dictation = bench.connect();
      while (!closed && (await hear(60))) dictation = bench.connect();
      expect(got.toString()).toBe(pieces.map(({ text }) => text).join(""));
      expect(closed).toBe(true);
    }),
    { numRuns: 60 },
  );
});

test("a long piece of stdin is cut to what one message takes", async () => {
  const bench = await Bench.begin();
  await addCommand(bench.db, "cmd_1", sent);
  const text = "x".repeat(stdinPieceBytesMax + 10);
  await bench.write("cmd_1", 0, text, true);
  expect(await bench.say()).toEqual(["stdin"]);
  await bench.taken("cmd_1", stdinPieceBytesMax);
  expect(await bench.say()).toEqual(["stdin"]);
  const sizes = bench.said.map((each) =>
    each.type === "stdin" ? [each.payload.length, each.eof] : [],
  );
  expect(sizes).toEqual([
    [stdinPieceBytesMax, false],
    [10, true],
  ]);
});
