import { MiB } from "../../src/core/units.ts";
import { VirtualClock } from "../simulation/clock.ts";
import { Machine } from "../simulation/machine.ts";
import { base, type Call, simulatedDisks } from "../simulation/outside.ts";
import { SeededRandom } from "../simulation/random.ts";
import { disksContract } from "./disks.contract.ts";

disksContract("simulated disks", async () => {
  const machine = new Machine(new VirtualClock(), new SeededRandom(1));
  const call: Call = async (_, act) => act();
  return {
    disks: simulatedDisks(machine, call),
    base: { basePath: base.path, sizeBytes: MiB },
    reopen: async () => simulatedDisks(machine, call),
    end: async () => {},
  };
});
