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

  /** Undefined where no group can be made. Removes groups whose processes are gone. */
  static open(installation: string, mountinfo = readFileSync("/proc/self/mountinfo", "utf8")) {
    for (const mount of cgroup2Mounts(mountinfo)) {
      const root = join(mount, "holdfast", installation);
      try {
        mkdirSync(root, { recursive: true });
        if (!existsSync(join(root, "cgroup.procs"))) continue;
        const groups = new Cgroups(root);
        for (const name of groups.#names()) groups.remove(name);
        return groups;
      } catch (error) {
        if (!isErrno(error, "EACCES", "EPERM", "EROFS", "ENOENT", "ENOSPC")) throw error;
      }
    }
    return undefined;
  }

  pathOf(name: string): string {
    return join(this.#root, name);
  }

  /** SIGKILLs every process in it. */
  end(name: string): void {
    const group = this.pathOf(name);
    const whole = join(group, "cgroup.kill");
    // Linux before 5.14 has no cgroup.kill.
    if (existsSync(whole)) return void ifThere(() => writeFileSync(whole, "1"));
    const pids = ifThere(() => readFileSync(join(group, "cgroup.procs"), "utf8")) ?? "";
    for (const pid of pids.split("\n").filter((each) => each !== ""))
      ifThere(() => process.kill(Number(pid), "SIGKILL"));
  }

  /** One that has processes stays. */
  remove(name: string): void {
    try {
      ifThere(() => rmdirSync(this.pathOf(name)));
    } catch (error) {
      if (!isErrno(error, "EBUSY", "ENOTEMPTY")) throw error;
    }
  }

  #names(): string[] {
    return readdirSync(this.#root, { withFileTypes: true })
      .filter((each) => each.isDirectory())
      .map(({ name }) => name);
  }
}
