/**
 * One command as its directory tells it: claimed, started, writing, ended. Everything is in files
 * under /run, so that a guest part that was killed finds it all again.
 */
import {
  appendFileSync,
  closeSync,
  existsSync,
  fstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { encodeFrame } from "../frames.ts";
import type { CommandEnd, GuestMessage, LaunchFailure, SignalName } from "../guest.ts";
import { signalName } from "./signals.ts";

type Ended = Extract<GuestMessage, { type: "ended" }>;

const frameHeadBytes = 13;
/** Stdin that may wait for the program before more is taken. */
const stdinWaitingBytesMax = 1024 * 1024;

export class Held {
  readonly id: string;
  readonly directory: string;
  saidStarted = false;
  saidEnded = false;
  /** Bytes of output acknowledged by the host, and handed to the port. */
  acked = 0;
  sent = 0;
  /** Stdin of which the host was not told yet that it was taken. */
  owesStdin = false;
  #fd: number | undefined;
  #segmentStart = -1;
  #position = 0;

  constructor(directory: string, id: string) {
    this.directory = directory;
    this.id = id;
    this.acked = this.#segments()[0] ?? 0;
    this.sent = this.acked;
  }

  get isClaimed(): boolean {
    return existsSync(join(this.directory, "claim"));
  }

  get hasEnded(): boolean {
    return existsSync(join(this.directory, "ended"));
  }

  /** The program's process, also its process group and session. */
  started(): { pid: number; atMs: number } | undefined {
    const [pid, atMs] = (this.#read("started") ?? "").trim().split(" ").map(Number);
    return pid && atMs ? { pid, atMs } : undefined;
  }

  ended(): Ended | undefined {
    const text = this.#read("ended");
    if (text === undefined) return undefined;
    const words = new Map(
      text
        .trim()
        .split(" ")
        .map((word) => word.split("=", 2) as [string, string]),
    );
    const number = (name: string): number => Number(words.get(name) ?? 0);
    return {
      type: "ended",
      command_id: this.id,
      end: endOf(words),
      usage: {
        cpu_ms: Math.max(0, number("cpu_ms")),
        memory_peak_bytes: number("peak") > 0 ? number("peak") : null,
        oom_kills: Math.max(0, number("oom")),
      },
      at_ms: number("at"),
      output_bytes: number("output"),
      signalled: (this.#read("signalled")?.trim() as SignalName | undefined) ?? null,
    };
  }

  /** A runner that is gone without having written an end leaves one that says so. */
  writeLostEnd(): void {
    const output = this.#outputEnd();
    writeFileSync(
      join(this.directory, "ended"),
      `kind=unknown exit=-1 signal=0 output=${output} at=${Date.now()}\n`,
    );
  }

  runnerPid(): number | undefined {
    const pid = Number(this.#read("claim")?.trim());
    return pid > 0 ? pid : undefined;
  }

  /** The next piece behind `sent` as a message, if it is written whole. */
  takePiece(): Uint8Array | undefined {
    const frame = this.#nextFrame();
    if (!frame) return undefined;
    const { stream, at_ms, length } = frame;
    const header = { type: "output", command_id: this.id, offset: this.sent, stream, at_ms };
    const bytes = encodeFrame(header, new Uint8Array(length));
    // Read to where it is sent from: output is not copied again.
    const from = this.#position + frameHeadBytes;
    readSync(this.#fd as number, bytes, bytes.length - length, length, from);
    this.#advance(length);
    return bytes;
  }

  #nextFrame(): { stream: "stdout" | "stderr"; at_ms: number; length: number } | undefined {
    if (!this.#seek()) return undefined;
    const fd = this.#fd as number;
    const head = Buffer.alloc(frameHeadBytes);
    const size = fstatSync(fd).size;
    if (size < this.#position + frameHeadBytes) return undefined;
    readSync(fd, head, 0, frameHeadBytes, this.#position);
    const length = head.readUInt32LE(9);
    if (size < this.#position + frameHeadBytes + length) return undefined;
    const stream = head[0] === 2 ? "stderr" : "stdout";
    return { stream, at_ms: Number(head.readBigUInt64LE(1)), length };
  }

  #advance(length: number): void {
    this.#position += frameHeadBytes + length;
    this.sent += length;
  }

  /** What the host has need not be kept: that makes room for what the program writes next. */
  acknowledge(offset: number): void {
    if (offset <= this.acked) return;
    this.acked = offset;
    const segments = this.#segments();
    // A segment ends where the next begins; the last one may still grow.
    for (const [index, start] of segments.entries()) {
      const end = segments[index + 1];
      if (end !== undefined && end <= offset && start !== this.#segmentStart)
        unlinkSync(this.#pathOf(start));
    }
  }

  /** A new connection: everything after the last acknowledgement is said again. */
  rewind(): void {
    this.saidStarted = false;
    this.saidEnded = false;
    this.sent = this.acked;
    this.#closeSegment();
  }

  get stdinTaken(): number {
    const path = join(this.directory, "stdin");
    return existsSync(path) ? statSync(path).size : 0;
  }

  get stdinClosed(): boolean {
    return ["stdin.eof", "stdin.closed"].some((name) => existsSync(join(this.directory, name)));
  }

  /** Whether the program has yet to read so much that no more is taken for now. */
  get stdinFull(): boolean {
    const path = join(this.directory, "stdin");
    return existsSync(path) && statSync(path).blocks * 512 > stdinWaitingBytesMax;
  }

  takeStdin(offset: number, payload: Uint8Array, eof: boolean): void {
    const taken = this.stdinTaken;
    if (offset > taken || this.stdinClosed) return;
    appendFileSync(join(this.directory, "stdin"), payload.subarray(taken - offset));
    if (eof) writeFileSync(join(this.directory, "stdin.eof"), "");
  }

  recordSignal(signal: SignalName): void {
    const path = join(this.directory, "signalled");
    if (!existsSync(path)) writeFileSync(path, signal);
  }

  remove(): void {
    this.#closeSegment();
    rmSync(this.directory, { recursive: true, force: true });
  }

  /** Opens the segment that holds `sent` and stands where its frame begins. */
  #seek(): boolean {
    const segments = this.#segments();
    const start = segments.filter((each) => each <= this.sent).at(-1);
    if (start === undefined) return false;
    if (start === this.#segmentStart) return true;
    this.#closeSegment();
    this.#fd = openSync(this.#pathOf(start), "r");
    this.#segmentStart = start;
    this.#position = 0;
    this.#skipTo(start);
    return true;
  }

  /** Frames are not cut: an acknowledgement in the middle of one repeats that one whole. */
  #skipTo(start: number): void {
    const head = Buffer.alloc(frameHeadBytes);
    let at = start;
    while (at < this.sent) {
      if (readSync(this.#fd as number, head, 0, frameHeadBytes, this.#position) < frameHeadBytes)
        break;
      const length = head.readUInt32LE(9);
      if (at + length > this.sent) break;
      at += length;
      this.#position += frameHeadBytes + length;
    }
    this.sent = at;
  }

  #closeSegment(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
    this.#segmentStart = -1;
  }

  #segments(): number[] {
    const spool = join(this.directory, "spool");
    if (!existsSync(spool)) return [];
    return readdirSync(spool)
      .map((name) => Number.parseInt(name, 16))
      .sort((one, other) => one - other);
  }

  #pathOf(start: number): string {
    return join(this.directory, "spool", start.toString(16).padStart(16, "0"));
  }

  #outputEnd(): number {
    this.rewind();
    for (let frame = this.#nextFrame(); frame; frame = this.#nextFrame())
      this.#advance(frame.length);
    const end = this.sent;
    this.rewind();
    return end;
  }

  #read(name: string): string | undefined {
    const path = join(this.directory, name);
    return existsSync(path) ? readFileSync(path, "utf8") : undefined;
  }
}

function endOf(words: ReadonlyMap<string, string>): CommandEnd {
  const number = (name: string): number => Number(words.get(name) ?? -1);
  const exit_code = number("exit");
  const signal = number("signal") > 0 ? signalName(number("signal")) : null;
  switch (words.get("kind")) {
    case "exited":
      return { kind: "exited", exit_code };
    case "signal":
      return { kind: "signal", signal: signal ?? "KILL" };
    case "timed_out":
      return { kind: "timed_out", exit_code: exit_code < 0 ? null : exit_code, signal };
    case "oom":
      return {
        kind: "resource_exhausted",
        resource: "memory",
        limit_bytes: number("limit") > 0 ? number("limit") : null,
        peak_bytes: number("peak") > 0 ? number("peak") : null,
      };
    case "launch_failed":
      return {
        kind: "launch_failed",
        reason: (words.get("reason") ?? "other") as LaunchFailure,
        detail: `errno ${number("errno")}`,
      };
    default:
      return { kind: "unknown" };
  }
}
