/**
 * Launches where systemd does not run: a session of its own, stdio on /dev/null, in a cgroup of its
 * own where there are any. Never waits for what it started.
 */
import { Fault } from "../../core/fault.ts";
import type { Cgroups } from "./cgroups.ts";
import type { Launcher, Program } from "./launcher.ts";

/** Makes the group and joins it before anything else runs. */
const joinAndRun = 'mkdir -p "$1" && echo $$ >"$1/cgroup.procs" && shift && exec "$@"';

export class DetachedLauncher implements Launcher {
  readonly kind = "detached";
  readonly lacks: string | undefined;
  readonly #cgroups: Cgroups | undefined;

  constructor(cgroups: Cgroups | undefined) {
    this.#cgroups = cgroups;
    const missing = "no cgroup2 can be written here, so VMs run without groups of their own";
    this.lacks = cgroups ? undefined : missing;
  }

  async launch({ name, argv }: Program): Promise<void> {
    const group = this.#cgroups?.pathOf(name);
    const join = ["/bin/sh", "-c", joinAndRun, "join"];
    const whole = group === undefined ? argv : [...join, group, ...argv];
    try {
      // setsid, and no descriptor above 2 is inherited.
      const child = Bun.spawn([...whole], {
        detached: true,
        stdio: ["ignore", "ignore", "ignore"],
        cwd: "/",
        env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin" },
      });
      child.unref();
    } catch (cause) {
      throw new Fault("unavailable", `could not start ${argv[0]}`, { code: "launch", cause });
    }
  }

  async end(name: string): Promise<void> {
    this.#cgroups?.end(name);
  }

  async forget(name: string): Promise<void> {
    this.#cgroups?.remove(name);
  }
}
