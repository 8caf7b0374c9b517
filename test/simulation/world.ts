/**
 * A machine and the appliance on it. The appliance may die at any call and come back with what was
 * committed; calls may be slow, fail, act and lose the reply, or act long after nobody listens.
 */
import { type Outside, startAppliance } from "../../src/appliance.ts";
import type { CommandPorts } from "../../src/commands/ports.ts";
import { Fault } from "../../src/core/fault.ts";
import { GiB, MiB } from "../../src/core/units.ts";
import { type Db, type OutputDb, openOutput, openState } from "../../src/db/open.ts";
import { openBytes, type Sqlite } from "../../src/db/sqlite.ts";
import type { Disks } from "../../src/disk/disk.ts";
import type { Base, Images } from "../../src/images/images.ts";
import type { Limits } from "../../src/sandboxes/size.ts";
import { defaultSizes } from "../../src/sandboxes/size.ts";
import type { Clock } from "../../src/system/clock.ts";
import { silentLog } from "../../src/system/log.ts";
import { Signals } from "../../src/system/signals.ts";
import type { Vmm, VmmDescription } from "../../src/vmm/vmm.ts";
import { SimulatedGuests } from "./channels.ts";
import { never, VirtualClock } from "./clock.ts";
import { Machine } from "./machine.ts";
import { SeededRandom } from "./random.ts";

export interface Weather {
  /** Chance that a VM, once started, never answers. */
  stillborn: number;
  /** Longest a call may take. */
  slowestMs: number;
  errors: number;
  lostReplies: number;
  crashes: number;
  /** Chance, per message, that the channel breaks there. */
  cuts: number;
}

export const calm: Weather = {
  stillborn: 0,
  slowestMs: 50,
  errors: 0,
  lostReplies: 0,
  crashes: 0,
  cuts: 0,
};

export const mishaps = ["error", "lostReply", "crashBefore", "crashAfter"] as const;
export type Mishap = (typeof mishaps)[number];

export const base: Base = {
  digest: `sha256:${"ab".repeat(32)}`,
  name: "simulated",
  path: "base.raw",
  sizeBytes: MiB,
  builtAtMs: 0,
};

const driver: VmmDescription = {
  driver: "simulated",
  acceleration: "kvm",
  why: "this is a simulation",
  timeScale: 1,
  bootSlots: 3,
  overheadBytes: 64 * MiB,
};

const limits: Limits = {
  sandboxesTotal: 50,
  sandboxesRunning: 10,
  vcpusRunning: 20,
  memoryRunningBytes: 20 * GiB,
  diskTotalBytes: 1024 * GiB,
  machineMemoryBytes: 24 * GiB,
};

export class World {
  readonly clock = new VirtualClock();
  readonly random: SeededRandom;
  readonly machine: Machine;
  readonly journal: string[] = [];
  weather: Weather;
  /** When set, decides each call's mishap by its number, and the weather is not asked. */
  plan: ((call: number) => Mishap | undefined) | undefined;
  calls = 0;
  /** Counts what may have changed a record, so that checks run only then. */
  commits = 0;
  crashes = 0;
  /** What the checks have seen already. */
  checked = "";
  /** What clients use; replaced by a crash. */
  ports!: CommandPorts;
  life = 0;
  #sqlite: Sqlite | undefined;
  #outputSqlite: Sqlite | undefined;

  private constructor(seed: number, weather: Weather) {
    this.random = new SeededRandom(seed);
    this.weather = weather;
    this.machine = new Machine(this.clock, this.random);
  }

  static async begin(seed: number, weather: Weather): Promise<World> {
    const world = new World(seed, weather);
    await world.boot();
    return world;
  }

  get db(): Db {
    return this.ports.db;
  }

  get output(): OutputDb {
    return this.ports.output;
  }

