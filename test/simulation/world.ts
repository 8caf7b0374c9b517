/**
 * A machine and the appliance on it. The appliance may die at any call, message and commit and come
 * back with what was committed; calls may be slow, fail, act and lose the reply, or act long after
 * nobody listens.
 */
import type { SqliteDatabase } from "kysely";
import { type Outside, startAppliance } from "../../src/appliance.ts";
import type { CommandPorts } from "../../src/commands/ports.ts";
import { Fault } from "../../src/core/fault.ts";
import { type Db, type OutputDb, openOutput, openState } from "../../src/db/open.ts";
import { cachingStatements, openBytes, type Sqlite } from "../../src/db/sqlite.ts";
import type { HostMessage } from "../../src/guest/guest.ts";
import { defaultSizes } from "../../src/sandboxes/size.ts";
import type { Clock } from "../../src/system/clock.ts";
import { silentLog } from "../../src/system/log.ts";
import { Signals } from "../../src/system/signals.ts";
import { SimulatedGuests } from "./channels.ts";
import { never, settle, VirtualClock } from "./clock.ts";
import { Machine, type SimulatedVm } from "./machine.ts";
import {
  type Call,
  driver,
  limits,
  recordsKeptMs,
  simulatedDisks,
  simulatedImages,
  simulatedVmm,
} from "./outside.ts";
import { SeededRandom } from "./random.ts";
import { withCommits } from "./storage.ts";
import { calm, drawMishap, type Mishap, type Occasion, type Weather } from "./weather.ts";
import { forbidden } from "./witness.ts";

export class World {
  readonly clock = new VirtualClock();
  readonly random: SeededRandom;
  readonly machine: Machine;
  readonly journal: string[] = [];
  /** What our code did and may never do. */
  readonly violations: string[] = [];
  /** Every step of every workflow that was seen at work. */
  readonly steps = new Set<string>();
  /** When set, decides each mishap by its number and name, and the weather is not asked. */
  plan: ((number: number, what: string) => Mishap | undefined) | undefined;
  /** The next call of this name takes so long. */
  slow: { what: string; ms: number } | undefined;
  /** Calls, messages and commits so far. */
  readonly occasions: string[] = [];
  /** Counts what may have changed a record, so that checks run only then. */
  commits = 0;
  crashes = 0;
  life = 0;
  /** What clients use; replaced by a crash. */
  ports!: CommandPorts;
  #weather: Weather = calm;
  #hostLife = 0;
  #rebooting: Promise<void> | undefined;
  #state!: Sqlite;
  #output!: Sqlite;
  #looks!: SqliteDatabase;
  #outputLooks!: SqliteDatabase;

  private constructor(seed: number) {
    this.random = new SeededRandom(seed);
    this.machine = new Machine(this.clock, this.random);
  }

  static async begin(seed: number, weather: Weather = calm): Promise<World> {
    const world = new World(seed);
    await world.#boot();
    world.weather = weather;
    return world;
  }

  get db(): Db {
    return this.ports.db;
  }

  get output(): OutputDb {
    return this.ports.output;
  }

  set weather(weather: Weather) {
    this.#weather = weather;
    this.machine.stillborn = weather.stillborn;
    this.machine.hostility = weather.hostile;
  }

  /** Rows as they are committed: `look("id from commands where state = ?", "queued")`. */
  look<T>(what: string, ...parameters: unknown[]): T[] {
    return this.#looks.prepare(`select ${what}`).all(parameters) as T[];
  }

  durableBytes(command: string): number {
    const sql = "select end_bytes from outputs where command_id = ?";
    const [row] = this.#outputLooks.prepare(sql).all([command]) as { end_bytes: number }[];
    return row?.end_bytes ?? 0;
  }

