/** Time, as the appliance sees it. The simulator supplies its own. */
export interface Clock {
  /** Milliseconds since 1970, UTC. May jump; never measure a wait with it. */
  now(): number;
  /** Milliseconds since some fixed instant; never goes back, and measures waits. */
  monotonic(): number;
  sleep(ms: number): Promise<void>;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: (ms) => new Promise((wake) => setTimeout(wake, ms)),
};
