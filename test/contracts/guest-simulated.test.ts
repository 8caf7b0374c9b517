/** The simulated guest part keeps the contract that the real one keeps: the simulator cannot lie. */

import { SimulatedGuests, type Surroundings } from "../simulation/channels.ts";
import { Machine } from "../simulation/machine.ts";
import { SeededRandom } from "../simulation/random.ts";
import { type GuestFixture, guestContract } from "./guest.contract.ts";

/** Simulated milliseconds that pass in one real one. */
const pace = 20;
const ref = { sandbox: "sb", run: 1 };

async function begin(): Promise<GuestFixture> {
  const random = new SeededRandom(1);
  const startMs = performance.now();
  const now = (): number => Math.floor((performance.now() - startMs) * pace);
  const clock = {
    now: () => 1_000_000 + now(),
    monotonic: now,
    sleep: (ms: number) => Bun.sleep(ms / pace),
  };
  const machine = new Machine(clock, random, 64 * 1024);
  machine.bootMs = 0;
  machine.makeDisk("disk");
  machine.boot({ ref, diskPath: "disk" });
  const surroundings: Surroundings = {
    clock,
    random,
    machine,
    life: 0,
    call: async (_, __, act) => act(),
    mishapOf: () => undefined,
    dieWith: () => {},
    witness: () => {},
  };
  const [vm] = machine.alive(ref.sandbox);
  return {
    guests: new SimulatedGuests(surroundings, 0),
    ref,
    restart: async () => {
      if (vm) machine.killPart(vm);
      while (machine.answering(ref) === undefined) await Bun.sleep(1);
    },
    end: async () => {
      if (vm) machine.end(vm, "killed");
    },
  };
}

guestContract("the simulated guest part", begin, {
  copies: () => ["cat"],
  ignoresTerm: () => ["stubborn", "600"],
  prints: (bytes) => ["program", "0", String(bytes), "0"],
  exits: (code) => ["program", "0", "0", String(code)],
  sleeps: (seconds) => ["sleep", String(seconds)],
  user: "root",
});
