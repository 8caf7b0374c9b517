/**
 * Launches where systemd runs: one transient unit per VM, all in holdfast-vm.slice. Uses the system
 * manager only; our own unit may end and begin without these noticing.
 */
import { existsSync } from "node:fs";
import { Fault } from "../../core/fault.ts";
import { secondMs } from "../../core/units.ts";
import type { Launcher, Program } from "./launcher.ts";

const answerMs = 30 * secondMs;

/** As sd_booted(3) tests it; the binary is there on machines that run something else. */
export function systemdRuns(): boolean {
  return existsSync("/run/systemd/system");
}

export const unitOf = (name: string): string => `holdfast-vm@${name}.service`;

/** systemd.exec(5), systemd.kill(5). */
const properties: readonly string[] = [
  "Type=exec",
  "KillMode=control-group",
  "OOMPolicy=continue",
  "NoNewPrivileges=yes",
  "CapabilityBoundingSet=",
  "RestrictAddressFamilies=AF_UNIX",
  "ProtectSystem=full",
  "ProtectKernelTunables=yes",
  "ProtectKernelModules=yes",
  "ProtectControlGroups=yes",
  "PrivateTmp=no",
  "RestrictSUIDSGID=yes",
  "LockPersonality=yes",
  "LimitCORE=0",
];

/** The command that makes the unit and starts it. */
export function systemdRunArgv({ name, argv }: Program): string[] {
  return [
    ...["systemd-run", "--system", "--quiet", "--collect", "--no-ask-password"],
    ...[`--unit=${unitOf(name)}`, "--slice=holdfast-vm.slice", `--description=Sandbox ${name}`],
    ...properties.map((each) => `--property=${each}`),
    "--",
    // The manager expands variables in what a unit runs.
    ...argv.map((each) => each.replaceAll("$", "$$$$")),
  ];
}

export class SystemdLauncher implements Launcher {
  readonly kind = "systemd";
  readonly lacks = undefined;

  async launch(program: Program): Promise<void> {
    const { code, words } = await run(systemdRunArgv(program));
    if (code === 0) return;
    throw new Fault("unavailable", `systemd did not start ${unitOf(program.name)}: ${words}`, {
      code: "launch",
    });
  }

  /** A unit that is not there has nothing left to end. */
  async end(name: string): Promise<void> {
    await run(["systemctl", "kill", "--signal=SIGKILL", unitOf(name)]);
  }

  /** --collect lets go of every unit that ends; this is for one that is stuck. */
  async forget(name: string): Promise<void> {
    await run(["systemctl", "reset-failed", unitOf(name)]);
  }
}

async function run(argv: string[]): Promise<{ code: number; words: string }> {
  const child = Bun.spawn(argv, {
    stdio: ["ignore", "ignore", "pipe"],
    timeout: answerMs,
    killSignal: "SIGKILL",
    env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C.UTF-8" },
  });
  const words = (await new Response(child.stderr).text()).trim().slice(0, 500);
  return { code: await child.exited, words };
}
