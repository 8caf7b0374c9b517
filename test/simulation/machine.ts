/**
 * One simulated machine: its disks and VMs, which stay when the appliance on it dies. No mishaps
 * here; `world.ts` decides what goes wrong on the way to it.
 */
import { Fault } from "../../src/core/fault.ts";
import type { Clock } from "../../src/system/clock.ts";
import type { VmEnd, VmRef, VmSight, VmSpec } from "../../src/vmm/vmm.ts";
import { SimulatedGuest } from "./guest.ts";
import type { SeededRandom } from "./random.ts";

export interface SimulatedVm {
  readonly ref: VmRef;
  readonly guest: SimulatedGuest;
  /** When its guest part answers; Infinity = never. */
  readonly upAtMs: number;
  ended: { how: VmEnd; detail: string } | undefined;
  /** Its guest part answers nobody while set. */
  silent: boolean;
}

export class Machine {
  readonly vms = new Map<string, SimulatedVm>();
  readonly disks = new Map<string, { madeAtMs: number }>();
  /** Per sandbox, the newest run that may never start again. */
  readonly finalRun = new Map<string, number>();
  /** How often each command was really executed, in any boot. */
  readonly executed = new Map<string, number>();
  stillborn = 0;
  /** Counts what happened to VMs and disks. */
  changes = 0;
  readonly #clock: Clock;
  readonly #random: SeededRandom;

  constructor(clock: Clock, random: SeededRandom) {
    this.#clock = clock;
    this.#random = random;
  }

  boot({ ref, diskPath }: Pick<VmSpec, "ref" | "diskPath">): void {
    const name = nameOf(ref);
    if (this.vms.has(name) || ref.run <= (this.finalRun.get(ref.sandbox) ?? 0)) return;
    if (!this.disks.has(diskPath)) throw new Fault("broken", `no disk ${diskPath}`);
    // The lock on the disk: a second VM ends at once.
    this.changes++;
    const held = this.alive(ref.sandbox).length > 0;
    const bootMs = this.#random.between(100, 9_000);
    const stillborn = this.#random.chance(this.stillborn);
    this.vms.set(name, {
      ref,
      guest: new SimulatedGuest(bootIdOf(this.#random), this.executed),
      upAtMs: stillborn ? Number.POSITIVE_INFINITY : this.#clock.now() + bootMs,
      ended: held ? { how: "launch_failed", detail: "disk locked" } : undefined,
      silent: false,
    });
  }

  look(ref: VmRef): VmSight {
    const vm = this.vms.get(nameOf(ref));
    if (!vm) return { state: "absent" };
    this.#settle(vm);
    return vm.ended ? { state: "ended", ...vm.ended } : { state: "alive" };
  }

  kill(ref: VmRef): void {
    this.changes++;
    const final = Math.max(this.finalRun.get(ref.sandbox) ?? 0, ref.run);
    this.finalRun.set(ref.sandbox, final);
    const vm = this.vms.get(nameOf(ref));
    if (vm && !vm.ended) vm.ended = { how: "killed", detail: "" };
  }

  forget(ref: VmRef): void {
    const vm = this.vms.get(nameOf(ref));
    if (vm?.ended) this.vms.delete(nameOf(ref));
  }

  /** Something in or around a VM ends it. */
  end(vm: SimulatedVm, how: VmEnd): void {
    this.changes++;
    if (!vm.ended) vm.ended = { how, detail: "simulated" };
  }

  alive(sandbox: string): SimulatedVm[] {
    return [...this.vms.values()].filter((vm) => vm.ref.sandbox === sandbox && !vm.ended);
  }

  /** The VM whose guest part answers now. */
  answering(ref: VmRef): SimulatedVm | undefined {
    const vm = this.vms.get(nameOf(ref));
    if (!vm) return undefined;
    this.#settle(vm);
    return !vm.ended && !vm.silent && vm.upAtMs <= this.#clock.now() ? vm : undefined;
  }

  #settle(vm: SimulatedVm): void {
    if (vm.guest.poweredOff) this.end(vm, "guest_shutdown");
  }
}

const nameOf = (ref: VmRef): string => `${ref.sandbox}/${ref.run}`;

function bootIdOf(random: SeededRandom): string {
  const hex = Buffer.from(random.bytes(16)).toString("hex");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
