/**
 * Output on its way from one channel into the store: several chunks may wait for one commit, and
 * each is acknowledged once it is durable. Bounded by what the guest part may send unacknowledged.
 */
import { Fault } from "../core/fault.ts";
import { MiB } from "../core/units.ts";
import type { OutputDb, Reader } from "../db/open.ts";
import type { GuestMessage } from "../guest/guest.ts";
import { isFinal } from "./command.ts";
import { appendOutput, extentOf } from "./output.ts";
import { findCommand } from "./store.ts";

type OutputMessage = Extract<GuestMessage, { type: "output" }>;

const waitingBytesMax = 8 * MiB;

/** Returns once nothing more waits to be said. Never fails. */
type Acknowledge = (commandId: string, offset: number) => Promise<void>;

export class OutputIntake {
  readonly #output: OutputDb;
  readonly #acknowledge: Acknowledge;
  /** Commands whose output this guest may send, with the newest write of each. */
  readonly #writes = new Map<string, Promise<void>>();
  #waitingBytes = 0;

  constructor(output: OutputDb, acknowledge: Acknowledge) {
    this.#output = output;
    this.#acknowledge = acknowledge;
  }

  /** @throws Fault `unavailable` the guest part sent what it may not, or left a hole. */
  async take(sandboxId: string, read: Reader, message: OutputMessage): Promise<void> {
    const { command_id: id } = message;
    if (!this.#writes.has(id) && (await this.#isOver(read, sandboxId, id))) {
      // Awaited, because a guest may name as many commands as it likes.
      await this.#acknowledge(id, message.offset + message.payload.length);
      return;
    }
    const size = message.payload.length;
    this.#waitingBytes += size;
    const before = this.#writes.get(id) ?? Promise.resolve();
    const write = this.#store(message).finally(() => {
      this.#waitingBytes -= size;
    });
    const both = Promise.all([before, write]).then(() => {});
    // Awaited by `settled`, or by the next chunk once too much waits.
    both.catch(() => {});
    this.#writes.set(id, both);
    if (this.#waitingBytes > waitingBytesMax) await both;
  }

  /** Once everything before `bytes` is durable. @throws Fault `unavailable` it never came. */
  async settled(commandId: string, bytes: number): Promise<void> {
    await this.#writes.get(commandId);
    this.#writes.delete(commandId);
    const { endBytes } = await extentOf(this.#output.read, commandId);
    if (endBytes < bytes) throw hole(commandId);
  }

  /**
   * An end on record has all its output: what the guest part sends again, because an
   * acknowledgement was lost, is only acknowledged. So is what has left the records long ago.
   */
  async #isOver(read: Reader, sandboxId: string, id: string): Promise<boolean> {
    const command = await findCommand(read, id);
    if (!command) return true;
    if (command.sandbox_id !== sandboxId || command.run === null) throw foreign(id);
    return isFinal(command.state);
  }

  async #store(message: OutputMessage): Promise<void> {
    const { command_id: commandId, offset, stream, at_ms: atMs, payload: data } = message;
    const endBytes = await appendOutput(this.#output, { commandId, offset, stream, atMs, data });
    if (endBytes === undefined) throw hole(commandId);
    void this.#acknowledge(commandId, endBytes);
  }
}

function foreign(id: string): Fault {
  return new Fault("unavailable", `guest part: it sent output of ${id}, which it does not run`, {
    code: "guest_protocol",
  });
}

function hole(commandId: string): Fault {
  return new Fault("unavailable", `guest part: output of ${commandId} has a hole`, {
    code: "guest_protocol",
  });
}
