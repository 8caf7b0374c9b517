/** What the real guest part and its runner do when something around them fails. */
import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { encodeFrame } from "../../src/guest/frames.ts";
import type { GuestMessage } from "../../src/guest/guest.ts";
import { mark, nonceFrom, syncOf } from "../../src/guest/sync.ts";
import { Listener, newCommandId } from "./guest.contract.ts";
import { type RealGuest, withListener } from "./guest-real.ts";

async function listenAgain(fixture: RealGuest, before: Listener): Promise<Listener> {
  const listener = new Listener(await fixture.guests.open(fixture.ref), before.output);
  await listener.greet();
  return listener;
}

const isStarted = (message: GuestMessage): boolean => message.type === "started";

test("the order of stdout and stderr is kept", () =>
  withListener(async (listener) => {
    const id = newCommandId();
    const script = "for n in 1 2 3; do echo out $n; sleep 0.05; echo err $n >&2; sleep 0.05; done";
    await listener.launch(id, ["sh", "-c", script]);
    await listener.ended(id);
    const lines = ["out 1", "err 1", "out 2", "err 2", "out 3", "err 3"].map((line) => `${line}\n`);
    expect(listener.output.get(id)?.toString()).toBe(lines.join(""));
    const streams = listener.seen.flatMap((message) =>
      message.type === "output" ? [message.stream] : [],
    );
    // One line may come in two pieces.
    const turns = streams.filter((stream, at) => stream !== streams[at - 1]);
    expect(turns).toEqual(["stdout", "stderr", "stdout", "stderr", "stdout", "stderr"]);
  }));

test("a conversation cut off at any byte leaves nothing behind in the next one", () =>
  withListener(async (first, fixture) => {
    const id = newCommandId();
    const text = Buffer.concat([Buffer.from("x".repeat(200)), mark]);
    await first.launch(id, ["cat"], { stdin: true });
    await first.until(isStarted);
    first.channel.close();
    const stdin = { type: "stdin", command_id: id, offset: 0, eof: false };
    const whole = Buffer.concat([
      syncOf(nonceFrom(crypto.getRandomValues(new Uint8Array(16)))),
      encodeFrame({ type: "hello", protocol: 1, host_time_ms: 1, hostname: "x" }),
      encodeFrame(stdin, text.subarray(0, 200)),
    ]);
    // Several hosts, each of which dies at another byte.
    for (let at = 1; at < whole.length; at += 13) await sayAndDie(fixture, whole.subarray(0, at));
    const listener = await listenAgain(fixture, first);
    await listener.channel.send({ ...stdin, type: "stdin", eof: true, payload: text });
    await listener.ended(id);
    expect(listener.output.get(id)).toEqual(text);
  }));

function sayAndDie(fixture: RealGuest, bytes: Uint8Array): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({ path: fixture.socketPath }, () => socket.end(bytes));
    socket.on("close", () => resolve()).resume();
  });
}

test("a guest part that is killed while its commands write loses no byte and runs nothing again", () =>
  withListener(async (first, fixture) => {
    const id = newCommandId();
    const marker = join(fixture.directory, "ran");
    const script = `echo ran >> ${marker}; seq 1 300000`;
    await first.launch(id, ["sh", "-c", script]);
    let listener = first;
    for (let kill = 0; kill < 5; kill++) {
      await listener.until((message) => message.type === "output" || message.type === "ended");
      await fixture.restart();
      listener = await listenAgain(fixture, listener);
      await listener.launch(id, ["sh", "-c", script]);
    }
    await listener.ended(id);
    const lines = Array.from({ length: 300_000 }, (_, index) => `${index + 1}\n`).join("");
    expect(listener.output.get(id)?.toString() === lines).toBe(true);
    expect(readFileSync(marker, "utf8")).toBe("ran\n");
  }));

test("a time limit holds while nobody listens and all room for output is used up", () =>
  withListener(async (first, fixture) => {
    const id = newCommandId();
    await first.launch(id, ["yes"], { timeout_ms: 700 });
    await first.until(isStarted);
    first.channel.close();
    const ended = join(fixture.directory, "commands", id, "ended");
    await Bun.sleep(1_500);
    expect(existsSync(ended)).toBe(false);
    const listener = await listenAgain(fixture, first);
    const { end, output_bytes } = await listener.ended(id);
    expect(end).toMatchObject({ kind: "timed_out" });
    expect(listener.output.get(id)?.length).toBe(output_bytes);
    expect(output_bytes).toBeLessThan(20_000_000);
  }));

test("a child that floods the pipes does not delay the end, and is not killed by it", () =>
  withListener(async (listener, fixture) => {
    const id = newCommandId();
    const pidFile = join(fixture.directory, "flood.pid");
    await listener.launch(id, ["sh", "-c", `yes & echo $! > ${pidFile}; exit 3`]);
    expect((await listener.ended(id)).end).toEqual({ kind: "exited", exit_code: 3 });
    const pid = Number(readFileSync(pidFile, "utf8"));
    await Bun.sleep(200);
    expect(existsSync(`/proc/${pid}`)).toBe(true);
    process.kill(pid, "SIGKILL");
  }));

test("a command whose runner was killed ends as unknown, with the output that was kept", () =>
  withListener(async (listener, fixture) => {
    const id = newCommandId();
    await listener.launch(id, ["sh", "-c", "echo kept; exec sleep 600"]);
    await listener.until((message) => message.type === "output");
    const claim = join(fixture.directory, "commands", id, "claim");
    process.kill(Number.parseInt(readFileSync(claim, "utf8"), 10), "SIGKILL");
    const { end, output_bytes } = await listener.ended(id);
    expect(end).toEqual({ kind: "unknown" });
    expect(output_bytes).toBe(5);
  }));

test("a host that still talks to the guest part's predecessor is told to begin anew", () =>
  withListener(async (listener, fixture) => {
    await fixture.restart();
    const socket = connect({ path: fixture.socketPath });
    const bytes = await new Promise<Buffer>((resolve) => {
      socket.once("data", resolve);
      socket.write(encodeFrame({ type: "ping", id: 1 }));
    });
    expect(bytes.subarray(0, 64).every((byte) => byte === 0)).toBe(true);
    socket.destroy();
    expect((await listenAgain(fixture, listener)).bootId).not.toBe("");
  }));

test("a launch that cannot be meant is refused, and one too many says why", () =>
  withListener(
    async (listener) => {
      await listener.launch(newCommandId(), ["echo", "a\0b"]);
      const refusal = await listener.until((message) => message.type === "launch_refused");
      expect(refusal).toMatchObject({ reason: "malformed" });
      const [held, extra] = [newCommandId(), newCommandId()];
      await listener.launch(held, ["sleep", "600"]);
      await listener.launch(extra, ["true"]);
      const { end } = await listener.ended(extra);
      expect(end).toMatchObject({ kind: "launch_failed", reason: "no_resources" });
    },
    { commandsMax: 1 },
  ));

test("a forgotten command leaves no file and no open descriptor behind", () =>
  withListener(async (listener, fixture) => {
    const id = newCommandId();
    await listener.launch(id, ["head", "-c", "3000000", "/dev/zero"]);
    await listener.ended(id);
    await listener.channel.send({ type: "forget", command_id: id });
    await listener.channel.send({ type: "ping", id: 1 });
    await listener.until((message) => message.type === "pong");
    expect(readdirSync(join(fixture.directory, "commands"))).toEqual([]);
  }));
