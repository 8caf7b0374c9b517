/**
 * How long a request waits for a change that does not come to an end. All that wait share one timer:
 * nearly every change is done within milliseconds, and a timer of its own would outlive each.
 */
import type { Clock } from "../system/clock.ts";

interface Waiting {
  readonly dueMs: number;
  readonly giveUp: () => void;
}

export class Patience {
  readonly #clock: Clock;
  readonly #ms: number;
  readonly #late: () => Error;
  /** All wait equally long, so that the first that came is the first that is due. */
  readonly #waiting = new Set<Waiting>();
  #isWatching = false;

  constructor(clock: Clock, ms: number, late: () => Error) {
    this.#clock = clock;
    this.#ms = ms;
    this.#late = late;
  }

  /** What `work` comes to, or `late` where that takes too long; the work itself goes on. */
  wait<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        dueMs: this.#clock.monotonic() + this.#ms,
        giveUp: () => reject(this.#late()),
      };
      this.#waiting.add(waiting);
      work.then(resolve, reject).finally(() => this.#waiting.delete(waiting));
      if (!this.#isWatching) void this.#watch();
    });
  }

  async #watch(): Promise<void> {
    this.#isWatching = true;
    for (const { dueMs } of this.#waiting) {
      const leftMs = dueMs - this.#clock.monotonic();
      if (leftMs > 0) await this.#clock.sleep(leftMs);
      this.#giveUpDue();
    }
    this.#isWatching = false;
  }

  #giveUpDue(): void {
    const nowMs = this.#clock.monotonic();
    for (const waiting of this.#waiting) {
      if (waiting.dueMs > nowMs) return;
      this.#waiting.delete(waiting);
      waiting.giveUp();
    }
  }
}
