/**
 * When each VM's guest part was last heard, and whether somebody listens to it. Kept in memory,
 * because a commit per heartbeat would cost more than it tells; after a restart nothing is claimed
 * until the guest part speaks again.
 */
import type { Clock } from "../system/clock.ts";
import type { VmRef } from "../vmm/vmm.ts";

interface Sighting {
  /** Milliseconds since 1970; undefined until it was heard in this process's life. */
  atMs: number | undefined;
  /** Since when its silence counts, on the monotonic clock. */
  quietSince: number;
  listening: boolean;
}

export class Sightings {
  readonly #clock: Clock;
  readonly #byVm = new Map<string, Sighting>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  heard(ref: VmRef): void {
    const sighting = this.#of(ref);
    sighting.atMs = this.#clock.now();
    sighting.quietSince = this.#clock.monotonic();
  }

  /** Its silence until now had a reason, and counts from here on. */
  excuse(ref: VmRef): void {
    this.#of(ref).quietSince = this.#clock.monotonic();
  }

  /** Whether what the guest part has sent may still be on its way into the records. */
  setListening(ref: VmRef, listening: boolean): void {
    this.#of(ref).listening = listening;
  }

  isListening(ref: VmRef): boolean {
    return this.#byVm.get(nameOf(ref))?.listening ?? false;
  }

  lastHeardMs(ref: VmRef): number | undefined {
    return this.#byVm.get(nameOf(ref))?.atMs;
  }

  /** Counted from the first question where it was never heard. */
  silentForMs(ref: VmRef): number {
    return this.#clock.monotonic() - this.#of(ref).quietSince;
  }

  forget(ref: VmRef): void {
    this.#byVm.delete(nameOf(ref));
  }

  #of(ref: VmRef): Sighting {
    const name = nameOf(ref);
    const known = this.#byVm.get(name);
    if (known) return known;
    const quietSince = this.#clock.monotonic();
    const fresh: Sighting = { atMs: undefined, quietSince, listening: false };
    this.#byVm.set(name, fresh);
    return fresh;
  }
}

const nameOf = (ref: VmRef): string => `${ref.sandbox}/${ref.run}`;
