/** Time that moves only when everyone is asleep, straight to the next waking. */
import type { Clock } from "../../src/system/clock.ts";

interface Sleeper {
  atMs: number;
  order: number;
  wake: () => void;
}

export class VirtualClock implements Clock {
  #nowMs = Date.UTC(2026, 0, 1);
  readonly #startMs = this.#nowMs;
  #setMs = 0;
  #order = 0;
  /** A binary heap by time, then by order of falling asleep. */
  readonly #heap: Sleeper[] = [];

  now(): number {
    return this.#nowMs + this.#setMs;
  }

  /** The wall clock is set; nobody's sleep gets shorter or longer. */
  set(aheadMs: number): void {
    this.#setMs += aheadMs;
  }

  monotonic(): number {
    return this.#nowMs - this.#startMs;
  }

  sleep(ms: number): Promise<void> {
    return new Promise((wake) => {
      this.#push({ atMs: this.#nowMs + Math.max(0, ms), order: this.#order++, wake });
    });
  }

  /** Wakes the next sleeper and lets everything that follows from it happen. */
  async advance(): Promise<void> {
    const first = this.#pop();
    if (!first) throw new Error("everyone is asleep forever");
    this.#nowMs = first.atMs;
    first.wake();
    await settle();
  }

  #push(sleeper: Sleeper): void {
    const heap = this.#heap;
    let at = heap.push(sleeper) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = heap[parent] as Sleeper;
      if (!before(sleeper, above)) break;
      heap[at] = above;
      at = parent;
    }
    heap[at] = sleeper;
  }

  #pop(): Sleeper | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    let at = 0;
    while (true) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      const [left, right] = [heap[child] as Sleeper, heap[child + 1]];
      if (right && before(right, left)) child++;
      if (!before(heap[child] as Sleeper, last)) break;
      heap[at] = heap[child] as Sleeper;
      at = child;
    }
    heap[at] = last;
    return first;
  }
}

const before = (one: Sleeper, other: Sleeper): boolean =>
  one.atMs - other.atMs < 0 || (one.atMs === other.atMs && one.order < other.order);

/** No real I/O happens in a simulation, so one turn of the event loop settles every promise. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** What a call of a dead appliance gets. */
export function never<T>(): Promise<T> {
  return new Promise<T>(() => {});
}