  /** Ids of commands of which any output is stored. */
  commandsWithOutput(): string[] {
    const sql = "select command_id as id from outputs union select command_id from chunks";
    return (this.#outputLooks.prepare(sql).all([]) as { id: string }[]).map(({ id }) => id);
  }

  /** Wakes whoever sleeps shortest; a reboot that follows from it is over afterwards. */
  async pass(): Promise<void> {
    await this.clock.advance();
    await this.#rebooting;
  }

  async crash(): Promise<void> {
    this.die();
    await this.#rebooting;
  }

  /** The appliance dies now and starts again from the committed bytes and nothing else. */
  die(): void {
    this.crashes++;
    this.life++;
    this.journal.push(`${this.clock.now()} crash`);
    this.#rebooting = this.#boot();
  }

  /** The machine goes down with everything on it. */
  async loseHost(): Promise<void> {
    this.dieWith("hostLost");
    await this.#rebooting;
  }

  /** The appliance dies now, alone or with its machine. */
  dieWith(mishap: Mishap): void {
    if (mishap === "hostLost") {
      this.#hostLife++;
      // What a hypervisor leaves behind may lie on a disk or in memory.
      this.machine.reboot(this.plan ? true : this.random.chance(0.5));
    }
    this.die();
  }

  async #boot(): Promise<void> {
    const { life } = this;
    // A transaction that is half way either commits whole before the crash or never began.
    await settle();
    this.#state = await openBytes(this.#state?.serialize());
    this.#output = await openBytes(this.#output?.serialize());
    this.#looks = cachingStatements(this.#state);
    this.#outputLooks = cachingStatements(this.#output);
    const clock = this.#mortalClock(life);
    const signals = new Signals(clock);
    const opening = (sqlite: Sqlite, what: string) => ({
      sqlite: withCommits(sqlite, (commit) => this.#commit(life, what, commit)),
      committed: (topics: ReadonlySet<string>) => {
        this.commits++;
        if (life === this.life) signals.notify(topics);
      },
      gather: () => this.#gather(life),
    });
    const call: Call = (what, act) => this.call(life, what, act);
    const outside: Outside = {
      clock,
      signals,
      random: this.random,
      log: silentLog,
      db: openState(opening(this.#state, "records")),
      output: openOutput(opening(this.#output, "output")),
      vmm: simulatedVmm(this.machine, call),
      driver,
      disks: simulatedDisks(this.machine, call),
      images: simulatedImages(call),
      guests: new SimulatedGuests(this, life),
      limits,
      sizes: defaultSizes,
      recordsKeptMs,
    };
    this.ports = startAppliance(outside);
  }

  /** Every call may be slow, fail before it acts, act and lose the reply, or be cut by a crash. */
  async call<T>(life: number, what: string, act: () => T): Promise<T> {
    if (life !== this.life) return never();
    await this.clock.sleep(this.random.between(1, this.#weather.slowestMs));
    if (life !== this.life) return this.#outlive(act);
    const mishap = this.#mishap("call", what);
    if (mishap === "error") throw new Fault("unavailable", `${what}: no answer`);
    if (mishap === "crashBefore") return this.#dieOf(mishap);
    const result = act();
    if (this.slow?.what === what) await this.#dawdle(this.slow.ms);
    if (mishap === "crashAfter" || mishap === "hostLost") return this.#dieOf(mishap);
    if (mishap === "lostReply") throw new Fault("unavailable", `${what}: reply lost`);
    return result;
  }

  /** It has acted, and its answer is old when it comes. */
  async #dawdle(ms: number): Promise<void> {
    this.slow = undefined;
    await this.clock.sleep(ms);
  }

  mishapOf(what: string): Mishap | undefined {
    return this.#mishap("message", what);
  }

  witness(vm: SimulatedVm, message: HostMessage): void {
    const why = forbidden(this, vm, message);
    if (why) this.violations.push(why);
  }

  #mishap(occasion: Occasion, what: string): Mishap | undefined {
    const number = this.occasions.push(what) - 1;
    const mishap = this.plan
      ? this.plan(number, what)
      : drawMishap(this.random, this.#weather, occasion);
    this.journal.push(`${this.clock.now()} ${what}${mishap ? ` (${mishap})` : ""}`);
    return mishap;
  }

  #dieOf(mishap: Mishap): Promise<never> {
    this.dieWith(mishap);
    return never();
  }

  #commit(life: number, what: string, commit: () => void): void {
    if (life !== this.life) return commit();
    const mishap = this.#mishap("commit", `commit ${what}`);
    if (mishap === "error") throw new DiskFull();
    if (mishap === "crashBefore") {
      this.die();
      throw new DiskFull();
    }
    commit();
    if (mishap === "crashAfter" || mishap === "hostLost") this.dieWith(mishap);
  }

  async #gather(life: number): Promise<void> {
    const ms = this.#weather.commitMs > 0 ? this.random.between(0, this.#weather.commitMs) : 0;
    if (ms > 0) await this.clock.sleep(ms);
    if (life !== this.life) await never();
  }

  /** A call in flight when we die may still act, much later, with nobody left to hear of it. */
  async #outlive<T>(act: () => T): Promise<T> {
    const host = this.#hostLife;
    if (this.random.chance(0.5)) {
      await this.clock.sleep(this.random.between(1, 60_000));
      try {
        if (host === this.#hostLife) act();
      } catch (error) {
        if (!(error instanceof Fault)) throw error;
      }
    }
    return never();
  }

  #mortalClock(life: number): Clock {
    return {
      now: () => this.clock.now(),
      monotonic: () => this.clock.monotonic(),
      sleep: async (ms) => {
        await this.clock.sleep(ms);
        if (life !== this.life) await never();
      },
    };
  }
}

/** As better-sqlite3 reports it. */
class DiskFull extends Error {
  readonly code = "SQLITE_FULL";
}
