/**
 * A command's output on its way to the host: the segment files that the runner writes, read by
 * offset. Frames of a segment: stream u8, time ms u64, length u32, little-endian, then the bytes.
 * A segment is named by the output before it. Never removes what was not acknowledged.
 */
import {
  closeSync,
  existsSync,
  fstatSync,
  openSync,
  readdirSync,
  readSync,
  unlinkSync,
} from "node:fs";
import { join } from "node:path";
import { KiB } from "../../core/units.ts";
import { encodeAround, roomBefore } from "../frames.ts";

const headBytes = 13;
/** The longest frame that the runner writes; also the most in one message. */
export const pieceBytesMax = 256 * KiB;
const messageHeaderBytesMax = 300;
const room = roomBefore(messageHeaderBytesMax);
const readBytesMin = 16 * KiB;
/** Short writes of one stream within this time are told as one, with the time of the first. */
const togetherMs = 20;

/** A buffer for `Spool.take`, which may be shared by all that are not used at the same time. */
export function makeScratch(): Uint8Array {
  return new Uint8Array(room + headBytes + pieceBytesMax + 1);
}

interface Head {
  readonly stream: "stdout" | "stderr";
  readonly atMs: number;
  readonly length: number;
}

export class Spool {
  readonly #directory: string;
  readonly #commandId: string;
  /** Bytes of output acknowledged by the host, and handed out. */
  #acked: number;
  #sent: number;
  /** The segments from the oldest to the one that is read, by their offsets. */
  #opened: number[] = [];
  #fd: number | undefined;
  /** Where the next frame begins in the segment, and how much of it was handed out. */
  #position = 0;
  #skip = 0;
  #readBytes = readBytesMin;

  constructor(directory: string, commandId: string) {
    this.#directory = directory;
    this.#commandId = commandId;
    this.#acked = this.#segments()[0] ?? 0;
    this.#sent = this.#acked;
  }

  get sent(): number {
    return this.#sent;
  }

  get unacknowledgedBytes(): number {
    return this.#sent - this.#acked;
  }

  /** The next output as a message's frame, in `scratch`; undefined when there is none yet. */
  take(scratch: Uint8Array): Uint8Array | undefined {
    while (true) {
      const frame = this.#fd === undefined ? undefined : this.#takeFrom(this.#fd, scratch);
      if (frame || !this.#openNext()) return frame;
    }
  }

  /** What the host has need not be kept: that makes room for what the program writes next. */
  acknowledge(offset: number): void {
    if (offset <= this.#acked) return;
    this.#acked = offset;
    // The host has more than we know of: an earlier guest part sent it.
    if (offset > this.#sent) return this.rewind();
    while ((this.#opened[1] ?? Number.POSITIVE_INFINITY) <= offset)
      unlinkSync(this.#pathOf(this.#opened.shift() as number));
  }

  /** A new listener: everything after the last acknowledgement is handed out again. */
  rewind(): void {
    this.close();
    this.#sent = this.#acked;
  }

  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
    this.#opened = [];
  }

  /** Where the last whole frame ends; for a runner that is gone. */
  end(): number {
    const start = this.#segments().at(-1);
    if (start === undefined) return this.#sent;
    const fd = openSync(this.#pathOf(start), "r");
    const { offset } = walk(fd, start, Number.POSITIVE_INFINITY);
    closeSync(fd);
    return offset;
  }

  /** The segment that holds `sent`, or the one that was begun there since. */
  #openNext(): boolean {
    if (this.#fd === undefined) return this.#openFirst();
    if (this.#sent === this.#opened.at(-1) || !existsSync(this.#pathOf(this.#sent))) return false;
    closeSync(this.#fd);
    this.#fd = openSync(this.#pathOf(this.#sent), "r");
    this.#opened.push(this.#sent);
    this.#position = 0;
    this.#skip = 0;
    return true;
  }

  /** Stands at the last acknowledgement: segments that end before it are done with. */
  #openFirst(): boolean {
    const before = this.#segments().filter((each) => each <= this.#sent);
    const start = before.at(-1);
    if (start === undefined) return false;
    for (const done of before.slice(0, -1)) unlinkSync(this.#pathOf(done));
    this.#fd = openSync(this.#pathOf(start), "r");
    this.#opened = [start];
    const { position, offset } = walk(this.#fd, start, this.#sent);
    this.#position = position;
    this.#skip = this.#sent - offset;
    return true;
  }

  #takeFrom(fd: number, scratch: Uint8Array): Uint8Array | undefined {
    const have = this.#read(fd, scratch);
    const head = have < headBytes ? undefined : headIn(scratch, room);
    if (!head || have < headBytes + head.length) return undefined;
    const start = room + headBytes + this.#skip;
    const { end, taken } = joinFrames(scratch, { have, head, end: room + headBytes + head.length });
    const header = {
      type: "output",
      command_id: this.#commandId,
      offset: this.#sent,
      stream: head.stream,
      at_ms: head.atMs,
    };
    this.#position += taken;
    this.#skip = 0;
    this.#sent += end - start;
    this.#readBytes = Math.max(readBytesMin, Math.min(4 * taken, headBytes + pieceBytesMax));
    return encodeAround(scratch, { start, end }, header);
  }

  /** As much as was worth it the last time, but at least the first frame. */
  #read(fd: number, scratch: Uint8Array): number {
    const have = readSync(fd, scratch, room, this.#readBytes, this.#position);
    if (have < headBytes) return have;
    const need = headBytes + headIn(scratch, room).length;
    if (have >= need || have < this.#readBytes || need > headBytes + pieceBytesMax) return have;
    return have + readSync(fd, scratch, room + have, need - have, this.#position + have);
  }

  #segments(): number[] {
    if (!existsSync(this.#directory)) return [];
    return readdirSync(this.#directory)
      .map((name) => Number.parseInt(name, 16))
      .sort((one, other) => one - other);
  }

  #pathOf(start: number): string {
    return join(this.#directory, start.toString(16).padStart(16, "0"));
  }
}

/** Moves the bytes of further frames behind those of the first, as far as they belong together. */
function joinFrames(
  scratch: Uint8Array,
  first: { have: number; head: Head; end: number },
): { end: number; taken: number } {
  let { end } = first;
  let from = end;
  const limit = room + first.have;
  while (from + headBytes <= limit) {
    const next = headIn(scratch, from);
    const payload = from + headBytes;
    if (next.stream !== first.head.stream || next.atMs - first.head.atMs > togetherMs) break;
    if (payload + next.length > limit) break;
    scratch.copyWithin(end, payload, payload + next.length);
    end += next.length;
    from = payload + next.length;
  }
  return { end, taken: from - room };
}

function headIn(bytes: Uint8Array, at: number): Head {
  const view = new DataView(bytes.buffer, bytes.byteOffset + at, headBytes);
  return {
    stream: view.getUint8(0) === 2 ? "stderr" : "stdout",
    atMs: Number(view.getBigUint64(1, true)),
    length: view.getUint32(9, true),
  };
}

/** The last frame that begins at or before `until`: its place in the file, and its offset. */
function walk(fd: number, start: number, until: number): { position: number; offset: number } {
  const head = new Uint8Array(headBytes);
  const { size } = fstatSync(fd);
  let [position, offset] = [0, start];
  while (offset < until && readSync(fd, head, 0, headBytes, position) === headBytes) {
    const { length } = headIn(head, 0);
    if (position + headBytes + length > size || offset + length > until) break;
    position += headBytes + length;
    offset += length;
  }
  return { position, offset };
}
