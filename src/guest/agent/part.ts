/**
 * The guest part: holds commands, says what became of them, and does what the host asks. Killed at
 * any moment it goes on from the files; it never starts a command whose directory is claimed.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isId } from "../../core/ids.ts";
import { encodeFrame, FrameReader, MarkFinder, mark } from "../frames.ts";
import {
  type GuestMessage,
  type HostMessage,
  type LaunchMessage,
  outputWindowBytes,
  protocolVersion,
} from "../guest.ts";
import { removeCgroup } from "./cgroups.ts";
import { Held } from "./held.ts";
import type { Port } from "./port.ts";
import { isRunner, spawnRunner, writeSpec } from "./runner.ts";
import { signalGroup } from "./signals.ts";

export interface PartOptions {
  port: Port;
  /** On tmpfs: commands must be gone when the VM is. */
  runDirectory: string;
  /** The static runner. */
  runnerPath: string;
  bootId: string;
  version: string;
  /** Where commands get a cgroup each; undefined = none. */
  cgroups: string | undefined;
  powerOff: () => void;
  setClock: (hostTimeMs: number) => void;
}

const commandsMax = 4096;
const lookPeriodMs = 2_000;
/** How long the host may take to have recorded the ends, when everything is to end. */
const settleMs = 5_000;

export class GuestPart {
  readonly #options: PartOptions;
  readonly #held = new Map<string, Held>();
  readonly #reader = new FrameReader();
  readonly #finder = new MarkFinder();
  #queue: Uint8Array[] = [];
  #connected = false;
  #poweringOff = false;
  #session = 0;
  #turn = 0;
  #wakeSender: () => void = () => {};

