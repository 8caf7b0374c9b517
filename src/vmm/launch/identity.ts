/**
 * Which process exactly: pids are used again, so one is named by the machine's boot, its pid and its
 * start time together. Signals only what it has just recognized.
 */
import { readdirSync, readFileSync } from "node:fs";
import { ifThere, isErrno } from "../../system/files.ts";

export interface ProcessIdentity {
  readonly pid: number;
  /** Clock ticks after the machine's boot: field 22 of /proc/PID/stat, proc(5). */
  readonly startTicks: number;
}

/** Unique to this boot of the machine. */
export function readHostBootId(): string {
  return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
}

/** Whether this very process runs. One that waits to be reaped has ended. */
export function isAlive({ pid, startTicks }: ProcessIdentity): boolean {
  const present = statOf(pid);
  return (
    present !== undefined && present.startTicks === startTicks && !"ZXx".includes(present.state)
  );
}

/** SIGKILL, if it is still this process. */
export function endProcess(identity: ProcessIdentity): void {
  if (!isAlive(identity)) return;
  try {
    process.kill(identity.pid, "SIGKILL");
  } catch (error) {
    if (!isErrno(error, "ESRCH")) throw error;
  }
}

export interface Found {
  readonly identity: ProcessIdentity;
  readonly argv: readonly string[];
}

/** Every process of which an argument begins so. */
export function findByArgument(beginning: string): Found[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      const line = ifThere(() => readFileSync(`/proc/${name}/cmdline`, "utf8"));
      if (!line?.includes(beginning)) return [];
      const argv = line.split("\0");
      const stat = statOf(Number(name));
      if (!stat || !argv.some((each) => each.startsWith(beginning))) return [];
      return [{ identity: { pid: Number(name), startTicks: stat.startTicks }, argv }];
    });
}

function statOf(pid: number): { state: string; startTicks: number } | undefined {
  const line = ifThere(() => readFileSync(`/proc/${pid}/stat`, "utf8"));
  // The second field is the program's name in parentheses and may hold anything.
  const fields = line?.slice(line.lastIndexOf(")") + 2).split(" ");
  const [state, startTicks] = [fields?.[0], Number(fields?.[19])];
  return state === undefined || !Number.isSafeInteger(startTicks)
    ? undefined
    : { state, startTicks };
}
