/** Which launcher this machine has. Looks once, at the start. */
import { Cgroups } from "./cgroups.ts";
import { DetachedLauncher } from "./detached.ts";
import type { Launcher } from "./launcher.ts";
import { SystemdLauncher, systemdRuns } from "./systemd.ts";

export function openLauncher(installation: string): Launcher {
  return systemdRuns() ? new SystemdLauncher() : new DetachedLauncher(Cgroups.open(installation));
}
