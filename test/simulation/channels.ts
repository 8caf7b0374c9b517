/** Channels to simulated guest parts: ordered, slow, and cut at any message in either direction. */
import { Fault } from "../../src/core/fault.ts";
import type { Channel, GuestMessage, Guests, HostMessage } from "../../src/guest/guest.ts";
import type { Clock } from "../../src/system/clock.ts";
import type { VmRef } from "../../src/vmm/vmm.ts";
import { never } from "./clock.ts";
import { lie } from "./lies.ts";
import type { Machine, SimulatedVm } from "./machine.ts";
import type { SeededRandom } from "./random.ts";
import type { Mishap } from "./weather.ts";

/** What a channel needs of the world it runs through. */
export interface Surroundings {
  readonly clock: Clock;
  readonly random: SeededRandom;
  readonly machine: Machine;
  /** The appliance's life; calls of an earlier one have no effect. */
  readonly life: number;
  call<T>(life: number, what: string, act: () => T): Promise<T>;
  /** Decides what becomes of a message, and notes it. */
  mishapOf(what: string): Mishap | undefined;
  /** The appliance dies here, alone or with its machine. */
  dieWith(mishap: Mishap): void;
  /** Looks whether the host may say this now, as a guest part hears it. */
  witness(vm: SimulatedVm, message: HostMessage): void;
}

/** A guest part looks around at least this often. */
const speakPeriodMs = 1_000;

export class SimulatedGuests implements Guests {
  readonly #world: Surroundings;
  readonly #life: number;
  readonly #open = new Map<SimulatedVm, SimulatedChannel>();

  constructor(world: Surroundings, life: number) {
    this.#world = world;
    this.#life = life;
  }

  async open(ref: VmRef): Promise<Channel> {
    const name = `${ref.sandbox}/${ref.run}`;
    const vm = await this.#world.call(this.#life, `open ${name}`, () =>
      this.#world.machine.answering(ref),
    );
    if (!vm || vm.silent || vm.halted) throw new Fault("unavailable", `${name}: no answer`);
    this.#open.get(vm)?.close();
    const channel = new SimulatedChannel(this.#world, this.#life, vm);
    this.#open.set(vm, channel);
    void channel.pump();
    return channel;
  }
}

class SimulatedChannel implements Channel {
  readonly #world: Surroundings;
  readonly #life: number;
  readonly #vm: SimulatedVm;
  readonly #part: number;
  readonly #inbox: GuestMessage[] = [];
  /** Said to a silent guest, which may hear it later. */
  readonly #unheard: HostMessage[] = [];
  #greeted = false;
  #closed = false;
  #waiting: (() => void) | undefined;
  #nudge: (() => void) | undefined;

  constructor(world: Surroundings, life: number, vm: SimulatedVm) {
    this.#world = world;
    this.#life = life;
    this.#vm = vm;
    this.#part = vm.part;
  }

  async send(message: HostMessage): Promise<void> {
    if (this.#dead) return never();
    await this.#world.clock.sleep(this.#world.random.between(1, 20));
    if (this.#dead) return never();
    if (this.#closed || !this.#answers) throw gone();
    const mishap = this.#world.mishapOf(`say ${message.type}`);
    if (mishap === "error") return this.#cut();
    if (mishap === "crashBefore") return this.#die(mishap);
    this.#unheard.push(message);
    if (!(this.#vm.silent || this.#vm.halted)) this.#hear();
    if (mishap === "lostReply") return this.#cut();
    if (mishap === "crashAfter" || mishap === "hostLost") return this.#die(mishap);
  }

  async receive(): Promise<GuestMessage | undefined> {
    while (true) {
      if (this.#dead) return never();
      const message = this.#inbox.shift();
      if (message) return message;
      if (this.#closed) return undefined;
      await new Promise<void>((wake) => {
        this.#waiting = wake;
      });
    }
  }

  close(): void {
    this.#closed = true;
    this.#waiting?.();
    this.#nudge?.();
  }

  /** The guest part's own speech, for as long as the channel is open. */
  async pump(): Promise<void> {
    const { clock, random } = this.#world;
    while (!this.#closed && !this.#dead && this.#answers) {
      if (!(this.#vm.silent || this.#vm.halted)) {
        this.#hear();
        if (this.#greeted) this.#deliver(this.#vm.guest.speak(clock.now()));
      }
      const dueMs = Math.max(this.#vm.guest.dueAtMs - clock.now(), random.between(1, 20));
      await Promise.race([clock.sleep(Math.min(dueMs, speakPeriodMs)), this.#nudged()]);
    }
    if (!this.#dead) this.close();
  }

  #nudged(): Promise<void> {
    return new Promise((wake) => {
      this.#nudge = wake;
    });
  }

  #hear(): void {
    for (const message of this.#unheard.splice(0)) {
      this.#world.witness(this.#vm, message);
      this.#greeted ||= message.type === "hello";
      this.#deliver(this.#vm.guest.hear(message, this.#world.clock.now()));
      this.#nudge?.();
    }
  }

  /** Messages are delivered up to where the channel breaks; the rest is lost. */
  #deliver(said: GuestMessage[]): void {
    const { random, machine } = this.#world;
    const { hostile, ref } = this.#vm;
    const known = { ref, commands: [...machine.deeds.launchedIn.keys()] };
    const messages = hostile ? said.flatMap((each) => lie(random, each, known)) : said;
    for (const message of messages) {
      if (this.#closed || this.#dead) return;
      const mishap = this.#world.mishapOf(`hear ${message.type}`);
      if (mishap === "crashBefore") return this.#world.dieWith(mishap);
      if (mishap !== "error") this.#inbox.push(message);
      if (mishap === "error" || mishap === "lostReply") return this.close();
      this.#waiting?.();
      if (mishap === "crashAfter" || mishap === "hostLost") return this.#world.dieWith(mishap);
    }
  }

  /** Nothing more comes through; what the guest part said before may still be read. */
  #cut(): never {
    if (this.#world.random.chance(0.5)) this.#inbox.length = 0;
    this.close();
    throw gone();
  }

  #die(mishap: Mishap): Promise<never> {
    this.#world.dieWith(mishap);
    return never();
  }

  get #answers(): boolean {
    const { part, ref } = this.#vm;
    return part === this.#part && this.#world.machine.answering(ref) === this.#vm;
  }

  get #dead(): boolean {
    return this.#life !== this.#world.life;
  }
}

function gone(): Fault {
  return new Fault("unavailable", "the channel is closed");
}
