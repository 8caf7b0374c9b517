/** The machine as the appliance sees it through its ports; every call goes through the world. */
import { Fault } from "../../src/core/fault.ts";
import { dayMs, GiB, MiB } from "../../src/core/units.ts";
import type { Disks } from "../../src/disk/disk.ts";
import type { Base, Images } from "../../src/images/images.ts";
import type { Limits } from "../../src/sandboxes/size.ts";
import type { Vmm, VmmDescription, VmRef } from "../../src/vmm/vmm.ts";
import type { Machine } from "./machine.ts";

export const base: Base = {
  digest: `sha256:${"ab".repeat(32)}`,
  name: "simulated",
  path: "base.raw",
  sizeBytes: MiB,
  builtAtMs: 0,
};

export const driver: VmmDescription = {
  driver: "simulated",
  acceleration: "kvm",
  why: "this is a simulation",
  timeScale: 1,
  bootSlots: 2,
  overheadBytes: 64 * MiB,
};

export const limits: Limits = {
  sandboxesTotal: 50,
  sandboxesRunning: 4,
  vcpusRunning: 20,
  memoryRunningBytes: 20 * GiB,
  diskTotalBytes: 1024 * GiB,
  machineMemoryBytes: 24 * GiB,
};

export const recordsKeptMs = 30 * dayMs;

/** One call to the outside; `act` is what it does to the machine. */
export type Call = <T>(what: string, act: () => T) => Promise<T>;

export function simulatedVmm(machine: Machine, call: Call): Vmm {
  const nameOf = ({ sandbox, run }: VmRef): string => `${sandbox}/${run}`;
  return {
    describe: async () => driver,
    boot: (spec) => call(`boot ${nameOf(spec.ref)}`, () => machine.boot(spec)),
    look: (ref) => call(`look ${nameOf(ref)}`, () => machine.look(ref)),
    resume: (ref) => call(`resume ${nameOf(ref)}`, () => machine.resume(ref)),
    // A guest may ignore its power button; this one does.
    powerOff: (ref) => call(`power off ${nameOf(ref)}`, () => {}),
    kill: (ref) => call(`kill ${nameOf(ref)}`, () => machine.kill(ref)),
    forget: (ref) => call(`forget ${nameOf(ref)}`, () => machine.forget(ref)),
    list: () => call("list VMs", () => [...machine.vms.values()].map(({ ref }) => ref)),
    console: async () => new Uint8Array(),
  };
}

export function simulatedDisks(machine: Machine, call: Call): Disks {
  const { disks } = machine;
  return {
    look: (id) => call(`look disk ${id}`, () => (disks.has(id) ? "ready" : "absent")),
    make: (id, { basePath }) =>
      call(`make disk ${id}`, () => {
        if (!disks.has(id) && basePath !== base.path)
          throw new Fault("missing", `no base at ${basePath}`, { code: "base_missing" });
        machine.makeDisk(id);
      }),
    pathOf: (id) => id,
    remove: (id) => call(`remove disk ${id}`, () => machine.removeDisk(id)),
    list: () => call("list disks", () => [...disks.keys()]),
  };
}

export function simulatedImages(call: Call): Images {
  const files = { kernelPath: "kernel", initramfsPath: "initramfs", toolsPath: "tools" };
  return {
    bases: () => call("bases", () => [base]),
    bootFiles: () => call("boot files", () => files),
  };
}
