import { GiB } from "../../src/core/units.ts";
import type { VmRef, VmSpec } from "../../src/vmm/vmm.ts";
import { VirtualClock } from "../simulation/clock.ts";
import { Machine } from "../simulation/machine.ts";
import { type Call, simulatedVmm } from "../simulation/outside.ts";
import { SeededRandom } from "../simulation/random.ts";
import { type GuestDeed, newRef, type VmmWorld, vmmContract } from "./vmm.contract.ts";

vmmContract("the simulated VMM", async (): Promise<VmmWorld> => {
  const machine = new Machine(new VirtualClock(), new SeededRandom(1));
  const call: Call = async (_, act) => act();
  const deeds = new Map<string, GuestDeed>();
  const nameOf = ({ sandbox, run }: VmRef): string => `${sandbox}/${run}`;
  const specOf = (deed: GuestDeed, ref = newRef()): VmSpec => {
    machine.makeDisk(ref.sandbox);
    deeds.set(nameOf(ref), deed);
    const boot = { kernelPath: "kernel", initramfsPath: "initramfs", toolsPath: "tools" };
    const identity = { hostname: "simulated", machineId: "0".repeat(32) };
    return { ref, vcpus: 1, memoryBytes: GiB, diskPath: ref.sandbox, boot, ...identity };
  };
  return {
    vmm: simulatedVmm(machine, call),
    specOf,
    reopen: async () => simulatedVmm(machine, call),
    killProcess: async (ref) => {
      for (const vm of machine.alive(ref.sandbox)) machine.end(vm, "died");
    },
    pause: async () => {
      for (const vm of machine.vms.values()) {
        const deed = deeds.get(nameOf(vm.ref));
        if (deed === "powers off") machine.end(vm, "guest_shutdown");
        if (deed === "reboots") machine.end(vm, "guest_reboot");
        if (deed === "panics") machine.end(vm, "guest_panic");
      }
    },
    countRunning: async () => [...machine.vms.values()].filter((vm) => !vm.ended).length,
    end: async () => {},
  };
});
