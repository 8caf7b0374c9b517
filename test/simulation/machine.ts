/**
 * One simulated machine: its disks and VMs, which stay when the appliance on it dies. No mishaps
 * here; `world.ts` decides what goes wrong on the way to it.
 */
import { Fault } from "../../src/core/fault.ts";
import type { Clock } from "../../src/system/clock.ts";
import type { VmEnd, VmRef, VmSight, VmSpec } from "../../src/vmm/vmm.ts";
import { Deeds } from "./deeds.ts";
import { SimulatedGuest } from "./guest.ts";
import type { SeededRandom } from "./random.ts";

export interface SimulatedVm {
  readonly ref: VmRef;
  readonly guest: SimulatedGuest;
  /** When its guest part answers; Infinity = never. A kill of the guest part puts it off. */
  upAtMs: number;
  /** Counts the kills of its guest part: a channel belongs to one. */
  part: number;
  ended: { how: VmEnd; detail: string } | undefined;
  /** It says and hears nothing while set. */
  silent: boolean;
  /** The host takes no write of it: it stands still, and is silent with that. */
  halted: boolean;
  readonly hostile: boolean;
}

export class Machine {
  readonly vms = new Map<string, SimulatedVm>();
  readonly disks = new Map<string, { madeAtMs: number }>();
  readonly deeds = new Deeds();
  /** Sandboxes whose guest lied at least once: what it reported of its own proves nothing. */
  readonly hostile = new Set<string>();
  /** How often each disk was really made. */
  readonly made = new Map<string, number>();
  stillborn = 0;
  /** Whether the host has no room for what VMs write. */
  isFull = false;
  /** How long a boot takes; undefined: drawn for each. */
  bootMs: number | undefined;
  hostility = 0;
  /** Counts what happened to VMs and disks. */
  changes = 0;
  /** Per sandbox, the newest run that may never start again. */
  readonly #finalRun = new Map<string, number>();
  readonly #clock: Clock;
  readonly #random: SeededRandom;
  readonly #pieceBytesMax: number;

  constructor(clock: Clock, random: SeededRandom, pieceBytesMax = 700) {
    this.#clock = clock;
    this.#random = random;
    this.#pieceBytesMax = pieceBytesMax;
  }

  /** How often each command was really executed, in any boot. */
  get executed(): ReadonlyMap<string, number> {
    return this.deeds.executed;
  }

  boot({ ref, diskPath }: Pick<VmSpec, "ref" | "diskPath">): void {
    const name = nameOf(ref);
    if (this.vms.has(name) || ref.run <= (this.#finalRun.get(ref.sandbox) ?? 0)) return;
    if (!this.disks.has(diskPath)) throw new Fault("broken", `no disk ${diskPath}`);
    this.changes++;
    // The lock on the disk: a second VM ends at once.
    const held = this.alive(ref.sandbox).length > 0;
    const bootMs = this.bootMs ?? this.#random.between(100, 9_000);
    const stillborn = this.#random.chance(this.stillborn);
    const hostile = this.#random.chance(this.hostility);
    if (hostile) this.hostile.add(ref.sandbox);
    this.vms.set(name, {
      ref,
      guest: new SimulatedGuest(bootIdOf(this.#random), this.deeds, this.#pieceBytesMax),
      upAtMs: stillborn ? Number.POSITIVE_INFINITY : this.#clock.now() + bootMs,
      part: 0,
      ended: held ? { how: "launch_failed", detail: "disk locked" } : undefined,
      silent: false,
      halted: false,
      hostile,
    });
  }

  makeDisk(id: string): void {
    if (this.disks.has(id)) return;
    this.changes++;
    this.disks.set(id, { madeAtMs: this.#clock.now() });
    this.made.set(id, (this.made.get(id) ?? 0) + 1);
  }

  removeDisk(id: string): void {
    this.changes++;
    this.disks.delete(id);
  }

  look(ref: VmRef): VmSight {
    const vm = this.vms.get(nameOf(ref));
    if (!vm) return { state: "absent" };
    this.#settle(vm);
    return vm.ended ? { state: "ended", ...vm.ended } : { state: "alive" };
  }

  /** Goes on where the host has room again. */
  resume(ref: VmRef): "runs" | "halted" {
    const vm = this.vms.get(nameOf(ref));
    if (!vm?.halted || this.isFull) return vm?.halted ? "halted" : "runs";
    vm.halted = false;
    return "runs";
  }

  kill(ref: VmRef): void {
    this.changes++;
    const final = Math.max(this.#finalRun.get(ref.sandbox) ?? 0, ref.run);
    this.#finalRun.set(ref.sandbox, final);
    const vm = this.vms.get(nameOf(ref));
    if (vm) this.end(vm, "killed");
  }

  forget(ref: VmRef): void {
    const vm = this.vms.get(nameOf(ref));
    if (vm?.ended) this.vms.delete(nameOf(ref));
  }

  /** Something in or around a VM ends it. */
  end(vm: SimulatedVm, how: VmEnd): void {
    if (vm.ended) return;
    this.changes++;
    vm.guest.tick(this.#clock.now());
    vm.ended = { how, detail: "simulated" };
  }

  /** The guest part is killed and comes back; what runs in the VM does not notice. */
  killPart(vm: SimulatedVm): void {
    vm.part++;
    vm.guest.restart();
    vm.upAtMs = Math.max(vm.upAtMs, this.#clock.now() + this.#random.between(10, 3_000));
  }

  /** The whole machine reboots: no VM runs on, and nothing is in flight. */
  reboot(forgets: boolean): void {
    for (const vm of this.vms.values()) this.end(vm, "died");
    this.#finalRun.clear();
    if (forgets) this.vms.clear();
  }

  alive(sandbox: string): SimulatedVm[] {
    return [...this.vms.values()].filter((vm) => vm.ref.sandbox === sandbox && !vm.ended);
  }

  /** The VM whose guest part is there to be spoken to. */
  answering(ref: VmRef): SimulatedVm | undefined {
    const vm = this.vms.get(nameOf(ref));
    if (!vm) return undefined;
    this.#settle(vm);
    return !vm.ended && vm.upAtMs <= this.#clock.now() ? vm : undefined;
  }

  #settle(vm: SimulatedVm): void {
    vm.guest.tick(this.#clock.now());
    if (vm.guest.poweredOff) this.end(vm, "guest_shutdown");
  }
}

const nameOf = (ref: VmRef): string => `${ref.sandbox}/${ref.run}`;

function bootIdOf(random: SeededRandom): string {
  const hex = Buffer.from(random.bytes(16)).toString("hex");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
