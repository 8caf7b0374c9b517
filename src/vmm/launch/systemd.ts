/**
 * Launches where systemd runs: one transient unit per VM, all in holdfast-vm.slice. Uses the system
 * manager only; our own unit may end and begin without these noticing.
 */
import { existsSync } from "node:fs";
import { Fault } from "../../core/fault.ts";
import { secondMs } from "../../core/units.ts";
import type { Launcher, Program } from "./launcher.ts";

const answerMs = 30 * secondMs;
const wordsMax = 500;

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
  // Disks are root's own; only the way to them may lead through folders of others.
  "CapabilityBoundingSet=CAP_DAC_READ_SEARCH",
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
    if (code === 0 || (await this.#runs(program.name))) return;
    throw new Fault("unavailable", `systemd did not start ${unitOf(program.name)}: ${words}`, {
      code: "launch",
    });
  }

  /** An earlier process of ours may have been cut short after it had it started. */
  async #runs(name: string): Promise<boolean> {
    const show = ["systemctl", "show", "--property=ActiveState", "--value", unitOf(name)];
    return ["active", "activating"].includes((await run(show)).output);
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

interface Answer {
  readonly code: number;
  readonly output: string;
  readonly words: string;
}

async function run(argv: string[]): Promise<Answer> {
  const child = Bun.spawn(argv, {
    stdio: ["ignore", "pipe", "pipe"],
    timeout: answerMs,
    killSignal: "SIGKILL",
    env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C.UTF-8" },
  });
  const streams = [child.stdout, child.stderr].map((each) => new Response(each).text());
  const [output = "", words = ""] = (await Promise.all(streams)).map((each) => each.trim());
  return { code: await child.exited, output, words: words.slice(0, wordsMax) };
}
