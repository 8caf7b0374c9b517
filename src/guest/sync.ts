/**
 * How a conversation begins on a stream that outlives both ends: a mark and a nonce, which may stand
 * anywhere, also in the middle of a frame that was never finished. The host sends these 16 bytes
 * nowhere else, so that the guest part can trust every one it sees.
 */

/**
 * No UTF-8 text holds the first byte, so that no JSON header can hold a mark. That byte stands
 * nowhere else in it: one that was cut off never swallows the beginning of the next.
 */
export const mark = Uint8Array.from([
  0xff, 0x00, 0xfe, 0x48, 0x4f, 0x4c, 0x44, 0xfd, 0x46, 0x41, 0x53, 0x54, 0xc0, 0x00, 0xc1, 0xfb,
]);
const markFirst = 0xff;
const nonceBytes = 16;
const syncBytes = mark.length + nonceBytes;

/** Seven bits a byte: a mark never begins in a nonce, so that one that was cut off is told apart. */
export function nonceFrom(random: Uint8Array): Uint8Array {
  return random.slice(0, nonceBytes).map((byte) => byte & 0x7f);
}

export function syncOf(nonce: Uint8Array): Uint8Array {
  return concat([mark, nonce]);
}

export type Scanned = { readonly nonce: Uint8Array } | { readonly bytes: Uint8Array };

/** Tells marks from the bytes between them, across any cuts. Keeps back less than one mark. */
export class MarkScanner {
  #unscanned: Uint8Array = empty;

  push(bytes: Uint8Array): void {
    this.#unscanned = this.#unscanned.length === 0 ? bytes : concat([this.#unscanned, bytes]);
  }

  /** The next mark's nonce, or bytes that are part of none; undefined until more comes. */
  next(): Scanned | undefined {
    const all = this.#unscanned;
    const at = indexOfMark(all);
    const plain = at >= 0 ? at : all.length - markPrefixAtEnd(all);
    if (plain > 0) return { bytes: this.#take(plain) };
    if (at < 0) return undefined;
    const nonce = all.subarray(mark.length, syncBytes);
    const cutAt = nonce.indexOf(markFirst);
    if (cutAt >= 0) {
      // Whoever wrote this one died in the middle of it; another one begins here.
      this.#take(mark.length + cutAt);
      return this.next();
    }
    if (nonce.length < nonceBytes) return undefined;
    return { nonce: this.#take(syncBytes).slice(mark.length) };
  }

  /** What was not looked at; nothing is kept back any more. */
  rest(): Uint8Array {
    return this.#take(this.#unscanned.length);
  }

  #take(count: number): Uint8Array {
    const taken = this.#unscanned.subarray(0, count);
    this.#unscanned = this.#unscanned.subarray(count);
    return taken;
  }
}

export function indexOfMark(bytes: Uint8Array): number {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).indexOf(mark);
}

/** How many of the last bytes may be the first ones of a mark. */
function markPrefixAtEnd(bytes: Uint8Array): number {
  for (let count = Math.min(mark.length - 1, bytes.length); count > 0; count--)
    if (startsMark(bytes.subarray(bytes.length - count))) return count;
  return 0;
}

function startsMark(bytes: Uint8Array): boolean {
  return bytes.every((byte, index) => byte === mark[index]);
}

export function concat(chunks: readonly Uint8Array[]): Uint8Array {
  return chunks.length === 1 ? (chunks[0] as Uint8Array) : Buffer.concat(chunks as Uint8Array[]);
}

const empty = new Uint8Array();
