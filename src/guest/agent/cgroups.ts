/**
 * A cgroup per command, in the subtree that systemd delegates to our unit. Without cgroup2 there is
 * none, and a command is its process group.
 */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { KiB, MiB } from "../../core/units.ts";

const controllers = ["+memory", "+pids", "+cpu"] as const;

export class Cgroups {
  /** Under which commands get theirs; undefined where that cannot be. */
  readonly #commands: string | undefined;

  constructor(commands: string | undefined) {
    this.#commands = commands;
  }

  /** "" where there are none. */
  pathOf(commandId: string): string {
    return this.#commands === undefined ? "" : join(this.#commands, commandId);
  }

  /** Once its last process has ended; until then it is left to a later sweep. */
  remove(commandId: string): void {
    const path = this.pathOf(commandId);
    if (path !== "" && existsSync(path)) removeEmpty(path);
  }

  /** Removes those of commands that are no longer held. */
  sweep(isHeld: (commandId: string) => boolean): void {
    if (this.#commands === undefined) return;
    for (const entry of readdirSync(this.#commands, { withFileTypes: true }))
      if (entry.isDirectory() && !isHeld(entry.name)) removeEmpty(join(this.#commands, entry.name));
  }
}

/**
 * Moves this process to a leaf of its unit's subtree, because a cgroup with children may hold no
 * process itself. After a restart, systemd puts us there (`DelegateSubgroup=guest`).
 */
export function prepareCgroups(root = "/sys/fs/cgroup"): Cgroups {
  const own = /^0::(\/.*)$/m.exec(readFileSync("/proc/self/cgroup", "utf8"))?.[1];
  if (own === undefined || own === "/") return new Cgroups(undefined);
  const unit = join(root, own.replace(/\/guest$/, ""));
  const commands = join(unit, "commands");
  try {
    mkdirSync(join(unit, "guest"), { recursive: true });
    writeFileSync(join(unit, "guest", "cgroup.procs"), String(process.pid));
    mkdirSync(commands, { recursive: true });
  } catch (error) {
    process.stderr.write(`holdfast guest: no cgroups of our own: ${error}\n`);
    return new Cgroups(undefined);
  }
  for (const controller of controllers) enable(controller, [unit, commands]);
  limitMemory(commands);
  return new Cgroups(commands);
}

/**
 * All commands together leave the system some memory. Without that, the kernel throws out the
 * programs of the system, us among them, long before it ends what wants too much.
 */
function limitMemory(commands: string): void {
  const path = join(commands, "memory.max");
  const total = /^MemTotal: +(\d+) kB$/m.exec(readFileSync("/proc/meminfo", "utf8"))?.[1];
  if (total === undefined || !existsSync(path)) return;
  const totalBytes = Number(total) * KiB;
  writeFileSync(path, String(totalBytes - systemBytesOf(totalBytes)));
}

const systemBytesOf = (totalBytes: number): number =>
  Math.min(Math.max(Math.round(totalBytes / 8), 64 * MiB), 512 * MiB);

/** One by one: a kernel without one of them still has the others. */
function enable(controller: string, groups: readonly string[]): void {
  try {
    for (const group of groups) writeFileSync(join(group, "cgroup.subtree_control"), controller);
  } catch (error) {
    process.stderr.write(`holdfast guest: ${controller} is not counted per command: ${error}\n`);
  }
}

export const isPopulated = (path: string): boolean =>
  /^populated 1$/m.test(readFileSync(join(path, "cgroup.events"), "utf8"));

function removeEmpty(path: string): void {
  if (isPopulated(path)) return;
  for (const entry of readdirSync(path, { withFileTypes: true }))
    if (entry.isDirectory()) removeEmpty(join(path, entry.name));
  if (existsSync(path)) rmdirSync(path);
}
