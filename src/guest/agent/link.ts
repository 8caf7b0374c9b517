/**
 * The guest part's conversation with whichever host is there: what a mark began, and nothing from
 * before it. Bytes that follow something that made no sense are never taken for messages.
 */
import { encodeFrame, FrameReader } from "../frames.ts";
import type { GuestMessage, HostMessage } from "../guest.ts";
import { MarkScanner, syncOf } from "../sync.ts";
import type { Port } from "./port.ts";
import type { Pull } from "./records.ts";

export interface Speaker {
  /** A mark was seen: nothing that was said before counts as heard. */
  begin(): void;
  hear(message: HostMessage, payload: Uint8Array): void;
  /** What to send behind all that was said: a frame, or output. */
  next(): Uint8Array | Output | undefined;
}

export interface Output {
  readonly pull: Pull;
  /** It was sent up to this offset; undefined where it is not known. */
  readonly done: (reached: number | undefined) => void;
}

/** More than the longest frame that a guest part or its bridge sends. */
const fillerBytes = 512 * 1024;
const filler = new Uint8Array(32 * 1024);

export class Link {
  readonly #port: Port;
  readonly #speaker: Speaker;
  readonly #scanner = new MarkScanner();
  readonly #frames = new FrameReader();
  #queue: Uint8Array[] = [];
  /** Whether what comes belongs to a conversation that began here. */
  #understands = false;
  #hungUp = false;
  #wake: () => void = () => {};

  constructor(port: Port, speaker: Speaker) {
    this.#port = port;
    this.#speaker = speaker;
  }

  /** For ever. */
  async run(): Promise<never> {
    this.#port.listen((bytes) => this.#take(bytes));
    while (true) await this.#sendNext();
  }

  say(message: GuestMessage): void {
    if (!this.#understands) return;
    this.#queue.push(encodeFrame(message));
    this.#wake();
  }

  /** There may be output to send. */
  wake(): void {
    this.#wake();
  }

  /**
   * Makes a host that is in the middle of a conversation with someone else begin anew: zeros end
   * whatever frame it reads, and make no sense as one.
   */
  hangUp(): void {
    this.#understands = false;
    if (this.#hungUp) return;
    this.#hungUp = true;
    this.#queue = Array.from({ length: fillerBytes / filler.length }, () => filler);
    this.#wake();
  }

  #take(bytes: Uint8Array): void {
    this.#scanner.push(bytes);
    for (let found = this.#scanner.next(); found; found = this.#scanner.next())
      if ("nonce" in found) this.#begin(found.nonce);
      else if (this.#understands) this.#understand(found.bytes);
      else this.hangUp();
  }

  #begin(nonce: Uint8Array): void {
    this.#understands = true;
    this.#hungUp = false;
    this.#frames.reset();
    this.#queue = [syncOf(nonce)];
    this.#speaker.begin();
    this.#wake();
  }

  #understand(bytes: Uint8Array): void {
    this.#frames.push(bytes);
    try {
      for (let frame = this.#frames.next(); frame; frame = this.#frames.next()) {
        const message = JSON.parse(new TextDecoder().decode(frame.header)) as HostMessage;
        this.#speaker.hear(message, frame.payload);
      }
    } catch (error) {
      process.stderr.write(`holdfast guest: what the host said made no sense: ${error}\n`);
      this.hangUp();
    }
  }

  async #sendNext(): Promise<void> {
    const next = this.#queue.shift() ?? (this.#understands ? this.#speaker.next() : undefined);
    if (next instanceof Uint8Array) return this.#port.write(next);
    if (next) return next.done(await this.#port.pull(next.pull));
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
  }
}