  constructor(options: PartOptions) {
    this.#options = options;
    mkdirSync(this.#commandsDirectory, { recursive: true });
    for (const id of readdirSync(this.#commandsDirectory)) this.#hold(id);
  }

  get #commandsDirectory(): string {
    return join(this.#options.runDirectory, "commands");
  }

  /** For ever. */
  async run(): Promise<never> {
    this.#options.port.listen((bytes) => this.#take(bytes));
    setInterval(() => this.#lookAtRunners(), lookPeriodMs);
    while (true) await this.#sendNext();
  }

  /** A runner says that something happened to its command. */
  wake(id: string): void {
    const held = this.#held.get(id);
    if (held) this.#report(held);
  }

  /** A mark begins a connection afresh, wherever it stands. */
  #take(bytes: Uint8Array): void {
    const found = this.#finder.find(bytes);
    if (found) {
      this.#session++;
      this.#connected = false;
      this.#reader.reset();
      this.#queue = [Buffer.concat([mark, found.nonce])];
      this.#wakeSender();
      return this.#take(found.rest);
    }
    this.#reader.push(bytes);
    try {
      for (let frame = this.#reader.next(); frame; frame = this.#reader.next())
        this.#hear(JSON.parse(new TextDecoder().decode(frame.header)), frame.payload);
    } catch (error) {
      // What a connection that broke off left behind; the next mark puts it right.
      process.stderr.write(`holdfast: dropped what made no sense: ${error}\n`);
      this.#reader.reset();
    }
  }

  #hear(message: HostMessage, payload: Uint8Array): void {
    switch (message.type) {
      case "hello":
        return this.#greet(message.host_time_ms);
      case "launch":
        return this.#launch(message);
      case "stdin":
        return this.#takeStdin(message, payload);
      case "signal":
        return this.#signal(message);
      case "ack":
        this.#held.get(message.command_id)?.acknowledge(message.offset);
        return this.#wakeSender();
      case "forget":
        return this.#forget(message.command_id);
      case "power_off":
        return this.#powerOff(message.grace_ms);
      case "ping":
        return this.#say({ type: "pong", id: message.id, time_ms: Date.now() });
    }
  }

  #greet(hostTimeMs: number): void {
    this.#options.setClock(hostTimeMs);
    const { bootId: guest_boot_id, version } = this.#options;
    const uptime_ms = Math.round(Number(readFileSync("/proc/uptime", "utf8").split(" ")[0]) * 1000);
    this.#say({ type: "hello", protocol: protocolVersion, guest_boot_id, version, uptime_ms });
    this.#connected = true;
    for (const held of this.#held.values()) {
      held.rewind();
      this.#report(held);
    }
    this.#say({ type: "ready" });
  }

  #launch(message: LaunchMessage): void {
    const { command_id: id } = message;
    const refuse = (reason: "wrong_boot" | "malformed" | "powering_off"): void =>
      this.#say({ type: "launch_refused", command_id: id, reason });
    if (!isId("command", id)) return refuse("malformed");
    if (message.guest_boot_id !== this.#options.bootId) return refuse("wrong_boot");
    const known = this.#held.get(id);
    if (known?.isClaimed) {
      known.saidStarted = false;
      known.saidEnded = false;
      return this.#report(known);
    }
    if (this.#poweringOff || this.#held.size >= commandsMax) return refuse("powering_off");
    const held = known ?? this.#hold(id);
    writeSpec(held.directory, { message, cgroup: this.#cgroupOf(id), wake: this.#wakePath });
    spawnRunner(this.#options.runnerPath, held.directory);
  }

  get #wakePath(): string {
    return join(this.#options.runDirectory, "wake");
  }

  #cgroupOf(id: string): string {
    return this.#options.cgroups === undefined ? "" : join(this.#options.cgroups, id);
  }

  #hold(id: string): Held {
    const directory = join(this.#commandsDirectory, id);
    mkdirSync(directory, { recursive: true });
    const held = new Held(directory, id);
    this.#held.set(id, held);
    return held;
  }

  #takeStdin(message: Extract<HostMessage, { type: "stdin" }>, payload: Uint8Array): void {
    const held = this.#held.get(message.command_id);
    if (!held) return;
    held.takeStdin(message.offset, payload, message.eof);
    const runner = held.runnerPid();
    if (runner !== undefined && isRunner(runner, held.id)) process.kill(runner, "SIGUSR1");
    held.owesStdin = true;
    this.#report(held);
  }

  #signal(message: Extract<HostMessage, { type: "signal" }>): void {
    const { command_id, request_id, signal } = message;
    const held = this.#held.get(command_id);
    const delivered = held !== undefined && !held.hasEnded && this.#deliver(held, signal);
    this.#say({ type: "signal_done", command_id, request_id, delivered });
  }

  #deliver(held: Held, signal: Extract<HostMessage, { type: "signal" }>["signal"]): boolean {
    const started = held.started();
    if (!started) return false;
    held.recordSignal(signal);
    const killFile = join(this.#cgroupOf(held.id), "cgroup.kill");
    if (signal === "KILL" && killFile !== "cgroup.kill" && existsSync(killFile)) {
      writeFileSync(killFile, "1");
      return true;
    }
    return signalGroup(started.pid, signal);
  }

  #forget(id: string): void {
    const held = this.#held.get(id);
    if (!held?.hasEnded) return;
    held.remove();
    this.#held.delete(id);
    if (this.#options.cgroups !== undefined) removeCgroup(this.#cgroupOf(id));
    this.#wakeSender();
  }

  #powerOff(graceMs: number): void {
    this.#say({ type: "powering_off" });
    if (this.#poweringOff) return;
    this.#poweringOff = true;
    void this.#endAll(graceMs);
  }

  async #endAll(graceMs: number): Promise<void> {
    const running = (): Held[] => [...this.#held.values()].filter((held) => !held.hasEnded);
    for (const held of running()) this.#deliver(held, "TERM");
    await waitUntil(graceMs, () => running().length === 0);
    for (const held of running()) this.#deliver(held, "KILL");
    // What the host has on record it tells us to forget; a host that is away is not waited for long.
    await waitUntil(settleMs, () => this.#held.size === 0);
    this.#options.powerOff();
  }

  /** Says what is known and was not said on this connection. */
  #report(held: Held): void {
    if (!this.#connected) return;
    const { id: command_id } = held;
    const started = held.saidStarted ? undefined : held.started();
    if (started) {
      held.saidStarted = true;
      this.#say({ type: "started", command_id, pid: started.pid, at_ms: started.atMs });
    }
    if (held.owesStdin && !held.stdinFull) {
      held.owesStdin = false;
      const { stdinTaken: offset, stdinClosed: closed } = held;
      this.#say({ type: "stdin_taken", command_id, offset, closed });
    }
    this.#wakeSender();
  }

  /** A claim without a living runner and without an end will never get one. */
  #lookAtRunners(): void {
    for (const held of this.#held.values()) {
      const runner = held.runnerPid();
      if (runner !== undefined && !isRunner(runner, held.id) && !held.hasEnded) held.writeLostEnd();
      this.#report(held);
    }
  }

  #say(message: GuestMessage): void {
    this.#queue.push(encodeFrame(message));
    this.#wakeSender();
  }

  async #sendNext(): Promise<void> {
    const session = this.#session;
    const bytes = this.#queue.shift() ?? (this.#connected ? this.#nextOutput() : undefined);
    if (bytes) return this.#options.port.write(bytes);
    await new Promise<void>((resolve) => {
      this.#wakeSender = resolve;
      if (this.#queue.length > 0 || session !== this.#session) resolve();
    });
  }

  /** One piece of the next command that has one, so that a flood of one does not silence the rest. */
  #nextOutput(): Uint8Array | undefined {
    const all = [...this.#held.values()];
    for (let tries = 0; tries < all.length; tries++) {
      const held = all[this.#turn++ % all.length] as Held;
      const bytes = this.#outputOf(held);
      if (bytes) return bytes;
    }
    return undefined;
  }

  #outputOf(held: Held): Uint8Array | undefined {
    if (held.sent - held.acked >= outputWindowBytes) return undefined;
    // Looked at before the spool: output that came in between is then found there.
    const ended = held.saidEnded ? undefined : held.ended();
    const piece = held.takePiece();
    if (piece) return piece;
    if (!ended || held.sent < ended.output_bytes) return undefined;
    held.saidEnded = true;
    this.#report(held);
    return encodeFrame(ended);
  }
}

async function waitUntil(ms: number, look: () => boolean): Promise<void> {
  const end = performance.now() + ms;
  while (!look() && performance.now() < end) await Bun.sleep(50);
}
