/** Which launcher this machine has. Looks once, at the start. */
import { Cgroups } from "./cgroups.ts";
import { canGiveUpPower, DetachedLauncher } from "./detached.ts";
import type { Launcher } from "./launcher.ts";
import { SystemdLauncher, systemdRuns } from "./systemd.ts";

export function openLauncher(installation: string): Launcher {
  if (systemdRuns()) return new SystemdLauncher();
  return new DetachedLauncher({
    cgroups: Cgroups.open(installation),
    givesUpPower: canGiveUpPower(),
  });
}
