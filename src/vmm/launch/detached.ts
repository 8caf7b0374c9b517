/**
 * Launches where systemd does not run: a session of its own, stdio on /dev/null, in a cgroup of its
 * own where there are any. Never waits for what it started.
 */
import { Fault } from "../../core/fault.ts";
import type { Cgroups } from "./cgroups.ts";
import type { Launcher, Program } from "./launcher.ts";

/** Joins the group before anything else runs. */
const joinAndRun = 'echo $$ >"$1" && shift && exec "$@"';

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
    const entry = this.#cgroups?.make(name);
    const whole =
      entry === undefined ? argv : ["/bin/sh", "-c", joinAndRun, "join", entry, ...argv];
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
