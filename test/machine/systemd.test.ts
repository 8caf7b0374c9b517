import { expect, test } from "bun:test";
import { join } from "node:path";
import { inSystemd, whyNoSystemd } from "./systemd-world.ts";

const why = await whyNoSystemd();
const suites = ["test/machine/qemu.test.ts", "test/machine/qemu-life.test.ts"];

test.skipIf(why !== undefined)(
  `where systemd runs, each VM is a unit of it, and all that holds for VMs holds${skipped()}`,
  async () => {
    const bun = [process.execPath, "test", "--timeout", "120000"];
    const { said } = await inSystemd(...bun, ...suites.map((each) => `./${each}`));
    expect(said).toMatch(/^ [1-9]\d* pass$/m);
    expect(said).toMatch(/^ 0 fail$/m);
    expect(said).toContain("holdfast-vm@");
  },
);

test.skipIf(why !== undefined)(
  `scripts/up installs a unit that VMs and commands outlive, and scripts/down stops it${skipped()}`,
  async () => {
    const { said } = await inSystemd("sh", join(import.meta.dir, "systemd-up.sh"));
    const steps = said.split("\n").filter((line) => line.startsWith("= "));
    expect(steps).toEqual([
      "= up 0",
      "= enabled active",
      "= exec demo 0",
      "= VMs 1",
      "= output 1 2 3 4 5 end 0",
      "= killed and back: active",
      "= up again 0",
      "= the same VM",
      "= down 0, disabled inactive, VMs 1",
      "= down --vms 0, VMs 0",
    ]);
  },
);

function skipped(): string {
  return why === undefined ? "" : ` (systemd cannot be tried here: ${why})`;
}
