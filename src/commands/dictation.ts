/** What the records want said to one guest part, said in order. Repeating any of it is harmless. */
import type { Tx } from "../db/open.ts";
import type { Channel, SignalName } from "../guest/guest.ts";
import { findSandbox } from "../sandboxes/store.ts";
import type { VmRef } from "../vmm/vmm.ts";
import type { CommandRow } from "./command.ts";
import { stdinPieceBytesMax } from "./command.ts";
import type { CommandPorts } from "./ports.ts";
import { findCommand, liveCommandsOf, moveCommand, stdinFrom } from "./store.ts";

export class Dictation {
  readonly #ports: CommandPorts;
  readonly #ref: VmRef;
  readonly #channel: Channel;
  /** Said on this channel already. Another channel says it again. */
  readonly #launched = new Set<string>();
  readonly #signalled = new Set<string>();
  readonly #stdinSaid = new Map<string, number>();
  #poweredOff = false;

  constructor(ports: CommandPorts, ref: VmRef, channel: Channel) {
    this.#ports = ports;
    this.#ref = ref;
    this.#channel = channel;
  }

  async say(bootId: string, graceMs: number): Promise<void> {
    const sandbox = await findSandbox(this.#ports.db.read, this.#ref.sandbox);
    if (sandbox?.run !== this.#ref.run || sandbox.guest_boot_id !== bootId) return;
    const stopping = sandbox.phase === "stopping";
    if (stopping && !this.#poweredOff) {
      this.#poweredOff = true;
      // Half for the work, the rest for the guest's own shutdown.
      await this.#channel.send({ type: "power_off", grace_ms: Math.floor(graceMs / 3) });
    }
    const runs = sandbox.phase === "running";
    for (const command of await liveCommandsOf(this.#ports.db.read, sandbox.id)) {
      if (runs) await this.#launch(command, bootId);
      await this.#signal(command);
      await this.#stdin(command);
    }
  }

  async #launch(command: CommandRow, bootId: string): Promise<void> {
    const sendable =
      command.state === "queued" ||
      (command.state === "launching" && command.guest_boot_id === bootId);
    if (!sendable || this.#launched.has(command.id)) return;
    if (command.state === "queued") {
      const recorded = await this.#ports.db.write((tx) => this.#recordSent(tx, command.id, bootId));
      if (!recorded) return;
    }
    this.#launched.add(command.id);
    await this.#channel.send({
      type: "launch",
      command_id: command.id,
      guest_boot_id: bootId,
      argv: JSON.parse(command.argv) as string[],
      cwd: command.cwd,
      env: JSON.parse(command.env) as Record<string, string>,
      user: command.user,
      timeout_ms: command.timeout_ms,
      stdin: command.stdin === 1,
    });
  }

  /** Looks again in the transaction: it may have been ended, or its run may be over. */
  async #recordSent(tx: Tx, id: string, bootId: string): Promise<boolean> {
    const command = await findCommand(tx, id);
    const sandbox = await findSandbox(tx, this.#ref.sandbox);
    if (command?.state !== "queued" || sandbox?.phase !== "running") return false;
    if (sandbox.run !== this.#ref.run || sandbox.guest_boot_id !== bootId) return false;
    const changes = { guest_boot_id: bootId, run: this.#ref.run };
    const nowMs = this.#ports.clock.now();
    await moveCommand(tx, { id, event: "send", reason: "sent", nowMs, changes });
    return true;
  }

  async #signal(command: CommandRow): Promise<void> {
    const { kill_request, kill_signal, kill_done } = command;
    if (command.state === "queued" || kill_request === null || kill_done) return;
    if (this.#signalled.has(kill_request)) return;
    this.#signalled.add(kill_request);
    await this.#channel.send({
      type: "signal",
      command_id: command.id,
      request_id: kill_request,
      signal: kill_signal as SignalName,
    });
  }

  /** One piece at a time: the next one goes when the guest part has taken this one over. */
  async #stdin(command: CommandRow): Promise<void> {
    if (!command.stdin || command.state === "queued") return;
    const { id: command_id, stdin_taken: taken } = command;
    const said = this.#stdinSaid.get(command_id);
    if (said !== undefined && said > taken) return;
    const piece = await stdinFrom(this.#ports.db.read, command_id, taken);
    const bytes = piece ? new Uint8Array(piece.data).subarray(taken - piece.offset_bytes) : empty;
    const payload = bytes.subarray(0, stdinPieceBytesMax);
    const offset = taken;
    const end = offset + payload.length;
    const closes = command.stdin_closed === 1 && !(await this.#heldBehind(command_id, end));
    if (payload.length === 0 && (!closes || said === end + 1)) return;
    this.#stdinSaid.set(command_id, closes && payload.length === 0 ? end + 1 : end);
    await this.#channel.send({ type: "stdin", command_id, offset, eof: closes, payload });
  }

  async #heldBehind(commandId: string, offset: number): Promise<boolean> {
    return (await stdinFrom(this.#ports.db.read, commandId, offset)) !== undefined;
  }
}

const empty = new Uint8Array();
