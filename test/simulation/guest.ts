/**
 * The simulated guest part: what survives in the VM (commands, their output, their ends), and the
 * protocol of src/guest/guest.ts on top. It counts what it really executes.
 */
import type {
  CommandEnd,
  GuestMessage,
  HostMessage,
  LaunchMessage,
} from "../../src/guest/guest.ts";
import { outputWindowBytes } from "../../src/guest/guest.ts";

export interface SimulatedCommand {
  readonly launch: LaunchMessage;
  output: Uint8Array;
  acked: number;
  sent: number;
  end: CommandEnd | undefined;
  signalled: "TERM" | "KILL" | "INT" | "HUP" | "QUIT" | null;
  endsAtMs: number;
  startedAtMs: number;
  stdin: number;
}

const usage = { cpu_ms: 1, memory_peak_bytes: 4096, oom_kills: 0 };
const pieceBytesMax = 700;

/** What a command does is decided by its argv: [milliseconds, bytes of output, exit code]. */
export interface Script {
  lastsMs: number;
  outputBytes: number;
  exitCode: number;
}

export function scriptOf(argv: readonly string[]): Script {
  const [lastsMs = 0, outputBytes = 0, exitCode = 0] = argv.slice(1).map(Number);
  return { lastsMs, outputBytes, exitCode };
}

/** The bytes a command writes: they tell which command and where, so that mix-ups show. */
export function outputOf(commandId: string, bytes: number): Uint8Array {
  const line = `${commandId} `;
  return new TextEncoder().encode(line.repeat(Math.ceil(bytes / line.length)).slice(0, bytes));
}

export class SimulatedGuest {
  readonly bootId: string;
  readonly commands = new Map<string, SimulatedCommand>();
  readonly #executed: Map<string, number>;
  #poweringOff = false;
  /** Set once it has asked its VM to end. */
  poweredOff = false;

  constructor(bootId: string, executed: Map<string, number>) {
    this.bootId = bootId;
    this.#executed = executed;
  }

  /** Everything it holds is said again: the host may have missed any of it. */
  greet(nowMs: number): GuestMessage[] {
    const messages: GuestMessage[] = [
      { type: "hello", protocol: 1, guest_boot_id: this.bootId, version: "sim", uptime_ms: nowMs },
    ];
    for (const [command_id, command] of this.commands) {
      command.sent = command.acked;
      messages.push({ type: "started", command_id, pid: 1, at_ms: command.startedAtMs });
    }
    return [...messages, { type: "ready" }];
  }

  hear(message: HostMessage, nowMs: number): GuestMessage[] {
    switch (message.type) {
      case "launch":
        return this.#launch(message, nowMs);
      case "ack": {
        const command = this.commands.get(message.command_id);
        if (command) command.acked = Math.max(command.acked, message.offset);
        return [];
      }
      case "forget":
        this.commands.delete(message.command_id);
        return [];
      case "signal":
        return this.#signal(message, nowMs);
      case "stdin":
        return this.#stdin(message);
      case "power_off":
        this.#powerOff(nowMs);
        return [{ type: "powering_off" }];
      case "ping":
        return [{ type: "pong", id: message.id, time_ms: nowMs }];
      case "hello":
        return this.greet(nowMs);
    }
  }

