/**
 * The host's end of a guest channel: a unix socket behind which the VMM has the guest's
 * virtio-serial port. Reads only as fast as messages are taken, so that a flooding guest waits.
 */
import { connect, type Socket } from "node:net";
import { Fault } from "../core/fault.ts";
import { KiB, MiB, secondMs } from "../core/units.ts";
import type { Clock } from "../system/clock.ts";
import type { Random } from "../system/random.ts";
import type { VmRef } from "../vmm/vmm.ts";
import { encodeFrame, FrameReader } from "./frames.ts";
import type { Channel, GuestMessage, Guests, HostMessage } from "./guest.ts";
import { parseGuestMessage } from "./messages.ts";
import { indexOfMark, MarkScanner, nonceFrom, syncOf } from "./sync.ts";

const queuedBytesMax = 4 * MiB;
const unsentBytesMax = 256 * KiB;
const syncPeriodMs = secondMs;
const answerMsDefault = 5 * secondMs;
const randomBytes = 16;

export interface SocketGuestsOptions {
  /** Where the VMM listens for this VM's port. */
  pathOf: (ref: VmRef) => string;
  clock: Clock;
  random: Random;
  /** How long a guest part may take to answer at all, unless 5 s. */
  answerMs?: number;
}

export class SocketGuests implements Guests {
  readonly #options: SocketGuestsOptions;
  readonly #open = new Map<string, SocketChannel>();

  constructor(options: SocketGuestsOptions) {
    this.#options = options;
  }

  async open(ref: VmRef): Promise<Channel> {
    const path = this.#options.pathOf(ref);
    this.#open.get(path)?.close();
    const channel: SocketChannel = new SocketChannel(connect({ path }), () => {
      if (this.#open.get(path) === channel) this.#open.delete(path);
    });
    this.#open.set(path, channel);
    await this.#synchronize(channel, path);
    return channel;
  }

  /** Says a mark and a nonce until the guest part says them back; what comes before that is old. */
  async #synchronize(channel: SocketChannel, path: string): Promise<void> {
    const { clock, random, answerMs = answerMsDefault } = this.#options;
    const endAt = clock.monotonic() + answerMs;
    while (!channel.closed && clock.monotonic() < endAt) {
      // A nonce a try: an answer to an earlier one is followed by another mark, not by frames.
      channel.begin(nonceFrom(random.bytes(randomBytes)));
      await Promise.race([channel.synchronized, clock.sleep(syncPeriodMs)]);
      if (channel.isSynchronized) return;
    }
    const { whyClosed: cause } = channel;
    channel.close();
    if (cause === undefined)
      throw new Fault("unavailable", `no guest part answers on ${path}`, { code: "guest_silent" });
    throw new Fault("unavailable", `no VM listens on ${path}`, { code: "guest_absent", cause });
  }
}

class SocketChannel implements Channel {
  readonly #socket: Socket;
  readonly #reader = new FrameReader();
  readonly #scanner = new MarkScanner();
  readonly #ended: () => void;
  readonly synchronized: Promise<void>;
  #resolveSynchronized: () => void = () => {};
  isSynchronized = false;
  closed = false;
  whyClosed: Error | undefined;
  #paused = false;
  #nonce: Uint8Array | undefined;
  #wake: () => void = () => {};
  #drained: (() => void)[] = [];

  constructor(socket: Socket, ended: () => void) {
    this.#socket = socket;
    this.#ended = ended;
    this.synchronized = new Promise((resolve) => {
      this.#resolveSynchronized = resolve;
    });
    socket.on("data", (bytes: Buffer) => this.#take(bytes));
    socket.on("drain", () => this.#releaseSenders());
    // A socket's error only says why it closes; whoever waits is told by the close.
    socket.on("error", (error) => {
      this.whyClosed = error;
      socket.destroy();
    });
    socket.on("close", () => this.close());
    socket.on("end", () => socket.destroy());
  }

  begin(nonce: Uint8Array): void {
    this.#nonce = nonce;
    if (!this.closed) this.#socket.write(syncOf(nonce));
  }

  async send(message: HostMessage): Promise<void> {
    if (message.type === "stdin") {
      const at = indexOfMark(message.payload);
      // The mark may stand nowhere else: a piece that holds one is sent as two.
      if (at >= 0) return this.#sendInTwo(message, at + 1);
    }
    const { payload, header } = apart(message);
    await this.#write(encodeFrame(header, payload));
  }

  async #sendInTwo(message: Extract<HostMessage, { type: "stdin" }>, at: number): Promise<void> {
    const [first, second] = [message.payload.subarray(0, at), message.payload.subarray(at)];
    await this.send({ ...message, payload: first, eof: false });
    await this.send({ ...message, payload: second, offset: message.offset + at });
  }

  async #write(bytes: Uint8Array): Promise<void> {
    if (this.closed) throw new Fault("unavailable", "the guest channel is closed");
    const flows = this.#socket.write(bytes);
    if (flows || this.#socket.writableLength < unsentBytesMax) return;
    await new Promise<void>((resolve) => this.#drained.push(resolve));
    if (this.closed) throw new Fault("unavailable", "the guest channel is closed");
  }

  /** @throws Fault `unavailable` when the guest part breaks the protocol; the channel is closed. */
  async receive(): Promise<GuestMessage | undefined> {
    try {
      while (true) {
        const frame = this.#reader.next();
        this.#setPaused(this.#reader.heldBytes >= queuedBytesMax);
        if (frame) return parseGuestMessage(frame);
        if (this.closed) return undefined;
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    } catch (error) {
      this.#reader.reset();
      this.close();
      throw error;
    }
  }

  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.#socket.destroy();
    this.#resolveSynchronized();
    this.#wake();
    this.#releaseSenders();
    this.#ended();
  }

  #take(bytes: Uint8Array): void {
    if (this.isSynchronized) this.#reader.push(bytes);
    else this.#lookForAnswer(bytes);
    this.#setPaused(this.#reader.heldBytes >= queuedBytesMax);
    this.#wake();
  }

  #lookForAnswer(bytes: Uint8Array): void {
    this.#scanner.push(bytes);
    for (let found = this.#scanner.next(); found; found = this.#scanner.next()) {
      if (!("nonce" in found) || !this.#nonce) continue;
      if (Buffer.compare(found.nonce, this.#nonce) !== 0) continue;
      this.isSynchronized = true;
      // From here on nothing is a mark: programs print what they like.
      this.#reader.push(this.#scanner.rest());
      return this.#resolveSynchronized();
    }
  }

  #setPaused(pause: boolean): void {
    if (pause === this.#paused) return;
    this.#paused = pause;
    if (pause) this.#socket.pause();
    else this.#socket.resume();
  }

  #releaseSenders(): void {
    for (const resolve of this.#drained.splice(0)) resolve();
  }
}

function apart(message: HostMessage): { header: object; payload: Uint8Array | undefined } {
  if (message.type !== "stdin") return { header: message, payload: undefined };
  const { payload, ...header } = message;
  return { header, payload };
}
