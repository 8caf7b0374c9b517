/**
 * A cgroup per command, in the subtree that systemd delegates to our unit. Without cgroup2 there is
 * none, and a command is its process group.
 */
import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const controllers = "+memory +pids +cpu";

/** The directory under which commands get theirs; undefined where that cannot be. */
export function prepareCgroups(root = "/sys/fs/cgroup"): string | undefined {
  const own = /^0::(\/.*)$/m.exec(readFileSync("/proc/self/cgroup", "utf8"))?.[1];
  if (own === undefined || own === "/") return undefined;
  const unit = join(root, own.replace(/\/guest$/, ""));
  const commands = join(unit, "commands");
  try {
    // A cgroup with children may hold no process itself: we move to a leaf first.
    mkdirSync(join(unit, "guest"), { recursive: true });
    writeFileSync(join(unit, "guest", "cgroup.procs"), String(process.pid));
    mkdirSync(commands, { recursive: true });
    writeFileSync(join(unit, "cgroup.subtree_control"), controllers);
    writeFileSync(join(commands, "cgroup.subtree_control"), controllers);
    return commands;
  } catch {
    // Not delegated, or a hierarchy without these controllers: process groups have to do.
    return undefined;
  }
}

/** Gone once the last process that a command left behind has ended. */
export function removeCgroup(path: string): void {
  try {
    rmdirSync(path);
  } catch {
    // Left-over processes still live in it; it goes with the sandbox's VM.
    return;
  }
}
