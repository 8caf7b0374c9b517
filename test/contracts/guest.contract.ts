/** What any guest part and channel must do: run against the simulated one and the real one. */
import { expect, test } from "bun:test";
import { makeId } from "../../src/core/ids.ts";
import {
  type Channel,
  type GuestMessage,
  type Guests,
  type LaunchMessage,
  messageBytesMax,
  outputWindowBytes,
} from "../../src/guest/guest.ts";
import { mark } from "../../src/guest/sync.ts";
import type { VmRef } from "../../src/vmm/vmm.ts";

export interface GuestFixture {
  guests: Guests;
  ref: VmRef;
  /** Kills the guest part without warning and starts it again; commands must not notice. */
  restart: () => Promise<void>;
  end: () => Promise<void>;
}

/** A program by what it does, so that each world can spell it in its own way. */
export interface Programs {
  prints: (bytes: number) => string[];
  exits: (code: number) => string[];
  sleeps: (seconds: number) => string[];
  /** Its stdin to its stdout. */
  copies: () => string[];
  ignoresTerm: () => string[];
  user: string;
}

let count = 0;
export const newCommandId = (): string =>
  makeId("command", 1_000_000 + count++, crypto.getRandomValues(new Uint8Array(10)));

/** A host reduced to what the protocol asks of one: acknowledges, forgets, remembers bytes. */
export class Listener {
  readonly channel: Channel;
  readonly output = new Map<string, Buffer>();
  readonly ends = new Map<string, Extract<GuestMessage, { type: "ended" }>>();
  readonly seen: GuestMessage[] = [];
  bootId = "";
  /** Whether output is acknowledged as it comes. */
  acknowledges = true;

  constructor(channel: Channel, output?: Map<string, Buffer>) {
    this.channel = channel;
    if (output) this.output = output;
  }

  async greet(): Promise<void> {
    await this.channel.send({
      type: "hello",
      protocol: 1,
      host_time_ms: Date.now(),
      hostname: "box",
    });
    await this.until((message) => message.type === "ready");
  }

  launch(command_id: string, argv: string[], more: Partial<LaunchMessage> = {}): Promise<void> {
    return this.channel.send({
      type: "launch",
      command_id,
      guest_boot_id: this.bootId,
      argv,
      cwd: null,
      env: {},
      user: "root",
      timeout_ms: null,
      stdin: false,
      ...more,
    });
  }

  /** Reads on until a message fits; acknowledges output on the way. */
  async until(fits: (message: GuestMessage) => boolean): Promise<GuestMessage> {
    while (true) {
      const message = await this.channel.receive();
      if (!message) throw new Error("the channel closed");
      this.seen.push(message);
      await this.#take(message);
      if (fits(message)) return message;
    }
  }

  async ended(id: string): Promise<Extract<GuestMessage, { type: "ended" }>> {
    const known = this.ends.get(id);
    if (known) return known;
    await this.until((message) => message.type === "ended" && message.command_id === id);
    return this.ends.get(id) as Extract<GuestMessage, { type: "ended" }>;
  }

  async #take(message: GuestMessage): Promise<void> {
    if (message.type === "hello") this.bootId = message.guest_boot_id;
    if (message.type === "ended") this.ends.set(message.command_id, message);
    if (message.type !== "output") return;
    const { command_id, offset, payload } = message;
    const before = this.output.get(command_id) ?? Buffer.alloc(0);
    expect(offset).toBeLessThanOrEqual(before.length);
    const whole = Buffer.concat([before, payload.subarray(before.length - offset)]);
    this.output.set(command_id, whole);
    if (this.acknowledges)
      await this.channel.send({ type: "ack", command_id, offset: whole.length });
  }
}

