/**
 * The guest part: holds commands, says what became of them, and does what the host asks. Killed at
 * any moment it goes on from the files; it never starts a command whose directory is claimed.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isId } from "../../core/ids.ts";
import { KiB } from "../../core/units.ts";
import { encodeFrame } from "../frames.ts";
import {
  type HostMessage,
  type LaunchMessage,
  outputWindowBytes,
  protocolVersion,
} from "../guest.ts";
import type { Cgroups } from "./cgroups.ts";
import { unlaunched } from "./ended.ts";
import { Held } from "./held.ts";
import { Link, type Output, type Speaker } from "./link.ts";
import type { Port } from "./port.ts";
import { isMalformed, spawnRunner, writeSpec } from "./runner.ts";
import { endCommands } from "./shutdown.ts";
import { signalCommand } from "./signals.ts";

export interface PartOptions {
  port: Port;
  /** On tmpfs: commands must be gone when the VM is. */
  runDirectory: string;
  /** The static runner. */
  runnerPath: string;
  bootId: string;
  version: string;
  cgroups: Cgroups;
  powerOff: () => void;
  setClock: (hostTimeMs: number) => void;
  /** Commands held at once, running or not yet forgotten. */
  commandsMax?: number;
}

type SignalMessage = Extract<HostMessage, { type: "signal" }>;
type StdinMessage = Extract<HostMessage, { type: "stdin" }>;

const lookPeriodMs = 2_000;
const commandsMaxDefault = 4096;
/** Output of one command while others wait. */
const turnBytes = 256 * KiB;
const roomBytesMin = outputWindowBytes / 2;

export class GuestPart implements Speaker {
  readonly #options: PartOptions;
  readonly #link: Link;
  readonly #held = new Map<string, Held>();
  /** Those that may have output to send, in turns. */
  #turns: Held[] = [];
  #greeted = false;
  #poweringOff = false;

  constructor(options: PartOptions) {
    this.#options = options;
    this.#link = new Link(options.port, this);
    // A predecessor's host waits for the rest of what that one said.
    if (existsSync(this.#commandsDirectory)) this.#link.hangUp();
    mkdirSync(this.#commandsDirectory, { recursive: true });
    for (const id of readdirSync(this.#commandsDirectory)) this.#hold(id);
  }

  get #commandsDirectory(): string {
    return join(this.#options.runDirectory, "commands");
  }

  /** For ever. */
  run(): Promise<never> {
    setInterval(() => this.#look(), lookPeriodMs);
    return this.#link.run();
  }

  /** A runner says that something happened to its command. */
  wake(id: string): void {
    const held = this.#held.get(id);
    if (held) this.#report(held);
  }

  begin(): void {
    this.#greeted = false;
  }

  hear(message: HostMessage, payload: Uint8Array): void {
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
        return this.#acknowledge(message.command_id, message.offset);
      case "forget":
        return this.#forget(message.command_id);
      case "power_off":
        return this.#powerOff(message.grace_ms);
      case "ping":
        return this.#link.say({ type: "pong", id: message.id, time_ms: Date.now() });
    }
  }

  /** In turns: a flood of one does not silence the rest. */
  next(): Uint8Array | Output | undefined {
    for (let held = this.#turns.shift(); held; held = this.#turns.shift()) {
      held.queued = false;
      const next = this.#outputOf(held);
      if (next) return next;
    }
    return undefined;
  }

  #greet(hostTimeMs: number): void {
    this.#options.setClock(hostTimeMs);
    const { bootId: guest_boot_id, version } = this.#options;
    const uptime_ms = Math.round(Number(readFileSync("/proc/uptime", "utf8").split(" ")[0]) * 1000);
    const hello = { protocol: protocolVersion, guest_boot_id, version, uptime_ms };
    this.#link.say({ type: "hello", ...hello });
    this.#greeted = true;
    for (const held of this.#held.values()) {
      held.rewind();
      this.#report(held);
    }
    this.#link.say({ type: "ready" });
  }

  #launch(message: LaunchMessage): void {
    const { command_id } = message;
    const refuse = (reason: "wrong_boot" | "malformed" | "powering_off"): void =>
      this.#link.say({ type: "launch_refused", command_id, reason });
    if (!isId("command", command_id) || isMalformed(message)) return refuse("malformed");
    if (message.guest_boot_id !== this.#options.bootId) return refuse("wrong_boot");
    const known = this.#held.get(command_id);
    if (known?.isClaimed || known?.hasEnded) return this.#repeat(known);
    if (this.#poweringOff) return refuse("powering_off");
    if (this.#held.size >= (this.#options.commandsMax ?? commandsMaxDefault))
      return this.#link.say(unlaunched(command_id, "too many commands are held"));
    this.#start(message);
  }

  /** It has been launched already: says what is known of it once more. */
  #repeat(held: Held): void {
    held.saidStarted = false;
    held.saidEnded = false;
    this.#report(held);
  }

  #start(message: LaunchMessage): void {
    const { command_id: id } = message;
    const { runDirectory, runnerPath, cgroups } = this.#options;
    try {
      const held = this.#held.get(id) ?? this.#hold(id);
      const wake = join(runDirectory, "wake");
      writeSpec(held.directory, { message, cgroup: cgroups.pathOf(id), wake });
      spawnRunner(runnerPath, held.directory);
    } catch (error) {
      const held = this.#held.get(id);
      if (held?.isClaimed) return;
      // The runner comes last, and one that finds no directory runs nothing.
      held?.remove();
      this.#held.delete(id);
      this.#link.say(unlaunched(id, String(error)));
    }
  }

  #hold(id: string): Held {
    const directory = join(this.#commandsDirectory, id);
    mkdirSync(directory, { recursive: true });
    const held = new Held(directory, id);
    this.#held.set(id, held);
    return held;
  }

  #acknowledge(id: string, offset: number): void {
    const held = this.#held.get(id);
    if (!held) return;
    held.spool.acknowledge(offset);
    this.#queue(held);
  }

  #takeStdin({ command_id, offset, eof }: StdinMessage, payload: Uint8Array): void {
    const held = this.#held.get(command_id);
    if (!held) return;
    held.takeStdin(offset, payload, eof);
    const runner = held.runnerPid();
    if (runner !== undefined) process.kill(runner, "SIGUSR1");
    held.owesStdin = true;
    this.#report(held);
  }

  #signal(message: SignalMessage): void {
    const held = this.#held.get(message.command_id);
    const known = held ? held.signalResult(message.request_id) : false;
    if (known !== undefined) return this.#answer(message, known);
    held?.waitingSignals.push(message);
    if (held) this.#report(held);
  }

  #answer({ command_id, request_id }: SignalMessage, delivered: boolean): void {
    this.#link.say({ type: "signal_done", command_id, request_id, delivered });
  }

