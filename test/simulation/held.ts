/** One command inside a simulated VM: what its program does, and what its spool keeps of it. */
import type { CommandEnd, LaunchMessage, SignalName } from "../../src/guest/guest.ts";
import { outputWindowBytes } from "../../src/guest/guest.ts";
import type { Deeds } from "./deeds.ts";
import { type Plan, planOf } from "./programs.ts";

interface Spooled {
  readonly offset: number;
  readonly stream: "stdout" | "stderr";
  readonly data: Uint8Array;
  readonly atMs: number;
}

const ending: readonly SignalName[] = ["TERM", "INT", "HUP", "QUIT", "KILL"];

export class HeldCommand {
  readonly id: string;
  readonly startedAtMs: number;
  /** Bytes written so far. */
  bytes = 0;
  acked = 0;
  /** Where the present connection goes on. */
  sent = 0;
  end: CommandEnd | undefined;
  endedAtMs = 0;
  signalled: SignalName | null = null;
  /** Signal requests seen, and whether each was delivered. */
  readonly requests = new Map<string, boolean>();
  stdinBytes = 0;
  #stdinClosed: boolean;
  readonly #deeds: Deeds;
  readonly #launch: LaunchMessage;
  readonly #plan: Plan | undefined;
  #written = 0;
  #spool: Spooled[] = [];

  constructor(launch: LaunchMessage, deeds: Deeds, nowMs: number) {
    this.id = launch.command_id;
    this.startedAtMs = nowMs;
    this.#launch = launch;
    this.#deeds = deeds;
    this.#stdinClosed = !launch.stdin;
    this.#plan = planOf(launch.command_id, launch.argv);
    if (this.#plan?.copies && launch.stdin) deeds.copied.add(this.id);
    if (this.#plan) deeds.execute(this.id);
    else
      this.#finish({ kind: "launch_failed", reason: "not_found", detail: "no such file" }, nowMs);
  }

  get stdinClosed(): boolean {
    return this.#stdinClosed || this.end !== undefined;
  }

  /** When it does something next by itself; Infinity: never. */
  get dueAtMs(): number {
    if (this.end || !this.#plan) return Number.POSITIVE_INFINITY;
    const write = this.#plan.writes[this.#written]?.afterMs ?? Number.POSITIVE_INFINITY;
    const timeout = this.#launch.timeout_ms ?? Number.POSITIVE_INFINITY;
    if (this.#plan.copies && this.#stdinClosed) return this.startedAtMs;
    return this.startedAtMs + Math.min(write, this.#plan.lastsMs, timeout);
  }

  /** Does what is due. The end comes with the last byte. */
  progress(nowMs: number): void {
    while (!this.end && this.#plan) {
      const write = this.#plan.writes[this.#written];
      const sinceMs = nowMs - this.startedAtMs;
      const timeoutMs = this.#launch.timeout_ms ?? Number.POSITIVE_INFINITY;
      if (write && write.afterMs <= Math.min(sinceMs, timeoutMs)) {
        this.#written++;
        this.#write(write.stream, write.data, nowMs);
      } else if (this.#plan.copies && this.#stdinClosed) this.#exit(nowMs);
      else if (this.#plan.lastsMs <= Math.min(sinceMs, timeoutMs)) this.#exit(nowMs);
      else if (timeoutMs <= sinceMs)
        this.#finish({ kind: "timed_out", exit_code: null, signal: "TERM" }, nowMs);
      else return;
    }
  }

  /** Returns whether it was delivered. */
  signal(signal: SignalName, nowMs: number): boolean {
    this.progress(nowMs);
    if (this.end) return false;
    this.signalled ??= signal;
    const deaf = this.#plan?.ignoresTerm && signal !== "KILL";
    if (ending.includes(signal) && !deaf) this.#finish({ kind: "signal", signal }, nowMs);
    return true;
  }

  stdin(message: { offset: number; payload: Uint8Array; eof: boolean }, nowMs: number): void {
    if (this.stdinClosed || message.offset > this.stdinBytes) return;
    const fresh = message.payload.slice(this.stdinBytes - message.offset);
    this.stdinBytes += fresh.length;
    this.#deeds.read(this.id, fresh);
    if (this.#plan?.copies && fresh.length > 0) this.#write("stdout", fresh, nowMs);
    if (message.eof) this.#stdinClosed = true;
  }

  acknowledge(offset: number): void {
    this.acked = Math.max(this.acked, offset);
    this.#spool = this.#spool.filter((each) => each.offset + each.data.length > this.acked);
  }

  /** The next piece for the present connection, within the window. */
  nextPiece(bytesMax: number): Spooled | undefined {
    if (this.sent - this.acked >= outputWindowBytes) return undefined;
    const holds = ({ offset, data }: Spooled): boolean =>
      offset <= this.sent && this.sent < offset + data.length;
    const spooled = this.#spool.find(holds);
    if (!spooled) return undefined;
    const from = this.sent - spooled.offset;
    const data = spooled.data.subarray(from, from + bytesMax);
    const piece = { ...spooled, offset: this.sent, data };
    this.sent += data.length;
    return piece;
  }

  #write(stream: Spooled["stream"], data: Uint8Array, atMs: number): void {
    this.#spool.push({ offset: this.bytes, stream, data, atMs });
    this.bytes += data.length;
    this.#deeds.write(this.id, data);
  }

  #exit(nowMs: number): void {
    this.#finish({ kind: "exited", exit_code: this.#plan?.exitCode ?? 0 }, nowMs);
  }

  #finish(end: CommandEnd, nowMs: number): void {
    this.end = end;
    this.endedAtMs = nowMs;
    this.#deeds.ends.set(this.id, end);
  }
}
