/**
 * Acknowledgements on their way to one guest part: one send at a time, and only the newest offset
 * of each command waits, so that a guest that reads nothing makes nothing pile up here.
 */
import type { Channel } from "../guest/guest.ts";

export class Acknowledgements {
  readonly #send: (message: Parameters<Channel["send"]>[0]) => Promise<void>;
  readonly #waiting = new Map<string, number>();
  #saying: Promise<void> | undefined;

  /** @param send never fails: whoever says it deals with a channel that is closed. */
  constructor(send: (message: Parameters<Channel["send"]>[0]) => Promise<void>) {
    this.#send = send;
  }

  /** Everything of this command before `offset` is durable. Returns once nothing waits any more. */
  say(commandId: string, offset: number): Promise<void> {
    this.#waiting.set(commandId, Math.max(offset, this.#waiting.get(commandId) ?? 0));
    this.#saying ??= this.#sayAll();
    return this.#saying;
  }

  async #sayAll(): Promise<void> {
    // What is added meanwhile is found by the same walk.
    for (const [command_id, offset] of this.#waiting) {
      this.#waiting.delete(command_id);
      await this.#send({ type: "ack", command_id, offset });
    }
    this.#saying = undefined;
  }
}
