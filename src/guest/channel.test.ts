import { afterEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Fault } from "../core/fault.ts";
import { systemClock } from "../system/clock.ts";
import { systemRandom } from "../system/random.ts";
import { SocketGuests } from "./channel.ts";
import { encodeFrame } from "./frames.ts";
import { concat, MarkScanner, mark, syncOf } from "./sync.ts";

const ref = { sandbox: "sb", run: 1 };
const pong = { type: "pong", id: 1, time_ms: 1 } as const;
const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup();
});

interface GuestOptions {
  answers?: boolean;
  /** What stands in the pipe before anything is said. */
  leftOver?: Uint8Array;
}

/** A guest that answers a mark as it should, and then does what the test wants. */
function guestThat(
  behave: (socket: Socket) => void,
  { answers = true, leftOver = new Uint8Array() }: GuestOptions = {},
) {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-channel-"));
  const path = join(directory, "port");
  const server: Server = createServer((socket) => {
    const scanner = new MarkScanner();
    socket.write(leftOver);
    socket.on("error", () => socket.destroy());
    socket.on("data", (bytes: Buffer) => {
      scanner.push(new Uint8Array(bytes));
      for (let found = scanner.next(); found; found = scanner.next())
        if ("nonce" in found && answers) socket.write(syncOf(found.nonce));
      behave(socket);
    });
  }).listen(path);
  cleanups.push(() => {
    server.close();
    rmSync(directory, { recursive: true, force: true });
  });
  const options = { pathOf: () => path, clock: systemClock, random: systemRandom, answerMs: 300 };
  return new SocketGuests(options);
}

const fault = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  );

test("a guest that says nonsense is cut off by a fault, and the channel with it", async () => {
  for (const nonsense of [
    new Uint8Array(64),
    new Uint8Array(64).fill(0xff),
    encodeFrame({ type: "explode" }),
    encodeFrame({ type: "ready" }).fill(0x7b, 8, 12),
  ].map((bytes) => Buffer.from(bytes))) {
    const guests = guestThat((socket) => void socket.write(nonsense));
    const channel = await guests.open(ref);
    expect(await fault(channel.receive())).toBeInstanceOf(Fault);
    expect(await channel.receive()).toBeUndefined();
    expect(await fault(channel.send({ type: "ping", id: 1 }))).toBeInstanceOf(Fault);
  }
});

test("what an earlier conversation left in the pipe is not taken for an answer", async () => {
  const old = [encodeFrame({ type: "ready" }), syncOf(new Uint8Array(16)), mark.subarray(0, 9)];
  const guests = guestThat((socket) => socket.write(encodeFrame(pong)), { leftOver: concat(old) });
  const channel = await guests.open(ref);
  expect(await channel.receive()).toEqual(pong);
  channel.close();
});

test("a guest that floods waits until its messages are taken", async () => {
  const flood = concat(Array.from({ length: 20_000 }, () => encodeFrame(pong)));
  let socketOfGuest: Socket | undefined;
  const guests = guestThat((socket) => {
    if (socketOfGuest) return;
    socketOfGuest = socket;
    for (let round = 0; round < 30; round++) socket.write(flood);
  });
  const channel = await guests.open(ref);
  await Bun.sleep(200);
  expect(socketOfGuest?.writableLength).toBeGreaterThan(20 * flood.length);
  let count = 0;
  while (count < 30 * 20_000 && (await channel.receive())?.type === "pong") count++;
  expect(count).toBe(30 * 20_000);
  channel.close();
});

test("a newer channel to a guest ends the older one", async () => {
  const guests = guestThat(() => {});
  const older = await guests.open(ref);
  const newer = await guests.open(ref);
  expect(await older.receive()).toBeUndefined();
  expect(await fault(newer.send({ type: "ping", id: 1 }))).toBeUndefined();
  newer.close();
});

test("of two channels that are opened at once the newer one stays", async () => {
  const guests = guestThat(() => {});
  const [older, newer] = await Promise.allSettled([guests.open(ref), guests.open(ref)]);
  expect(newer.status).toBe("fulfilled");
  if (newer.status === "fulfilled") newer.value.close();
  if (older.status === "fulfilled") expect(await older.value.receive()).toBeUndefined();
});

test("no VM and a silent guest are told apart", async () => {
  const options = { pathOf: () => "/nonexistent", clock: systemClock, random: systemRandom };
  expect(await fault(new SocketGuests(options).open(ref))).toMatchObject({ code: "guest_absent" });
  const silent = guestThat(() => {}, { answers: false });
  expect(await fault(silent.open(ref))).toMatchObject({ code: "guest_silent" });
});