  /** The appliance starts from the committed bytes and nothing else. */
  async boot(): Promise<void> {
    const life = ++this.life;
    // A transaction that is half way either commits whole before the crash or never began.
    await new Promise((settled) => setImmediate(settled));
    this.#sqlite = await openBytes(this.#sqlite?.serialize());
    this.#outputSqlite = await openBytes(this.#outputSqlite?.serialize());
    const clock = this.#mortalClock(life);
    const signals = new Signals(clock);
    const gather = async (): Promise<void> => this.#dieWith(life);
    const committed = (topics: ReadonlySet<string>): void => {
      this.commits++;
      signals.notify(topics);
    };
    const outside: Outside = {
      clock,
      signals,
      random: this.random,
      log: silentLog,
      db: openState({ sqlite: this.#sqlite, committed, gather }),
      output: openOutput({ sqlite: this.#outputSqlite, committed, gather }),
      vmm: this.#vmm(life),
      driver,
      disks: this.#disks(life),
      images: this.#images(life),
      guests: new SimulatedGuests(this, life),
      limits,
      sizes: defaultSizes,
    };
    this.ports = startAppliance(outside);
  }

  async crash(): Promise<void> {
    this.crashes++;
    this.journal.push(`${this.clock.now()} crash`);
    await this.boot();
  }

  #vmm(life: number): Vmm {
    const { machine } = this;
    const call = <T>(what: string, act: () => T): Promise<T> => this.call(life, what, act);
    return {
      describe: async () => driver,
      boot: (spec) => call(`boot ${spec.ref.sandbox}/${spec.ref.run}`, () => machine.boot(spec)),
      look: (ref) => call(`look ${ref.sandbox}/${ref.run}`, () => machine.look(ref)),
      powerOff: () => Promise.reject(new Fault("unavailable", "not simulated")),
      kill: (ref) => call(`kill ${ref.sandbox}/${ref.run}`, () => machine.kill(ref)),
      forget: (ref) => call(`forget ${ref.sandbox}/${ref.run}`, () => machine.forget(ref)),
      list: () => call("list", () => [...machine.vms.values()].map(({ ref }) => ref)),
      console: async () => new Uint8Array(),
    };
  }

  #disks(life: number): Disks {
    const { disks } = this.machine;
    return {
      look: (id) => this.call(life, `look disk ${id}`, () => (disks.has(id) ? "ready" : "absent")),
      make: (id) =>
        this.call(life, `make disk ${id}`, () => {
          if (!disks.has(id)) disks.set(id, { madeAtMs: this.clock.now() });
        }),
      pathOf: (id) => id,
      remove: (id) => this.call(life, `remove disk ${id}`, () => void disks.delete(id)),
      list: () => this.call(life, "list disks", () => [...disks.keys()]),
    };
  }

  #images(life: number): Images {
    const files = { kernelPath: "kernel", initramfsPath: "initramfs", toolsPath: "tools" };
    return {
      bases: () => this.call(life, "bases", () => [base]),
      bootFiles: () => this.call(life, "boot files", () => files),
    };
  }

  /** Every call may be slow, fail before it acts, act and lose the reply, or be cut by a crash. */
  async call<T>(life: number, what: string, act: () => T): Promise<T> {
    await this.clock.sleep(this.random.between(1, this.weather.slowestMs));
    if (life !== this.life) return this.#outlive(act);
    this.journal.push(`${this.clock.now()} ${what}`);
    const call = this.calls++;
    const mishap = this.plan ? this.plan(call) : this.#draw();
    if (mishap === "error") throw new Fault("unavailable", `${what}: no answer`);
    const crashes = mishap === "crashBefore" || mishap === "crashAfter";
    const result = mishap === "crashBefore" ? undefined : act();
    if (crashes) {
      await this.crash();
      return never();
    }
    if (mishap === "lostReply") throw new Fault("unavailable", `${what}: reply lost`);
    return result as T;
  }

  #draw(): Mishap | undefined {
    const { random, weather } = this;
    if (random.chance(weather.errors)) return "error";
    if (random.chance(weather.crashes)) return random.chance(0.5) ? "crashBefore" : "crashAfter";
    if (random.chance(weather.lostReplies)) return "lostReply";
    return undefined;
  }

  /** A call in flight when we die may still act, much later, with nobody left to hear of it. */
  async #outlive<T>(act: () => T): Promise<T> {
    if (this.random.chance(0.5)) {
      await this.clock.sleep(this.random.between(1, 60_000));
      try {
        act();
      } catch (error) {
        if (!(error instanceof Fault)) throw error;
      }
    }
    return never();
  }

  #dieWith(life: number): Promise<void> {
    return life === this.life ? Promise.resolve() : never();
  }

  #mortalClock(life: number): Clock {
    return {
      now: () => this.clock.now(),
      monotonic: () => this.clock.monotonic(),
      sleep: async (ms) => {
        await this.clock.sleep(ms);
        await this.#dieWith(life);
      },
    };
  }
}
