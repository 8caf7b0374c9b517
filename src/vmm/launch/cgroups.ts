/**
 * A cgroup per VM, where this machine has a cgroup2 that we may write: it freezes or kills all of a
 * VM's processes at once. Sets no limits.
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
import { ifThere, isErrno } from "../../system/files.ts";

/** Mount points of cgroup2 in a text like /proc/self/mountinfo, proc(5). */
export function cgroup2Mounts(mountinfo: string): string[] {
  return mountinfo.split("\n").flatMap((line) => {
    const [mount = "", source = ""] = line.split(" - ");
    const path = mount.split(" ")[4];
    return source.startsWith("cgroup2 ") && path !== undefined ? [unescaped(path)] : [];
  });
}

/** Spaces and the like stand there in octal. */
const unescaped = (path: string): string =>
  path.replace(/\\([0-7]{3})/g, (_, octal: string) =>
    String.fromCharCode(Number.parseInt(octal, 8)),
  );

export class Cgroups {
  readonly #root: string;

  private constructor(root: string) {
    this.#root = root;
  }

  /** Undefined where no group can be made; `under` is the mount point and what of it is ours. */
  static open(installation: string, mountinfo = readFileSync("/proc/self/mountinfo", "utf8")) {
    for (const mount of cgroup2Mounts(mountinfo)) {
      const root = join(mount, "holdfast", installation);
      try {
        mkdirSync(root, { recursive: true });
        if (existsSync(join(root, "cgroup.procs"))) return new Cgroups(root);
      } catch (error) {
        if (!isErrno(error, "EACCES", "EPERM", "EROFS", "ENOENT", "ENOSPC")) throw error;
      }
    }
    return undefined;
  }

  /** May be called twice. @returns the file into which a process writes its pid to join. */
  make(name: string): string {
    const group = join(this.#root, name);
    mkdirSync(group, { recursive: true });
    return join(group, "cgroup.procs");
  }

  /** SIGKILLs every process in it. */
  end(name: string): void {
    const group = join(this.#root, name);
    const whole = join(group, "cgroup.kill");
    // Linux before 5.14 has no cgroup.kill.
    if (existsSync(whole)) return void ifThere(() => writeFileSync(whole, "1"));
    for (const pid of ifThere(() =>
      readFileSync(join(group, "cgroup.procs"), "utf8").split("\n"),
    ) ?? [])
      if (pid !== "") ifThere(() => process.kill(Number(pid), "SIGKILL"));
  }

  /** Processes that are still ending keep a group; the next sweep removes it. */
  remove(name: string): void {
    try {
      ifThere(() => rmdirSync(join(this.#root, name)));
    } catch (error) {
      if (!isErrno(error, "EBUSY", "ENOTEMPTY")) throw error;
    }
  }

  list(): string[] {
    return readdirSync(this.#root, { withFileTypes: true })
      .filter((each) => each.isDirectory())
      .map(({ name }) => name);
  }
}
