/**
 * One command as its directory tells it: claimed, started, writing, ended. Everything is in files
 * under /run, so that a guest part that was killed finds it all again.
 */
import {
  appendFileSync,
  existsSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { KiB } from "../../core/units.ts";
import type { GuestMessage, HostMessage, SignalName } from "../guest.ts";
import { endedFrom, lostEnd } from "./ended.ts";
import { isRunner } from "./runner.ts";
import { Spool } from "./spool.ts";

type Ended = Extract<GuestMessage, { type: "ended" }>;
type SignalMessage = Extract<HostMessage, { type: "signal" }>;

/** Stdin that may wait for the program before more is taken. */
const stdinWaitingBytesMax = 1024 * KiB;

export class Held {
  readonly id: string;
  readonly directory: string;
  readonly spool: Spool;
  saidStarted = false;
  saidEnded = false;
  /** Whether it waits in the queue of those that may have output to send. */
  queued = false;
  /** Stdin of which the host was not told yet that it was taken. */
  owesStdin = false;
  /** Signals that came before the program ran. */
  readonly waitingSignals: SignalMessage[] = [];

  constructor(directory: string, id: string) {
    this.directory = directory;
    this.id = id;
    this.spool = new Spool(join(directory, "spool"));
  }

  /** A new listener has heard nothing. */
  rewind(): void {
    this.saidStarted = false;
    this.saidEnded = false;
    this.waitingSignals.length = 0;
    this.spool.rewind();
  }

  /** Whether a runner has taken it on. From then on no other ever does. */
  get isClaimed(): boolean {
    return this.#has("claim");
  }

  get hasEnded(): boolean {
    return this.#has("ended");
  }

  get runs(): boolean {
    return this.isClaimed && !this.hasEnded;
  }

  /** The program's process, also its process group and session. */
  started(): { pid: number; atMs: number } | undefined {
    const [pid, atMs] = (this.#read("started") ?? "").trim().split(" ").map(Number);
    return pid && atMs ? { pid, atMs } : undefined;
  }

  ended(): Ended | undefined {
    const text = this.#read("ended");
    const signalled = (this.#read("signalled")?.trim() as SignalName | undefined) ?? null;
    return text === undefined ? undefined : endedFrom(text, { command_id: this.id, signalled });
  }

  /** Its runner, while that lives. */
  runnerPid(): number | undefined {
    const pid = Number(this.#read("claim")?.trim());
    return pid > 0 && isRunner(pid, this.id) ? pid : undefined;
  }

  /** A runner that is gone without having written an end leaves one that says so. */
  noteLostRunner(): void {
    if (!this.runs || this.runnerPid() !== undefined || this.hasEnded) return;
    this.writeEnd(lostEnd(this.spool.end(), Date.now()));
  }

  /** @throws when /run has no room left. */
  writeEnd(line: string): void {
    const path = join(this.directory, "ended");
    writeFileSync(`${path}.new`, line);
    renameSync(`${path}.new`, path);
  }

  get stdinTaken(): number {
    const path = join(this.directory, "stdin");
    return existsSync(path) ? statSync(path).size : 0;
  }

  get stdinClosed(): boolean {
    return this.#has("stdin.eof") || this.#has("stdin.closed");
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
    if (eof && offset + payload.length >= taken)
      writeFileSync(join(this.directory, "stdin.eof"), "");
  }

  /** Whether a signal that is asked for again was delivered; undefined = it was never tried. */
  signalResult(requestId: string): boolean | undefined {
    const lines = (this.#read("signals") ?? "").split("\n");
    const line = lines.find((each) => each.startsWith(`${requestId} `));
    return line === undefined ? undefined : line.endsWith(" delivered");
  }

  recordSignal({ request_id, signal }: SignalMessage, delivered: boolean): void {
    const word = delivered ? "delivered" : "too-late";
    appendFileSync(join(this.directory, "signals"), `${request_id} ${word}\n`);
    if (delivered) this.noteSignal(signal);
  }

  /** The first one of ours; the host tells by it whether the end was asked for. */
  noteSignal(signal: SignalName): void {
    if (!this.#has("signalled")) writeFileSync(join(this.directory, "signalled"), signal);
  }

  remove(): void {
    rmSync(this.directory, { recursive: true, force: true });
  }

  #has(name: string): boolean {
    return existsSync(join(this.directory, name));
  }

  #read(name: string): string | undefined {
    const path = join(this.directory, name);
    return existsSync(path) ? readFileSync(path, "utf8") : undefined;
  }
}
