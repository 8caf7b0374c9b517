/** Channels to simulated guest parts: ordered, slow, and cut at any message in either direction. */
import { Fault } from "../../src/core/fault.ts";
import type { Channel, GuestMessage, Guests, HostMessage } from "../../src/guest/guest.ts";
import type { Clock } from "../../src/system/clock.ts";
import type { VmRef } from "../../src/vmm/vmm.ts";
import { never } from "./clock.ts";
import type { Machine, SimulatedVm } from "./machine.ts";
import type { SeededRandom } from "./random.ts";

/** What a channel needs of the world it runs through. */
export interface Surroundings {
  readonly clock: Clock;
  readonly random: SeededRandom;
  readonly machine: Machine;
  readonly journal: string[];
  readonly weather: { readonly cuts: number };
  /** The appliance's life; calls of an earlier one have no effect. */
  readonly life: number;
  call<T>(life: number, what: string, act: () => T): Promise<T>;
}

const speakPeriodMs = 250;

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
    if (!vm) throw new Fault("unavailable", `the guest part of ${name} does not answer`);
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
  readonly #inbox: GuestMessage[] = [];
  readonly #saidEnds = new Set<string>();
  #closed = false;
  #waiting: (() => void) | undefined;

  constructor(world: Surroundings, life: number, vm: SimulatedVm) {
    this.#world = world;
    this.#life = life;
    this.#vm = vm;
  }

  async send(message: HostMessage): Promise<void> {
    await this.#world.clock.sleep(this.#world.random.between(1, 20));
    if (this.#dead) return never();
    if (this.#closed || !this.#answers) throw this.#gone();
    this.#world.journal.push(`${this.#world.clock.now()} say ${message.type}`);
    if (this.#cut()) throw this.#gone();
    const answers = this.#vm.guest.hear(message, this.#world.clock.now());
    if (this.#cut()) throw this.#gone();
    this.#deliver(answers);
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
  }

  /** The guest part's own speech, for as long as the channel is open. */
  async pump(): Promise<void> {
    while (!this.#closed && !this.#dead) {
      await this.#world.clock.sleep(speakPeriodMs);
      const vm = this.#world.machine.answering(this.#vm.ref);
      if (vm !== this.#vm) break;
      this.#deliver(vm.guest.speak(this.#world.clock.now(), this.#saidEnds));
    }
    this.close();
  }

  /** Messages are delivered up to where the channel breaks; the rest is lost. */
  #deliver(messages: GuestMessage[]): void {
    for (const message of messages) {
      if (this.#cut()) return;
      this.#inbox.push(message);
    }
    this.#waiting?.();
  }

  #cut(): boolean {
    if (!this.#world.random.chance(this.#world.weather.cuts)) return false;
    this.#inbox.length = 0;
    this.close();
    return true;
  }

  get #answers(): boolean {
    return this.#world.machine.answering(this.#vm.ref) === this.#vm;
  }

  get #dead(): boolean {
    return this.#life !== this.#world.life;
  }

  #gone(): Fault {
    return new Fault("unavailable", "the channel is closed");
  }
}
