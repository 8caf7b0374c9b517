/**
 * What goes between the guest part and its bridge: length u32 big-endian, kind u8, then the bytes
 * (bridge.c has the kinds). Never joins bytes of the channel: they are handed on as they come.
 */
const headBytes = 5;

/** `bytes`: to or from the port. `pull`: put output in. `reached`: it is in, up to this offset. */
const kinds = { bytes: 0x62, pull: 0x70, reached: 0x72 } as const;

/** Output for the bridge to put into the channel by itself, between two other frames. */
export interface Pull {
  /** The command's spool. */
  readonly directory: string;
  readonly commandId: string;
  readonly from: number;
  /** It stops with the first piece that reaches this offset, or where there is no more yet. */
  readonly until: number;
}

export const bytesRecord = (bytes: Uint8Array): Uint8Array => record(kinds.bytes, bytes);

export function pullRecord({ directory, commandId, from, until }: Pull): Uint8Array {
  const fields = [directory, commandId, String(from), String(until)];
  return record(kinds.pull, Buffer.from(fields.map((field) => `${field}\0`).join("")));
}

function record(kind: number, bytes: Uint8Array): Uint8Array {
  const whole = Buffer.allocUnsafe(headBytes + bytes.length);
  whole.writeUInt32BE(bytes.length);
  whole[4] = kind;
  whole.set(bytes, headBytes);
  return whole;
}

export interface RecordTaker {
  bytes(bytes: Uint8Array): void;
  reached(offset: number): void;
}

/** Takes the bridge's bytes as they come. */
export class RecordReader {
  readonly #taker: RecordTaker;
  readonly #head = Buffer.alloc(headBytes);
  #headHas = 0;
  #left = 0;
  #text = "";

  constructor(taker: RecordTaker) {
    this.#taker = taker;
  }

  push(bytes: Uint8Array): void {
    for (let rest = bytes; rest.length > 0; )
      rest = this.#left > 0 ? this.#takeBody(rest) : this.#takeHead(rest);
  }

  #takeHead(bytes: Uint8Array): Uint8Array {
    const count = Math.min(headBytes - this.#headHas, bytes.length);
    this.#head.set(bytes.subarray(0, count), this.#headHas);
    this.#headHas += count;
    if (this.#headHas === headBytes) {
      this.#headHas = 0;
      this.#left = this.#head.readUInt32BE();
    }
    return bytes.subarray(count);
  }

  #takeBody(bytes: Uint8Array): Uint8Array {
    const body = bytes.subarray(0, this.#left);
    this.#left -= body.length;
    if (this.#head[4] === kinds.bytes) this.#taker.bytes(body);
    else this.#takeText(body);
    return bytes.subarray(body.length);
  }

  #takeText(body: Uint8Array): void {
    this.#text += Buffer.from(body).toString("latin1");
    if (this.#left > 0) return;
    this.#taker.reached(Number(this.#text));
    this.#text = "";
  }
}
