/** A machine without a hypervisor: records are kept and can be read, and nothing starts. */
import { Fault } from "../core/fault.ts";
import type { Vmm } from "./vmm.ts";

/** @param why one sentence; every call that would need a VM is refused with it. */
export function absentVmm(why: string): Vmm {
  const refuse = async (): Promise<never> => {
    throw new Fault("unavailable", why, { code: "no_driver", hint: "holdfast doctor" });
  };
  return {
    describe: async () => ({
      driver: "qemu",
      acceleration: "emulated",
      why,
      timeScale: 1,
      bootSlots: 1,
      overheadBytes: 0,
    }),
    boot: refuse,
    look: refuse,
    resume: refuse,
    powerOff: refuse,
    kill: refuse,
    forget: refuse,
    list: refuse,
    console: refuse,
  };
}
