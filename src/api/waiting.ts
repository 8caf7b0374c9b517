/** Long-polls: a read that waits for something to be so, for a bounded time, without a timer. */
import { secondMs } from "../core/units.ts";
import type { Clock } from "../system/clock.ts";
import type { Signals } from "../system/signals.ts";

export const waitSecondsMax = 25;

export interface Wait<T> {
  topic: string | readonly string[];
  /** 0: looks once. */
  waitSeconds: number;
  look: () => Promise<T>;
  isThere: (seen: T) => boolean;
}

/** What was seen last: the thing waited for, or how it stands when the time is over. */
export async function lookUntil<T>(
  { clock, signals }: { readonly clock: Clock; readonly signals: Signals },
  { topic, waitSeconds, look, isThere }: Wait<T>,
): Promise<T> {
  const endAt = clock.monotonic() + waitSeconds * secondMs;
  while (true) {
    const leftMs = endAt - clock.monotonic();
    if (leftMs <= 0) return look();
    const signal = signals.wait(topic, leftMs);
    const seen = await look();
    if (isThere(seen)) return seen;
    await signal;
  }
}
