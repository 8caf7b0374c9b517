/** Signal numbers by name, for Linux on x86-64 and arm64 (signal(7)). */
import { constants } from "node:os";

const names = new Map(
  Object.entries(constants.signals).map(([name, number]) => [number, name.replace(/^SIG/, "")]),
);

export function signalName(number: number): string {
  return names.get(number) ?? `RT${number}`;
}

/** Whether there was somebody to signal. */
export function signalGroup(pid: number, signal: string): boolean {
  try {
    process.kill(-pid, `SIG${signal}`);
    return true;
  } catch {
    // ESRCH: it ended in the meantime.
    return false;
  }
}
