/** Finds out what this machine can do with QEMU, once, and opens the driver. */
import { mkdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { assert } from "../../core/assert.ts";
import { Fault } from "../../core/fault.ts";
import { MiB } from "../../core/units.ts";
import type { Clock } from "../../system/clock.ts";
import { writeWhole } from "../../system/files.ts";
import type { Log } from "../../system/log.ts";
import { LockProbe } from "../../system/process.ts";
import { readHostBootId } from "../launch/identity.ts";
import type { Launcher } from "../launch/launcher.ts";
import { openLauncher } from "../launch/open.ts";
import type { VmmDescription } from "../vmm.ts";
import { QemuVmm } from "./driver.ts";
import keeper from "./keeper.sh" with { type: "text" };
import { probeKvm } from "./probe.ts";
import { RunDirectories } from "./run-directory.ts";

/** More does not make a small guest faster, and the default takes up to 1 GiB a VM. */
const translationMibDefault = 64;
/** What QEMU and the keeper need beside the guest's RAM and translated code. */
const ownMib = 128;
const emulatedScale = 10;

export interface QemuOptions {
  /** Where run directories live; may be lost with the machine's boot. At most 51 bytes long. */
  readonly runRoot: string;
  /** Id of this installation, by which it knows its own VMs: letters, digits, `_` and `-`. */
  readonly installation: string;
  readonly clock: Clock;
  readonly log: Log;
  /** A kernel to try KVM with; without one it is not used. */
  readonly boot?: { readonly kernelPath: string } | undefined;
  /** Host memory for translated code of an emulated VM, MiB. */
  readonly translationMib?: number;
  /** Whichever fits this machine, unless set. */
  readonly launcher?: Launcher;
  /** Another boot's, to look at a machine that restarted. */
  readonly hostBootId?: string;
}

/**
 * Ends nothing and adopts every VM that runs.
 * @throws Fault `unavailable` there is no QEMU; `invalid` the run root's path is too long.
 */
export async function openQemu(options: QemuOptions): Promise<QemuVmm> {
  const { runRoot, installation, clock, log } = options;
  assert(/^[\w-]{1,64}$/.test(installation), `"${installation}" is not an installation's id`);
  const runs = new RunDirectories(runRoot, installation);
  mkdirSync(join(runRoot, "vms"), { recursive: true, mode: 0o700 });
  const keeperPath = join(runRoot, "keeper.sh");
  writeWhole(keeperPath, keeper);
  const { program, version } = await findQemu();
  const kernelPath = options.boot?.kernelPath;
  const kvm = await probeKvm({ program, version, kernelPath, directory: runRoot });
  const launcher = options.launcher ?? openLauncher(installation);
  const translationMib = options.translationMib ?? translationMibDefault;
  const description = describe({ usesKvm: kvm.usable, why: kvm.why, version, translationMib });
  log.info("QEMU is ready", { version, acceleration: description.acceleration, why: kvm.why });
  if (launcher.lacks !== undefined) log.warn(launcher.lacks);
  return new QemuVmm({
    ...{ runs, launcher, description, keeperPath, clock, log },
    locks: new LockProbe(),
    machine: {
      program,
      installation,
      acceleration: { kind: description.acceleration, translationMib },
    },
    hostBootId: options.hostBootId ?? readHostBootId(),
  });
}

interface Choice {
  readonly usesKvm: boolean;
  readonly why: string;
  readonly version: string;
  readonly translationMib: number;
}

function describe({ usesKvm, why, version, translationMib }: Choice): VmmDescription {
  const acceleration = usesKvm ? "kvm" : "emulated";
  return {
    driver: "qemu",
    acceleration,
    why: `QEMU ${version}, ${acceleration}: ${why}`,
    timeScale: usesKvm ? 1 : emulatedScale,
    bootSlots: availableParallelism(),
    overheadBytes: (ownMib + (usesKvm ? 0 : translationMib)) * MiB,
  };
}

const searchPath = "/usr/local/bin:/usr/bin:/bin";

async function findQemu(): Promise<{ program: string; version: string }> {
  const program = Bun.which("qemu-system-x86_64", { PATH: searchPath });
  if (program === null)
    throw new Fault("unavailable", "qemu-system-x86_64 is not installed", {
      code: "no_qemu",
      hint: "apt-get install --no-install-recommends qemu-system-x86",
    });
  const child = Bun.spawn([program, "--version"], { stdio: ["ignore", "pipe", "ignore"] });
  const version = /version (\d+(?:\.\d+)*)/.exec(await new Response(child.stdout).text())?.[1];
  await child.exited;
  if (version === undefined)
    throw new Fault("unavailable", `${program} does not say its version`, { code: "no_qemu" });
  return { program, version };
}
