/**
 * Launches where systemd does not run: a session of its own, stdio on /dev/null, in a cgroup of its
 * own where there are any. Never waits for what it started.
 */
import { existsSync } from "node:fs";
import { Fault } from "../../core/fault.ts";
import type { Cgroups } from "./cgroups.ts";
import type { Launcher, Program } from "./launcher.ts";

/**
 * Makes the group, if one is named, and joins it before anything else runs. Guests compute as much
 * as they like; the host's own work, and our answers, come before that. Where every session is
 * scheduled as one (sched(7), autogroup), nice(1) counts only inside of it.
 */
const joinAndRun = [
  'if [ -n "$1" ]; then mkdir -p "$1" && echo $$ >"$1/cgroup.procs" || exit 1; fi',
  "{ echo 10 >/proc/self/autogroup; } 2>/dev/null",
  'shift; exec nice -n 10 "$@"',
].join("; ");

/** setpriv(1): what the unit of a VM would take from root, too. */
const withoutPower: readonly string[] = [
  ...["/usr/bin/setpriv", "--no-new-privs", "--inh-caps=-all"],
  "--bounding-set=-all,+dac_read_search",
  "--",
];

/** Whether we are root and may give up what root can do. */
export function canGiveUpPower(): boolean {
  if (process.getuid?.() !== 0 || !existsSync("/usr/bin/setpriv")) return false;
  return Bun.spawnSync([...withoutPower, "/bin/true"]).exitCode === 0;
}

export interface DetachedOptions {
  readonly cgroups: Cgroups | undefined;
  readonly givesUpPower: boolean;
}

export class DetachedLauncher implements Launcher {
  readonly kind = "detached";
  readonly lacks: string | undefined;
  readonly #cgroups: Cgroups | undefined;
  readonly #givesUpPower: boolean;

  constructor({ cgroups, givesUpPower }: DetachedOptions) {
    this.#cgroups = cgroups;
    this.#givesUpPower = givesUpPower;
    const missing = "no cgroup2 can be written here, so VMs run without groups of their own";
    this.lacks = cgroups ? undefined : missing;
  }

  async launch({ name, argv }: Program): Promise<void> {
    const group = this.#cgroups?.pathOf(name);
    const join = ["/bin/sh", "-c", joinAndRun, "join"];
    const program = this.#givesUpPower ? [...withoutPower, ...argv] : argv;
    const whole = [...join, group ?? "", ...program];
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
