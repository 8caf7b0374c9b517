/**
 * A command's output on its way to the host: what the host has of it, and what the bridge was told
 * to send. The bytes themselves lie in segment files (spool.h) that the runner writes and the bridge
 * reads. Never removes what was not acknowledged.
 */
import { closeSync, existsSync, openSync, readdirSync, readSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { MiB } from "../../core/units.ts";

const headBytes = 13;
const lengthAt = 9;
/** No segment is shorter, but the newest: less is not worth a look. */
const segmentBytes = MiB;

export class Spool {
  readonly directory: string;
  /** Bytes of output acknowledged by the host, and handed to it in this conversation. */
  #acked: number;
  #sent: number;
  #prunedAt: number;
  /** Which conversation it is; what was asked for in an earlier one counts for nothing. */
  #turn = 0;

  constructor(directory: string) {
    this.directory = directory;
    this.#acked = this.#segments()[0] ?? 0;
    this.#sent = this.#acked;
    this.#prunedAt = this.#acked;
  }

  get sent(): number {
    return this.#sent;
  }

  get unacknowledgedBytes(): number {
    return this.#sent - this.#acked;
  }

  /** Whether the program has ever written anything. */
  get hasOutput(): boolean {
    return existsSync(this.directory);
  }

  /** What to call with the offset that was reached; returns whether that was further. */
  sending(): (reached: number) => boolean {
    const turn = this.#turn;
    return (reached) => {
      if (turn !== this.#turn || reached <= this.#sent) return false;
      this.#sent = reached;
      return true;
    };
  }

  /** What the host has need not be kept: that makes room for what the program writes next. */
  acknowledge(offset: number): void {
    if (offset <= this.#acked) return;
    this.#acked = offset;
    // The host has more than we know of: an earlier guest part sent it.
    if (offset > this.#sent) this.rewind();
    if (offset - this.#prunedAt >= segmentBytes) this.#prune();
  }

  /** A new listener: everything after the last acknowledgement is handed out again. */
  rewind(): void {
    this.#turn++;
    this.#sent = this.#acked;
  }

  /** Where the last whole frame ends; for a runner that is gone. */
  end(): number {
    const start = this.#segments().at(-1);
    if (start === undefined) return this.#sent;
    const fd = openSync(this.#pathOf(start), "r");
    const length = lengthOfFrames(fd);
    closeSync(fd);
    return start + length;
  }

  /** Segments whose successor begins at or before the last acknowledgement are done with. */
  #prune(): void {
    const segments = this.#segments();
    for (const [index, start] of segments.entries()) {
      if ((segments[index + 1] ?? Number.POSITIVE_INFINITY) > this.#acked) break;
      unlinkSync(this.#pathOf(start));
      this.#prunedAt = segments[index + 1] as number;
    }
  }

  #segments(): number[] {
    if (!existsSync(this.directory)) return [];
    return readdirSync(this.directory)
      .map((name) => Number.parseInt(name, 16))
      .sort((one, other) => one - other);
  }

  #pathOf(start: number): string {
    return join(this.directory, start.toString(16).padStart(16, "0"));
  }
}

/** Of the whole ones; one that was cut off counts for nothing. */
function lengthOfFrames(fd: number): number {
  const head = Buffer.alloc(headBytes);
  const last = Buffer.alloc(1);
  let [position, bytes] = [0, 0];
  while (readSync(fd, head, 0, headBytes, position) === headBytes) {
    const length = head.readUInt32LE(lengthAt);
    if (readSync(fd, last, 0, 1, position + headBytes + length - 1) !== 1) break;
    position += headBytes + length;
    bytes += length;
  }
  return bytes;
}
