/**
 * Real VMs that boot in two seconds of emulation: a stock kernel with an init of a few instructions.
 * Ends every VM it started.
 */
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmdirSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MiB } from "../../src/core/units.ts";
import { systemClock } from "../../src/system/clock.ts";
import { ifThere } from "../../src/system/files.ts";
import { silentLog } from "../../src/system/log.ts";
import { cgroup2Mounts } from "../../src/vmm/launch/cgroups.ts";
import { endProcess, findByArgument, isAlive } from "../../src/vmm/launch/identity.ts";
import { ownerName, ownerPrefix } from "../../src/vmm/qemu/argv.ts";
import type { QemuVmm } from "../../src/vmm/qemu/driver.ts";
import { openQemu, type QemuOptions } from "../../src/vmm/qemu/open.ts";
import {
  exit,
  powerOff,
  print,
  repeat,
  restart,
  sleep,
  tinyInitramfs,
} from "../../src/vmm/qemu/tiny-guest.ts";
import type { VmRef, VmSpec } from "../../src/vmm/vmm.ts";
import { type GuestDeed, newRef, type VmmWorld } from "../contracts/vmm.contract.ts";
import { testImages } from "./images.ts";

export const floodLine = "this console never stops talking\n";

const initramfsOf: Readonly<Record<GuestDeed, () => Buffer>> = {
  sleeps: () => tinyInitramfs(print("tiny: up\n"), sleep()),
  "powers off": () => tinyInitramfs(print("tiny: off\n"), powerOff()),
  reboots: () => tinyInitramfs(print("tiny: again\n"), restart()),
  panics: () => tinyInitramfs(print("tiny: away\n"), exit()),
  "floods its console": () => tinyInitramfs(repeat(print(floodLine.repeat(30)))),
};

export class TinyVms implements VmmWorld {
  vmm: QemuVmm;
  readonly root: string;
  readonly installation: string;
  readonly #kernelPath: string;
  readonly #options: Partial<QemuOptions>;
  #files = 0;

  private constructor(vmm: QemuVmm, place: Place, options: Partial<QemuOptions>) {
    this.vmm = vmm;
    this.root = place.root;
    this.installation = place.installation;
    this.#kernelPath = place.kernelPath;
    this.#options = options;
  }

  static async begin(options: Partial<QemuOptions> = {}): Promise<TinyVms> {
    const kernelPath = await findKernel();
    const root = mkdtempSync(join(tmpdir(), "hf-"));
    const installation = `test-${crypto.randomUUID()}`;
    const vmm = await open(root, installation, options);
    return new TinyVms(vmm, { root, installation, kernelPath }, options);
  }

  specOf = (deed: GuestDeed, ref = newRef()): VmSpec => {
    const directory = join(this.root, "files");
    mkdirSync(directory, { recursive: true });
    const fresh = (name: string, bytes: Uint8Array): string => {
      const path = join(directory, `${this.#files++}-${name}`);
      writeFileSync(path, bytes);
      return path;
    };
    const [diskPath, toolsPath] = [
      fresh("disk", new Uint8Array()),
      fresh("tools", new Uint8Array()),
    ];
    for (const path of [diskPath, toolsPath]) truncateSync(path, MiB);
    const initramfsPath = fresh("initramfs", initramfsOf[deed]());
    const boot = { kernelPath: this.#kernelPath, initramfsPath, toolsPath };
    const identity = { hostname: "tiny", machineId: "0".repeat(32) };
    return { ref, vcpus: 1, memoryBytes: 128 * MiB, diskPath, boot, ...identity };
  };

  reopen = async (): Promise<QemuVmm> => {
    this.vmm = await open(this.root, this.installation, this.#options);
    return this.vmm;
  };

  killProcess = async (ref: VmRef): Promise<void> => {
    for (const { identity } of this.#processes(ownerName(this.installation, ref)))
      endProcess(identity);
  };

  pause = (): Promise<void> => Bun.sleep(100);

  countRunning = async (): Promise<number> =>
    this.#processes(ownerPrefix(this.installation)).filter(({ identity }) => isAlive(identity))
      .length;

  end = async (): Promise<void> => {
    for (const ref of await this.vmm.list()) {
      await this.vmm.kill(ref);
      await this.vmm.forget(ref);
    }
    for (const { identity } of findByArgument(ownerPrefix(this.installation))) endProcess(identity);
    rmSync(this.root, { recursive: true });
    for (const mount of cgroup2Mounts(readFileSync("/proc/self/mountinfo", "utf8")))
      ifThere(() => rmdirSync(join(mount, "holdfast", this.installation)));
  };

  /** The QEMU processes, not their keepers. */
  #processes(beginning: string) {
    return findByArgument(beginning).filter(({ argv }) => argv[0]?.includes("qemu-system"));
  }
}

interface Place {
  readonly root: string;
  readonly installation: string;
  readonly kernelPath: string;
}

function open(runRoot: string, installation: string, options: Partial<QemuOptions>) {
  const common = { clock: systemClock, log: silentLog, translationMib: 32 };
  return openQemu({ ...common, ...options, runRoot, installation });
}

/** Any will do that boots by PVH and needs no module to reach its init. */
async function findKernel(): Promise<string> {
  return process.env["HOLDFAST_TEST_KERNEL"] ?? (await testImages().bootFiles()).kernelPath;
}