export function guestContract(
  name: string,
  begin: () => Promise<GuestFixture>,
  programs: Programs,
): void {
  const withGuest = (what: string, work: (fixture: GuestFixture) => Promise<void>): void =>
    test(`${name}: ${what}`, async () => {
      const fixture = await begin();
      try {
        await work(fixture);
      } finally {
        await fixture.end();
      }
    });

  const listen = async (fixture: GuestFixture, output?: Map<string, Buffer>): Promise<Listener> => {
    const listener = new Listener(await fixture.guests.open(fixture.ref), output);
    await listener.greet();
    return listener;
  };

  withGuest("a command's exit code is reported after its output", async (fixture) => {
    const listener = await listen(fixture);
    const id = newCommandId();
    await listener.launch(id, programs.prints(10_000));
    const { end, output_bytes } = await listener.ended(id);
    expect(end).toEqual({ kind: "exited", exit_code: 0 });
    expect(output_bytes).toBe(10_000);
    expect(listener.output.get(id)?.length).toBe(10_000);
    const failing = newCommandId();
    await listener.launch(failing, programs.exits(3));
    expect((await listener.ended(failing)).end).toEqual({ kind: "exited", exit_code: 3 });
  });

  withGuest("a launch that is sent twice runs once", async (fixture) => {
    const listener = await listen(fixture);
    const id = newCommandId();
    await listener.launch(id, programs.prints(100));
    await listener.launch(id, programs.prints(100));
    expect((await listener.ended(id)).output_bytes).toBe(100);
    await listener.launch(id, programs.prints(100));
    const again = await listener.until((message) => message.type === "ended");
    expect(again).toMatchObject({ command_id: id, output_bytes: 100 });
  });

  withGuest("a launch for another boot is refused", async (fixture) => {
    const listener = await listen(fixture);
    const id = newCommandId();
    const guest_boot_id = "00000000-0000-4000-8000-000000000000";
    await listener.launch(id, programs.exits(0), { guest_boot_id });
    const answer = await listener.until((message) => message.type === "launch_refused");
    expect(answer).toMatchObject({ command_id: id, reason: "wrong_boot" });
  });

  withGuest("a new connection hears again what was not forgotten", async (fixture) => {
    const first = await listen(fixture);
    const id = newCommandId();
    await first.launch(id, programs.prints(50));
    await first.ended(id);
    const second = await listen(fixture, first.output);
    expect((await second.ended(id)).output_bytes).toBe(50);
    await second.channel.send({ type: "forget", command_id: id });
    const third = await listen(fixture);
    expect(third.seen.some((message) => message.type === "ended")).toBe(false);
  });

  withGuest("a signal ends a command and says that it was ours", async (fixture) => {
    const listener = await listen(fixture);
    const id = newCommandId();
    await listener.launch(id, programs.sleeps(600));
    await listener.until((message) => message.type === "started");
    await listener.channel.send({
      type: "signal",
      command_id: id,
      request_id: "r1",
      signal: "TERM",
    });
    expect(await listener.ended(id)).toMatchObject({
      end: { kind: "signal", signal: "TERM" },
      signalled: "TERM",
    });
  });

  withGuest("a killed guest part finds its commands again", async (fixture) => {
    const before = await listen(fixture);
    const [long, short] = [newCommandId(), newCommandId()];
    await before.launch(long, programs.sleeps(2));
    await before.launch(short, programs.prints(200));
    await before.ended(short);
    await fixture.restart();
    const after = await listen(fixture, before.output);
    expect((await after.ended(short)).output_bytes).toBe(200);
    expect((await after.ended(long)).end).toEqual({ kind: "exited", exit_code: 0 });
  });

  withGuest(
    "a signal right behind the launch is not lost, and never sent twice",
    async (fixture) => {
      const listener = await listen(fixture);
      const id = newCommandId();
      await listener.launch(id, programs.sleeps(600));
      const signal = { type: "signal", command_id: id, request_id: "r1", signal: "TERM" } as const;
      await listener.channel.send(signal);
      const isDone = (message: GuestMessage) => message.type === "signal_done";
      expect(await listener.until(isDone)).toMatchObject({ request_id: "r1", delivered: true });
      expect((await listener.ended(id)).end).toMatchObject({ kind: "signal", signal: "TERM" });
      await listener.channel.send(signal);
      expect(await listener.until(isDone)).toMatchObject({ request_id: "r1", delivered: true });
    },
  );

  withGuest("stdin arrives once and in order, whatever is sent again", async (fixture) => {
    let listener = await listen(fixture);
    const id = newCommandId();
    // Holds what begins a conversation, and what begins to begin one.
    const bytes = Buffer.concat([mark, Buffer.from("some text"), mark, mark.subarray(0, 5)]);
    await listener.launch(id, programs.copies(), { stdin: true });
    const send = (offset: number, end: number, eof = false) => {
      const payload = bytes.subarray(offset, end);
      return listener.channel.send({ type: "stdin", command_id: id, offset, eof, payload });
    };
    await send(0, 20);
    await send(0, 20);
    await send(10, 30);
    await listener.until((message) => message.type === "stdin_taken" && message.offset === 30);
    listener = await listen(fixture, listener.output);
    await send(20, bytes.length, true);
    const isWhole = (message: GuestMessage): boolean =>
      message.type === "stdin_taken" && message.offset === bytes.length && message.closed;
    await listener.until(isWhole);
    expect((await listener.ended(id)).end).toEqual({ kind: "exited", exit_code: 0 });
    expect(listener.output.get(id)).toEqual(bytes);
  });

  withGuest("no more output is in flight than agreed until it is acknowledged", async (fixture) => {
    const listener = await listen(fixture);
    const id = newCommandId();
    await listener.launch(id, programs.prints(2 * outputWindowBytes));
    listener.acknowledges = false;
    await listener.until((message) => isOutputUpTo(message, outputWindowBytes));
    await listener.channel.send({ type: "ping", id: 7 });
    await listener.until((message) => message.type === "pong");
    const inFlight = listener.output.get(id)?.length ?? 0;
    expect(inFlight).toBeLessThan(outputWindowBytes + messageBytesMax);
    listener.acknowledges = true;
    await listener.channel.send({ type: "ack", command_id: id, offset: inFlight });
    expect((await listener.ended(id)).output_bytes).toBe(2 * outputWindowBytes);
  });

  withGuest("a power-off ends all commands and reports their ends", async (fixture) => {
    const listener = await listen(fixture);
    const [willing, stubborn] = [newCommandId(), newCommandId()];
    await listener.launch(willing, programs.sleeps(600));
    await listener.launch(stubborn, programs.ignoresTerm());
    for (let count = 0; count < 2; count++)
      await listener.until((message) => message.type === "started");
    await Bun.sleep(100);
    await listener.channel.send({ type: "power_off", grace_ms: 300 });
    await listener.until((message) => message.type === "powering_off");
    expect(await listener.ended(willing)).toMatchObject({ signalled: "TERM" });
    expect(await listener.ended(stubborn)).toMatchObject({
      end: { kind: "signal", signal: "KILL" },
      signalled: "TERM",
    });
    const late = newCommandId();
    await listener.launch(late, programs.exits(0));
    const refusal = await listener.until((message) => message.type === "launch_refused");
    expect(refusal).toMatchObject({ command_id: late, reason: "powering_off" });
  });
}

function isOutputUpTo(message: GuestMessage, bytes: number): boolean {
  return message.type === "output" && message.offset + message.payload.length >= bytes;
}
