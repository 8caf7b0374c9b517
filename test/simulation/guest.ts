/**
 * The simulated guest: its commands, which a kill of its guest part does not touch, and the
 * protocol of src/guest/guest.ts on top.
 */
import type { GuestMessage, HostMessage, LaunchMessage } from "../../src/guest/guest.ts";
import type { Deeds } from "./deeds.ts";
import { HeldCommand } from "./held.ts";

const usage = { cpu_ms: 1, memory_peak_bytes: 4096, oom_kills: 0 };
/** How long it stays once everything has ended and was said. */
const lingerMs = 300;
/** How long its ends may wait for somebody to hear them once their grace has passed. */
const unheardMs = 3_000;

export class SimulatedGuest {
  readonly bootId: string;
  readonly commands = new Map<string, HeldCommand>();
  readonly #deeds: Deeds;
  readonly #pieceBytesMax: number;
  /** Ends it has said on the present connection. */
  readonly #saidEnds = new Set<string>();
  #poweringOff: { killAtMs: number; quietAtMs: number | undefined } | undefined;
  /** Said next, whether it is true or not. */
  readonly lies: GuestMessage[] = [];
  /** Another boot than it is, if it lies about that. */
  claimedBootId: string | undefined;
  /** Set once it has asked its VM to end. */
  poweredOff = false;

  constructor(bootId: string, deeds: Deeds, pieceBytesMax = 700) {
    this.bootId = bootId;
    this.#deeds = deeds;
    this.#pieceBytesMax = pieceBytesMax;
  }

  /** The guest part is killed and started again: what it did not write down is gone. */
  restart(): void {
    this.#poweringOff = undefined;
  }

  hear(message: HostMessage, nowMs: number): GuestMessage[] {
    switch (message.type) {
      case "hello":
        return this.#greet(nowMs);
      case "launch":
        return this.#launch(message, nowMs);
      case "ack":
        this.commands.get(message.command_id)?.acknowledge(message.offset);
        return [];
      case "forget":
        this.commands.delete(message.command_id);
        return [];
      case "signal":
        return this.#signal(message, nowMs);
      case "stdin":
        return this.#stdin(message, nowMs);
      case "power_off":
        return this.#powerOff(message.grace_ms, nowMs);
      case "ping":
        return [{ type: "pong", id: message.id, time_ms: nowMs }];
    }
  }

  /** What it has to say by itself now; an end once per connection, behind all of its output. */
  speak(nowMs: number): GuestMessage[] {
    this.tick(nowMs);
    const messages: GuestMessage[] = [];
    for (const command of this.commands.values()) {
      messages.push(...this.#output(command));
      if (!command.end || command.sent < command.bytes || this.#saidEnds.has(command.id)) continue;
      this.#saidEnds.add(command.id);
      messages.push(endOf(command));
    }
    this.#observeQuiet(nowMs);
    return [...messages, ...this.lies.splice(0)];
  }

  /** Time passes inside, whether or not anybody listens. */
  tick(nowMs: number): void {
    for (const command of this.commands.values()) command.progress(nowMs);
    const off = this.#poweringOff;
    if (!off) return;
    if (nowMs >= off.killAtMs)
      for (const command of this.commands.values()) command.signal("KILL", nowMs);
    const quiet = off.quietAtMs !== undefined && nowMs >= off.quietAtMs + lingerMs;
    if (quiet || nowMs >= off.killAtMs + unheardMs) this.poweredOff = true;
  }

  /** When it does something by itself next; Infinity: never. */
  get dueAtMs(): number {
    const off = this.#poweringOff;
    const offAt = off ? [off.killAtMs, (off.quietAtMs ?? off.killAtMs) + lingerMs] : [];
    const commands = [...this.commands.values()].map(({ dueAtMs }) => dueAtMs);
    return Math.min(...offAt, ...commands, Number.POSITIVE_INFINITY);
  }

  /** Everything it holds is said again: the host may have missed any of it. */
  #greet(nowMs: number): GuestMessage[] {
    this.#saidEnds.clear();
    const guest_boot_id = this.claimedBootId ?? this.bootId;
    const messages: GuestMessage[] = [
      { type: "hello", protocol: 1, guest_boot_id, version: "sim", uptime_ms: 1 },
    ];
    for (const command of this.commands.values()) {
      command.progress(nowMs);
      command.sent = command.acked;
      messages.push(...startOf(command));
    }
    return [...messages, { type: "ready" }];
  }

  #launch(message: LaunchMessage, nowMs: number): GuestMessage[] {
    const { command_id } = message;
    this.#deeds.launch(command_id, message.guest_boot_id);
    if (message.guest_boot_id !== this.bootId)
      return [{ type: "launch_refused", command_id, reason: "wrong_boot" }];
    const known = this.commands.get(command_id);
    if (known) {
      // A resend is answered with all that is known.
      this.#saidEnds.delete(command_id);
      return startOf(known);
    }
    if (this.#poweringOff) return [{ type: "launch_refused", command_id, reason: "powering_off" }];
    const command = new HeldCommand(message, this.#deeds, nowMs);
    this.commands.set(command_id, command);
    return startOf(command);
  }

  #output(command: HeldCommand): GuestMessage[] {
    const messages: GuestMessage[] = [];
    while (true) {
      const piece = command.nextPiece(this.#pieceBytesMax);
      if (!piece) return messages;
      const { offset, stream, atMs: at_ms, data: payload } = piece;
      messages.push({ type: "output", command_id: command.id, offset, stream, at_ms, payload });
    }
  }

  #signal(message: Extract<HostMessage, { type: "signal" }>, nowMs: number): GuestMessage[] {
    const { command_id, request_id, signal } = message;
    const command = this.commands.get(command_id);
    const before = command?.requests.get(request_id);
    const delivered = before ?? command?.signal(signal, nowMs) ?? false;
    command?.requests.set(request_id, delivered);
    return [{ type: "signal_done", command_id, request_id, delivered }];
  }

  #stdin(message: Extract<HostMessage, { type: "stdin" }>, nowMs: number): GuestMessage[] {
    const { command_id } = message;
    const command = this.commands.get(command_id);
    if (!command) return [];
    command.stdin(message, nowMs);
    const { stdinBytes: offset, stdinClosed: closed } = command;
    return [{ type: "stdin_taken", command_id, offset, closed }];
  }

  #powerOff(graceMs: number, nowMs: number): GuestMessage[] {
    this.#poweringOff ??= { killAtMs: nowMs + graceMs, quietAtMs: undefined };
    for (const command of this.commands.values()) command.signal("TERM", nowMs);
    return [{ type: "powering_off" }];
  }

  #observeQuiet(nowMs: number): void {
    const off = this.#poweringOff;
    if (!off || off.quietAtMs !== undefined) return;
    if ([...this.commands.values()].every(({ id }) => this.#saidEnds.has(id)))
      off.quietAtMs = nowMs;
  }
}

/** One that could not be launched has no start. */
function startOf({ id, startedAtMs, end }: HeldCommand): GuestMessage[] {
  if (end?.kind === "launch_failed") return [];
  return [{ type: "started", command_id: id, pid: 1, at_ms: startedAtMs }];
}

function endOf(command: HeldCommand): GuestMessage {
  const { id, end, endedAtMs, bytes, signalled } = command;
  return {
    type: "ended",
    command_id: id,
    end: end ?? { kind: "unknown" },
    usage,
    at_ms: endedAtMs,
    output_bytes: bytes,
    signalled,
  };
}
