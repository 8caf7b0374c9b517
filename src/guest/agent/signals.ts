/** Signals by name and number, for Linux on x86-64 and arm64 (signal(7)), and whom they reach. */
import { existsSync, writeFileSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import { isPopulated } from "./cgroups.ts";

const names: ReadonlyMap<number, string> = new Map(
  Object.entries(constants.signals).map(([name, number]) => [number, name.replace(/^SIG/, "")]),
);

export function signalName(number: number): string {
  return names.get(number) ?? `RT${number}`;
}

/** KILL reaches everything in the cgroup, too. Returns whether there was somebody to signal. */
export function signalCommand(pid: number, cgroup: string, signal: string): boolean {
  const killFile = join(cgroup, "cgroup.kill");
  if (signal !== "KILL" || cgroup === "" || !existsSync(killFile)) return signalGroup(pid, signal);
  // Asked before: afterwards there may be nobody left to find.
  const reached = isPopulated(cgroup);
  writeFileSync(killFile, "1");
  return signalGroup(pid, signal) || reached;
}

function signalGroup(pid: number, signal: string): boolean {
  try {
    process.kill(-pid, `SIG${signal}`);
    return true;
  } catch {
    // ESRCH: it ended in the meantime.
    return false;
  }
}
