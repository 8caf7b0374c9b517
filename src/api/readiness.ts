/** Whether this host could do its work now: each check with its code and what to do. */
import { Fault } from "../core/fault.ts";
import { chooseBase } from "./bases.ts";
import type { ApiPorts } from "./ports.ts";

export interface Check {
  name: string;
  ok: boolean;
  code: string;
  message: string;
  fix: string | null;
}

/** Whether a sandbox could be created and started now; each check with what to do. */
export async function checkReadiness(ports: ApiPorts): Promise<Check[]> {
  const { driver } = ports;
  return Promise.all([
    check("hypervisor", `${driver.why}.`, () => ports.vmm.list()),
    check("database", "The state database takes writes.", () => ports.db.write(async () => {})),
    check("base", "The default base is built.", () => chooseBase(ports)),
    check("boot_files", "Kernel, initramfs and tools disk are built.", () =>
      ports.images.bootFiles(),
    ),
  ]);
}

async function check(name: string, fine: string, look: () => Promise<unknown>): Promise<Check> {
  try {
    await look();
    return { name, ok: true, code: "ok", message: fine, fix: null };
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    return {
      name,
      ok: false,
      code: error.code,
      message: `${error.message}.`,
      fix: error.hint ?? null,
    };
  }
}