  /** What it has to say by itself now. `fresh` ends are said once per connection. */
  speak(nowMs: number, saidEnds: Set<string>): GuestMessage[] {
    const messages: GuestMessage[] = [];
    for (const [command_id, command] of this.commands) {
      this.#progress(command, nowMs);
      messages.push(...this.#output(command_id, command, nowMs));
      const drained = command.sent === command.output.length;
      if (!command.end || !drained || saidEnds.has(command_id)) continue;
      saidEnds.add(command_id);
      messages.push(this.#ended(command_id, command, command.end));
    }
    const quiet = [...this.commands.values()].every(({ end }) => end);
    if (this.#poweringOff && quiet && messages.length === 0) this.poweredOff = true;
    return messages;
  }

  #ended(command_id: string, command: SimulatedCommand, end: CommandEnd): GuestMessage {
    return {
      type: "ended",
      command_id,
      end,
      usage,
      at_ms: command.endsAtMs,
      output_bytes: command.output.length,
      signalled: command.signalled,
    };
  }

  #launch(message: LaunchMessage, nowMs: number): GuestMessage[] {
    const { command_id } = message;
    if (message.guest_boot_id !== this.bootId)
      return [{ type: "launch_refused", command_id, reason: "wrong_boot" }];
    const known = this.commands.get(command_id);
    if (!known && this.#poweringOff)
      return [{ type: "launch_refused", command_id, reason: "powering_off" }];
    if (!known) this.#execute(message, nowMs);
    return [{ type: "started", command_id, pid: 1, at_ms: nowMs }];
  }

  #execute(launch: LaunchMessage, nowMs: number): void {
    const { command_id } = launch;
    this.#executed.set(command_id, (this.#executed.get(command_id) ?? 0) + 1);
    const { lastsMs } = scriptOf(launch.argv);
    this.commands.set(command_id, {
      launch,
      output: new Uint8Array(),
      acked: 0,
      sent: 0,
      end: undefined,
      signalled: null,
      startedAtMs: nowMs,
      endsAtMs: nowMs + lastsMs,
      stdin: 0,
    });
  }

  /** Output grows with time; the end comes with its last byte. */
  #progress(command: SimulatedCommand, nowMs: number): void {
    if (command.end) return;
    const { launch, startedAtMs, endsAtMs } = command;
    const script = scriptOf(launch.argv);
    const share = script.lastsMs === 0 ? 1 : Math.min(1, (nowMs - startedAtMs) / script.lastsMs);
    const bytes = Math.floor(script.outputBytes * share);
    command.output = outputOf(launch.command_id, bytes);
    if (nowMs >= endsAtMs) command.end = { kind: "exited", exit_code: script.exitCode };
  }

  #output(command_id: string, command: SimulatedCommand, nowMs: number): GuestMessage[] {
    const messages: GuestMessage[] = [];
    while (command.sent < command.output.length) {
      if (command.sent - command.acked >= outputWindowBytes) break;
      const payload = command.output.slice(command.sent, command.sent + pieceBytesMax);
      const offset = command.sent;
      messages.push({
        type: "output",
        command_id,
        offset,
        stream: "stdout",
        at_ms: nowMs,
        payload,
      });
      command.sent += payload.length;
    }
    return messages;
  }

  #signal(message: Extract<HostMessage, { type: "signal" }>, nowMs: number): GuestMessage[] {
    const { command_id, request_id, signal } = message;
    const command = this.commands.get(command_id);
    const delivered = command !== undefined && command.end === undefined;
    if (delivered) this.#end(command, signal === "KILL" ? "KILL" : "TERM", nowMs);
    return [{ type: "signal_done", command_id, request_id, delivered }];
  }

  #end(command: SimulatedCommand, signal: "TERM" | "KILL", nowMs: number): void {
    this.#progress(command, nowMs);
    if (command.end) return;
    command.signalled = signal;
    command.end = { kind: "signal", signal };
    command.endsAtMs = nowMs;
  }

  #stdin({
    command_id,
    offset,
    eof,
    payload,
  }: Extract<HostMessage, { type: "stdin" }>): GuestMessage[] {
    const command = this.commands.get(command_id);
    if (!command) return [];
    if (offset <= command.stdin) command.stdin = Math.max(command.stdin, offset + payload.length);
    return [{ type: "stdin_taken", command_id, offset: command.stdin, closed: eof }];
  }

  #powerOff(nowMs: number): void {
    this.#poweringOff = true;
    for (const command of this.commands.values()) this.#end(command, "TERM", nowMs);
  }
}
