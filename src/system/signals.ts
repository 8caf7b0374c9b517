/**
 * "Something about this topic changed", inside one process. A signal carries nothing and may be
 * lost with the process: whoever waits looks at the database again, and also looks by period.
 */
import type { Clock } from "./clock.ts";

export class Signals {
  readonly #clock: Clock;
  readonly #waiting = new Map<string, Set<() => void>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  notify(topics: Iterable<string>): void {
    for (const topic of topics) {
      const waiting = this.#waiting.get(topic);
      this.#waiting.delete(topic);
      for (const wake of waiting ?? []) wake();
    }
  }

  /**
   * Ends at the next signal of the topic, or of any of the topics, or after `ms`. To miss nothing:
   * begin to wait first, look at the state, and only then await the promise.
   */
  wait(topic: string | readonly string[], ms: number): Promise<void> {
    const waited = typeof topic === "string" ? [topic] : topic;
    return new Promise((resolve) => {
      const wake = (): void => {
        for (const each of waited) this.#leave(each, wake);
        resolve();
      };
      for (const each of waited) this.#join(each, wake);
      void this.#clock.sleep(ms).then(wake);
    });
  }

  #join(topic: string, wake: () => void): void {
    const waiting = this.#waiting.get(topic) ?? new Set();
    this.#waiting.set(topic, waiting.add(wake));
  }

  #leave(topic: string, wake: () => void): void {
    const waiting = this.#waiting.get(topic);
    if (waiting?.delete(wake) && waiting.size === 0) this.#waiting.delete(topic);
  }

  /** Topics somebody waits for; for tests that look for leaks. */
  get size(): number {
    return this.#waiting.size;
  }
}

/** Topics by the thing they are about, so that no two places spell one differently. */
export const topics = {
  workflows: "workflows",
  events: "events",
  sandboxes: "sandboxes",
  sandbox: (id: string) => `sandbox:${id}`,
  command: (id: string) => `command:${id}`,
  /** What the one who talks to this sandbox's guest part may have to say. */
  conversation: (sandboxId: string) => `conversation:${sandboxId}`,
  output: (commandId: string) => `output:${commandId}`,
} as const;
