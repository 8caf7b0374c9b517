/**
 * The bytes of the guest channel. One message is a length (u32), a header length (u32), a JSON
 * header, and the rest as payload, big-endian. A connection begins with a mark and a nonce, because
 * a virtio-serial port carries on in mid-message what an earlier connection left behind.
 * Never allocates by a length it was told before it checked it.
 */
import { Fault } from "../core/fault.ts";
import { messageBytesMax } from "./guest.ts";

/** No UTF-8 text holds these bytes, so that no JSON header can be taken for a mark. */
export const mark = Uint8Array.from([
  0xff, 0x00, 0xfe, 0x48, 0x4f, 0x4c, 0x44, 0xff, 0x46, 0x41, 0x53, 0x54, 0xc0, 0x00, 0xc1, 0xff,
]);
export const nonceBytes = 16;
const lengthBytes = 4;
const headerLengthBytes = 4;

export interface Frame {
  readonly header: Uint8Array;
  readonly payload: Uint8Array;
}

/** @throws Fault `invalid` over the limit, which the limits on what is accepted rule out. */
export function encodeFrame(header: object, payload: Uint8Array = empty): Uint8Array {
  const head = encoder.encode(JSON.stringify(header));
  const length = headerLengthBytes + head.length + payload.length;
  if (length > messageBytesMax)
    throw new Fault("invalid", `a guest message of ${length} bytes is too long`, {
      code: "message_too_long",
    });
  const bytes = new Uint8Array(lengthBytes + length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, length);
  view.setUint32(lengthBytes, head.length);
  bytes.set(head, lengthBytes + headerLengthBytes);
  bytes.set(payload, lengthBytes + headerLengthBytes + head.length);
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

  /** The next whole frame, if it is there. @throws Fault `unavailable` when the bytes make no sense. */
  next(): Frame | undefined {
    if (this.#held < lengthBytes) return undefined;
    const length = viewOf(this.#peek(lengthBytes)).getUint32(0);
    if (length < headerLengthBytes || length > messageBytesMax)
      throw new Fault("unavailable", `a guest message claims ${length} bytes`, {
        code: "guest_protocol",
      });
    if (this.#held < lengthBytes + length) return undefined;
    const bytes = this.#take(lengthBytes + length).subarray(lengthBytes);
    const headerLength = viewOf(bytes).getUint32(0);
    if (headerLengthBytes + headerLength > length)
      throw new Fault("unavailable", "a guest message's header is longer than the message", {
        code: "guest_protocol",
      });
    const end = headerLengthBytes + headerLength;
    return { header: bytes.subarray(headerLengthBytes, end), payload: bytes.subarray(end) };
  }

  #peek(count: number): Uint8Array {
    const first = this.#chunks[0];
    if (first !== undefined && first.length >= count) return first.subarray(0, count);
    this.#chunks = [concat(this.#chunks)];
    return (this.#chunks[0] ?? empty).subarray(0, count);
  }

  #take(count: number): Uint8Array {
    let first = this.#chunks[0] ?? empty;
    if (first.length < count) {
      first = concat(this.#chunks);
      this.#chunks = [first];
    }
    if (first.length === count) this.#chunks.shift();
    else this.#chunks[0] = first.subarray(count);
    this.#held -= count;
    return first.subarray(0, count);
  }
}

/**
 * Looks for the mark in a stream of bytes, across any cuts. What came before it is not part of any
 * frame once the mark is found.
 */
export class MarkFinder {
  #tail: Uint8Array = empty;

  /** The bytes after mark and nonce, if both are there now; the nonce with them. */
  find(bytes: Uint8Array): { nonce: Uint8Array; rest: Uint8Array } | undefined {
    const all = this.#tail.length === 0 ? bytes : concat([this.#tail, bytes]);
    const at = indexOfMark(all);
    const need = mark.length + nonceBytes;
    if (at >= 0 && all.length >= at + need) {
      this.#tail = empty;
      return { nonce: all.slice(at + mark.length, at + need), rest: all.subarray(at + need) };
    }
    this.#tail = at >= 0 ? all.slice(at) : all.slice(Math.max(0, all.length - mark.length + 1));
    return undefined;
  }
}

export function indexOfMark(bytes: Uint8Array): number {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).indexOf(mark);
}

export function concat(chunks: readonly Uint8Array[]): Uint8Array {
  return chunks.length === 1 ? (chunks[0] as Uint8Array) : Buffer.concat(chunks as Uint8Array[]);
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
}
