/** The end of everything: asks all commands to end, then ends them, and lets the host hear of it. */
import type { Cgroups } from "./cgroups.ts";
import type { Held } from "./held.ts";
import { signalCommand } from "./signals.ts";

/** How long the host may take to have recorded the ends. */
const settleMs = 5_000;

/** Returns when the VM may be powered off; takes at most `graceMs` and a few seconds. */
export async function endCommands(options: {
  held: ReadonlyMap<string, Held>;
  cgroups: Cgroups;
  graceMs: number;
}): Promise<void> {
  const running = (): Held[] => [...options.held.values()].filter((held) => held.runs);
  const signalAll = (signal: "TERM" | "KILL"): void => {
    for (const held of running()) signalOne(held, options.cgroups.pathOf(held.id), signal);
  };
  signalAll("TERM");
  await waitUntil(options.graceMs, () => running().length === 0);
  signalAll("KILL");
  // What the host has on record it tells us to forget; a host that is away is not waited for long.
  await waitUntil(settleMs, () => ![...options.held.values()].some((held) => held.isClaimed));
}

function signalOne(held: Held, cgroup: string, signal: "TERM" | "KILL"): void {
  const started = held.started();
  if (started && signalCommand(started.pid, cgroup, signal)) held.noteSignal(signal);
}

async function waitUntil(ms: number, look: () => boolean): Promise<void> {
  const end = performance.now() + ms;
  while (!look() && performance.now() < end) await Bun.sleep(50);
}
