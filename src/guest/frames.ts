/**
 * The bytes of one message: a length (u32), a header length (u32), a JSON header, the payload, and a
 * line feed, big-endian. Never allocates by a length it was told before it checked it.
 */
import { Fault } from "../core/fault.ts";
import { messageBytesMax } from "./guest.ts";

const lengthBytes = 4;
const headerLengthBytes = 4;
/**
 * No mark begins with it, so that a frame's last bytes never wait for what follows; and zeros after
 * a frame that was cut off can never complete it.
 */
const trailer = 0x0a;
const trailerBytes = 1;
const besideBytes = headerLengthBytes + trailerBytes;

export interface Frame {
  readonly header: Uint8Array;
  readonly payload: Uint8Array;
}

/** @throws Fault `invalid` over the limit, which the limits on what is accepted rule out. */
export function encodeFrame(header: object, payload: Uint8Array = empty): Uint8Array {
  const head = encoder.encode(JSON.stringify(header));
  const length = besideBytes + head.length + payload.length;
  if (length > messageBytesMax)
    throw new Fault("invalid", `a guest message of ${length} bytes is too long`, {
      code: "message_too_long",
    });
  const bytes = new Uint8Array(lengthBytes + length);
  const view = viewOf(bytes);
  view.setUint32(0, length);
  view.setUint32(lengthBytes, head.length);
  bytes.set(head, lengthBytes + headerLengthBytes);
  bytes.set(payload, lengthBytes + headerLengthBytes + head.length);
  bytes[lengthBytes + length - trailerBytes] = trailer;
  return bytes;
}

const encoder = new TextEncoder();
const empty = new Uint8Array();

/** Takes bytes as they come and gives whole frames. */
export class FrameReader {
  #chunks: Uint8Array[] = [];
  #held = 0;

  /** Bytes that wait for the rest of their frame. */
  get heldBytes(): number {
    return this.#held;
  }

  push(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    this.#chunks.push(bytes);
    this.#held += bytes.length;
  }

  reset(): void {
    this.#chunks = [];
    this.#held = 0;
  }

  /**
   * The next whole frame, if it is there; it lies in the bytes that were pushed.
   * @throws Fault `unavailable` when the bytes make no sense; none after them do.
   */
  next(): Frame | undefined {
    if (this.#held < lengthBytes) return undefined;
    const length = viewOf(this.#peek(lengthBytes)).getUint32(0);
    if (length < besideBytes || length > messageBytesMax)
      throw nonsense(`a message claims ${length} bytes`);
    if (this.#held < lengthBytes + length) return undefined;
    const bytes = this.#take(lengthBytes + length).subarray(lengthBytes);
    const headerLength = viewOf(bytes).getUint32(0);
    if (besideBytes + headerLength > length)
      throw nonsense("a message's header is longer than the message");
    if (bytes[length - trailerBytes] !== trailer) throw nonsense("a message has no end");
    const middle = headerLengthBytes + headerLength;
    return {
      header: bytes.subarray(headerLengthBytes, middle),
      payload: bytes.subarray(middle, length - trailerBytes),
    };
  }

  #peek(count: number): Uint8Array {
    const [first] = this.#chunks;
    if (first !== undefined && first.length >= count) return first.subarray(0, count);
    return this.#copy(count);
  }

  /** In one piece: copied only where it came in several. */
  #take(count: number): Uint8Array {
    const taken = this.#peek(count);
    let left = count;
    for (let [first] = this.#chunks; first !== undefined && left > 0; [first] = this.#chunks) {
      if (first.length > left) this.#chunks[0] = first.subarray(left);
      else this.#chunks.shift();
      left -= Math.min(left, first.length);
    }
    this.#held -= count;
    return taken;
  }

  #copy(count: number): Uint8Array {
    const bytes = new Uint8Array(count);
    let at = 0;
    for (const chunk of this.#chunks) {
      if (at === count) break;
      const some = chunk.subarray(0, count - at);
      bytes.set(some, at);
      at += some.length;
    }
    return bytes;
  }
}

function nonsense(why: string): Fault {
  return new Fault("unavailable", `guest channel: ${why}`, { code: "guest_protocol" });
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
}
