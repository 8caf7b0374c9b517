/**
 * Output on its way from one channel into the store: what comes while a commit is under way shares
 * the next one. It is acknowledged once it is durable. Bounded: who sends more than fits waits.
 */
import { Fault } from "../core/fault.ts";
import { KiB, MiB } from "../core/units.ts";
import type { OutputDb, Reader } from "../db/open.ts";
import { type GuestMessage, outputWindowBytes } from "../guest/guest.ts";
import type { Clock } from "../system/clock.ts";
import { isFinal } from "./command.ts";
import { appendOutput, type Chunk, extentOf } from "./output.ts";
import { findCommand } from "./store.ts";

type OutputMessage = Extract<GuestMessage, { type: "output" }>;

const waitingBytesMax = 8 * MiB;
/** A commit that follows one of a flood waits for so many bytes, but not for long. */
const floodBytes = 128 * KiB;
const gatheredBytes = 2 * MiB;
const gatherMs = 12;
/** Less is acknowledged only when nothing more came for a while. */
const ackedBytesMin = outputWindowBytes / 2;
const quietMs = 50;

/** Returns once nothing more waits to be said. Never fails. */
type Acknowledge = (commandId: string, offset: number) => Promise<void>;

interface Incoming {
  waiting: Chunk[];
  /** Until nothing waits; rejected where it could not be stored. */
  stored: Promise<void>;
  isStoring: boolean;
  /** What is durable, and of that what the guest part was told. */
  endBytes: number;
  ackedBytes: number;
  isWaitingForQuiet: boolean;
}

export class OutputIntake {
  readonly #output: OutputDb;
  readonly #clock: Clock;
  readonly #acknowledge: Acknowledge;
  /** Commands whose output this guest may send. */
  readonly #incoming = new Map<string, Incoming>();
  #waitingBytes = 0;

  constructor(output: OutputDb, clock: Clock, acknowledge: Acknowledge) {
    this.#output = output;
    this.#clock = clock;
    this.#acknowledge = acknowledge;
  }

  /** @throws Fault `unavailable` the guest part sent what it may not, or left a hole. */
  async take(sandboxId: string, read: Reader, message: OutputMessage): Promise<void> {
    const { command_id: id, offset, stream, at_ms: atMs, payload: data } = message;
    if (!this.#incoming.has(id) && (await this.#isOver(read, sandboxId, id))) {
      // Awaited, because a guest may name as many commands as it likes.
      await this.#acknowledge(id, offset + data.length);
      return;
    }
    const incoming = this.#incomingOf(id);
    incoming.waiting.push({ offset, stream, atMs, data });
    this.#waitingBytes += data.length;
    if (!incoming.isStoring) {
      // An earlier failure is told here, before it is tried again.
      await incoming.stored;
      incoming.stored = this.#storeAll(id, incoming);
      // Awaited by `settled`, or by whoever takes the next chunk.
      incoming.stored.catch(() => {});
    }
    if (this.#waitingBytes > waitingBytesMax) await incoming.stored;
  }

  /** Once everything before `bytes` is durable. @throws Fault `unavailable` it never came. */
  async settled(commandId: string, bytes: number): Promise<void> {
    await this.#incoming.get(commandId)?.stored;
    this.#incoming.delete(commandId);
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

  #incomingOf(id: string): Incoming {
    const known = this.#incoming.get(id);
    if (known) return known;
    const incoming: Incoming = {
      ...{ waiting: [], stored: Promise.resolve(), isStoring: false },
      ...{ endBytes: 0, ackedBytes: 0, isWaitingForQuiet: false },
    };
    this.#incoming.set(id, incoming);
    return incoming;
  }

  async #storeAll(id: string, incoming: Incoming): Promise<void> {
    incoming.isStoring = true;
    try {
      while (incoming.waiting.length > 0) {
        const before = incoming.endBytes;
        incoming.endBytes = await this.#store(id, incoming.waiting.splice(0));
        // Each acknowledgement costs an emulated guest some milliseconds.
        if (incoming.endBytes - incoming.ackedBytes >= ackedBytesMin) this.#tell(id, incoming);
        else if (!incoming.isWaitingForQuiet) void this.#tellWhenQuiet(id, incoming);
        // Each commit waits for the disk: a flood is stored in few.
        if (incoming.endBytes - before >= floodBytes && this.#waitingBytes < gatheredBytes)
          await this.#clock.sleep(gatherMs);
      }
    } finally {
      incoming.isStoring = false;
    }
  }

  #tell(id: string, incoming: Incoming): void {
    incoming.ackedBytes = incoming.endBytes;
    void this.#acknowledge(id, incoming.endBytes);
  }

  async #tellWhenQuiet(id: string, incoming: Incoming): Promise<void> {
    incoming.isWaitingForQuiet = true;
    let seenBytes: number;
    do {
      seenBytes = incoming.endBytes;
      await this.#clock.sleep(quietMs);
    } while (seenBytes !== incoming.endBytes);
    incoming.isWaitingForQuiet = false;
    if (incoming.endBytes > incoming.ackedBytes) this.#tell(id, incoming);
  }

  /** Returns how many bytes are durable then. */
  async #store(commandId: string, chunks: Chunk[]): Promise<number> {
    const bytes = chunks.reduce((sum, { data }) => sum + data.length, 0);
    try {
      const endBytes = await appendOutput(this.#output, commandId, chunks);
      if (endBytes === undefined) throw hole(commandId);
      return endBytes;
    } finally {
      this.#waitingBytes -= bytes;
    }
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
