/**
 * Starts the static runner that runs a command and outlives us. Its claim file, not this process,
 * decides whether the command runs: starting the runner twice is harmless.
 */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { LaunchMessage } from "../guest.ts";

export interface Spec {
  message: LaunchMessage;
  /** The command's own cgroup, or "". */
  cgroup: string;
  /** The FIFO through which the runner says that something happened. */
  wake: string;
}

/** The fields in the order that runner.c names. */
export function writeSpec(directory: string, { message, cgroup, wake }: Spec): void {
  if (cgroup !== "") mkdirSync(cgroup, { recursive: true });
  const environment = Object.entries(message.env).map(([name, value]) => `${name}=${value}`);
  const fields = [
    cgroup,
    wake,
    message.user,
    message.cwd ?? "",
    String(message.timeout_ms ?? 0),
    message.stdin ? "1" : "0",
    String(message.argv.length),
    ...message.argv,
    String(environment.length),
    ...environment,
  ];
  const path = join(directory, "spec");
  writeFileSync(`${path}.new`, fields.map((field) => `${field}\0`).join(""));
  renameSync(`${path}.new`, path);
}

/** Whether a field would be cut at a NUL byte, or an argument is missing. */
export function isMalformed({ argv, env, cwd, user }: LaunchMessage): boolean {
  const fields = [...argv, ...Object.keys(env), ...Object.values(env), cwd ?? "", user];
  return argv.length === 0 || fields.some((field) => field.includes("\0"));
}

export function spawnRunner(runnerPath: string, directory: string): void {
  const runner = Bun.spawn([runnerPath, directory], {
    stdio: ["ignore", "ignore", "ignore"],
    detached: true,
    cwd: "/",
    env: {},
  });
  runner.unref();
}

/** Whether this process is the runner of that command, and not another one with its number. */
export function isRunner(pid: number, commandId: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(commandId);
  } catch {
    // ENOENT: no such process.
    return false;
  }
}