  /** Signals wait until the program runs: asked for early is not asked for in vain. */
  #deliver(held: Held): void {
    const started = held.started();
    if (!started && !held.hasEnded) return;
    for (const message of held.waitingSignals.splice(0)) {
      const cgroup = this.#options.cgroups.pathOf(held.id);
      const alive = started !== undefined && !held.hasEnded;
      const delivered = alive && signalCommand(started.pid, cgroup, message.signal);
      held.recordSignal(message, delivered);
      this.#answer(message, delivered);
    }
  }

  #forget(id: string): void {
    const held = this.#held.get(id);
    if (!held?.hasEnded) return;
    held.remove();
    this.#held.delete(id);
    this.#turns = this.#turns.filter((each) => each !== held);
    this.#options.cgroups.remove(id);
  }

  #powerOff(graceMs: number): void {
    this.#link.say({ type: "powering_off" });
    if (this.#poweringOff) return;
    this.#poweringOff = true;
    const { cgroups, powerOff } = this.#options;
    void endCommands({ held: this.#held, cgroups, graceMs }).then(powerOff);
  }

  /** Says what is known and was not said in this conversation. */
  #report(held: Held): void {
    if (!this.#greeted) return;
    const { id: command_id } = held;
    const started = held.saidStarted ? undefined : held.started();
    if (started) {
      held.saidStarted = true;
      this.#link.say({ type: "started", command_id, pid: started.pid, at_ms: started.atMs });
    }
    if (held.waitingSignals.length > 0) this.#deliver(held);
    if (held.owesStdin && !held.stdinFull) {
      held.owesStdin = false;
      const { stdinTaken: offset, stdinClosed: closed } = held;
      this.#link.say({ type: "stdin_taken", command_id, offset, closed });
    }
    this.#queue(held);
  }

  /** In case a wake was lost; and a runner that was killed says nothing. */
  #look(): void {
    for (const held of this.#held.values()) {
      held.noteLostRunner();
      if (!held.saidEnded) this.#report(held);
    }
    this.#options.cgroups.sweep((id) => this.#held.has(id));
  }

  #queue(held: Held): void {
    if (!this.#greeted || held.queued || held.saidEnded) return;
    held.queued = true;
    this.#turns.push(held);
    this.#link.wake();
  }

  #outputOf(held: Held): Uint8Array | Output | undefined {
    const { spool, id: commandId } = held;
    const roomBytes = outputWindowBytes - spool.unacknowledgedBytes;
    // Not for every acknowledgement: there comes another while so much is on its way.
    if (roomBytes < roomBytesMin) return undefined;
    // Looked at before the spool: output that came in between is then found there.
    const ended = held.ended();
    if (ended && spool.sent >= ended.output_bytes) {
      held.saidEnded = true;
      return encodeFrame(ended);
    }
    if (!spool.hasOutput) return undefined;
    const { sent: from, directory } = spool;
    const until = from + Math.min(roomBytes, this.#turns.length > 0 ? turnBytes : roomBytes);
    const sending = spool.sending();
    const done = (reached = from): void => {
      if (sending(reached)) this.#queue(held);
    };
    return { pull: { directory, commandId, from, until }, done };
  }
}
