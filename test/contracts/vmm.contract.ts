/** What any VMM must do: run against the simulated one and against QEMU. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { makeId } from "../../src/core/ids.ts";
import type { Vmm, VmRef, VmSight, VmSpec } from "../../src/vmm/vmm.ts";

/** What a guest does as soon as it runs. */
export type GuestDeed = "sleeps" | "powers off" | "reboots" | "panics" | "floods its console";

export interface VmmWorld {
  vmm: Vmm;
  /** A guest with a disk of its own, for the first run of a new sandbox unless another is named. */
  specOf: (deed: GuestDeed, ref?: VmRef) => VmSpec;
  /** Drops the object and makes a new one, as a restart of the appliance does. */
  reopen: () => Promise<Vmm>;
  /** From outside, as the host's OOM killer does. */
  killProcess: (ref: VmRef) => Promise<void>;
  /** Lets some time pass. */
  pause: () => Promise<void>;
  /** VMs that really run, whoever started them. */
  countRunning: () => Promise<number>;
  end: () => Promise<void>;
}

let sandboxes = 0;
export function newRef(run = 1): VmRef {
  const random = crypto.getRandomValues(new Uint8Array(10));
  return { sandbox: makeId("sandbox", 1_000_000 + sandboxes++, random), run };
}

const nextRun = ({ sandbox, run }: VmRef): VmRef => ({ sandbox, run: run + 1 });

export function vmmContract(name: string, begin: () => Promise<VmmWorld>): void {
  let world: VmmWorld;
  beforeAll(async () => {
    world = await begin();
  });
  afterAll(() => world.end());

  const awaitEnd = async (ref: VmRef): Promise<VmSight> => {
    while (true) {
      const sight = await world.vmm.look(ref);
      if (sight.state !== "alive") return sight;
      await world.pause();
    }
  };

  test(`${name}: a VM that was never started is absent, and ending it is no mistake`, async () => {
    const ref = newRef();
    expect(await world.vmm.look(ref)).toEqual({ state: "absent" });
    expect(await world.vmm.console(ref)).toHaveLength(0);
    await world.vmm.kill(ref);
    await world.vmm.forget(ref);
    expect(await world.vmm.look(ref)).toEqual({ state: "absent" });
  });

  test(`${name}: booting twice is booting once, at once or later or by another object`, async () => {
    const spec = world.specOf("sleeps");
    await Promise.all([world.vmm.boot(spec), world.vmm.boot(spec)]);
    await world.vmm.boot(spec);
    await (await world.reopen()).boot(spec);
    expect(await world.vmm.look(spec.ref)).toEqual({ state: "alive" });
    expect(await world.countRunning()).toBe(1);
    await world.vmm.kill(spec.ref);
    expect(await world.countRunning()).toBe(0);
  });

  test(`${name}: a kill is final for its run and those before, and asked twice it is the same`, async () => {
    const spec = world.specOf("sleeps");
    await world.vmm.boot(spec);
    await Promise.all([world.vmm.kill(spec.ref), world.vmm.kill(spec.ref)]);
    await world.vmm.kill(spec.ref);
    expect(await world.vmm.look(spec.ref)).toMatchObject({ state: "ended", how: "killed" });
    await world.vmm.boot(spec);
    await (await world.reopen()).boot(spec);
    expect(await world.vmm.look(spec.ref)).toMatchObject({ state: "ended", how: "killed" });
    await world.vmm.forget(spec.ref);
    await world.vmm.boot(spec);
    expect(await world.vmm.look(spec.ref)).toEqual({ state: "absent" });
    expect(await world.countRunning()).toBe(0);
  });

  test(`${name}: a kill that comes first keeps this run and earlier ones from starting`, async () => {
    const first = world.specOf("sleeps");
    const second = { ...first, ref: nextRun(first.ref) };
    await world.vmm.kill(second.ref);
    await world.vmm.boot(first);
    await world.vmm.boot(second);
    expect(await world.countRunning()).toBe(0);
  });

  test(`${name}: a kill during a boot leaves nothing that runs`, async () => {
    const spec = world.specOf("sleeps");
    const boot = world.vmm.boot(spec);
    await Promise.resolve();
    await world.vmm.kill(spec.ref);
    expect(await world.vmm.look(spec.ref)).not.toEqual({ state: "alive" });
    await boot;
    expect(await world.vmm.look(spec.ref)).not.toEqual({ state: "alive" });
    expect(await world.countRunning()).toBe(0);
  });

  const deeds = {
    "powers off": "guest_shutdown",
    reboots: "guest_reboot",
    panics: "guest_panic",
  } as const;
  for (const [deed, how] of Object.entries(deeds) as [GuestDeed, string][])
    test(`${name}: a guest that ${deed} is told apart, also after a restart of ours`, async () => {
      const spec = world.specOf(deed);
      await world.vmm.boot(spec);
      await world.reopen();
      expect(await awaitEnd(spec.ref)).toMatchObject({ state: "ended", how });
      expect(await (await world.reopen()).look(spec.ref)).toMatchObject({ state: "ended", how });
      // Ending what has ended changes nothing about how it ended.
      await world.vmm.kill(spec.ref);
      expect(await world.vmm.look(spec.ref)).toMatchObject({ state: "ended", how });
    });

  test(`${name}: a VM process that something else kills has died`, async () => {
    const spec = world.specOf("sleeps");
    await world.vmm.boot(spec);
    await world.killProcess(spec.ref);
    expect(await awaitEnd(spec.ref)).toMatchObject({ state: "ended", how: "died" });
    await world.vmm.kill(spec.ref);
    expect(await world.vmm.look(spec.ref)).toMatchObject({ state: "ended", how: "died" });
  });

  test(`${name}: a second run on the same disk does not start while the first runs`, async () => {
    const first = world.specOf("sleeps");
    const second = { ...first, ref: nextRun(first.ref) };
    await world.vmm.boot(first);
    await world.vmm.boot(second);
    expect(await world.vmm.look(second.ref)).toMatchObject({ how: "launch_failed" });
    expect(await world.vmm.look(first.ref)).toEqual({ state: "alive" });
    await world.vmm.kill(first.ref);
  });

  test(`${name}: a boot without its disk is broken`, async () => {
    const spec = { ...world.specOf("sleeps"), diskPath: "/no/such/disk" };
    expect(world.vmm.boot(spec)).rejects.toMatchObject({ kind: "broken" });
    await world.vmm.kill(spec.ref);
    expect(await world.vmm.look(spec.ref)).toEqual({ state: "absent" });
  });

  test(`${name}: what was started is listed until it is forgotten, and nothing that lives is`, async () => {
    const spec = world.specOf("sleeps");
    await world.vmm.boot(spec);
    await world.vmm.forget(spec.ref);
    expect(await world.vmm.list()).toContainEqual(spec.ref);
    await world.vmm.kill(spec.ref);
    expect(await (await world.reopen()).list()).toContainEqual(spec.ref);
    await world.vmm.forget(spec.ref);
    await world.vmm.forget(spec.ref);
    expect(await world.vmm.list()).not.toContainEqual(spec.ref);
  });

  test(`${name}: three VMs run beside each other, and a new object adopts them`, async () => {
    const specs = [world.specOf("sleeps"), world.specOf("sleeps"), world.specOf("sleeps")];
    await Promise.all(specs.map((spec) => world.vmm.boot(spec)));
    const vmm = await world.reopen();
    for (const { ref } of specs) expect(await vmm.look(ref)).toEqual({ state: "alive" });
    const [first, ...others] = specs.map(({ ref }) => ref);
    if (first) await vmm.kill(first);
    for (const ref of others) expect(await vmm.look(ref)).toEqual({ state: "alive" });
    await Promise.all(others.map((ref) => vmm.kill(ref)));
    expect(await world.countRunning()).toBe(0);
  });

  test(`${name}: an earlier run can be ended and forgotten while a later one runs`, async () => {
    const first = world.specOf("powers off");
    await world.vmm.boot(first);
    await awaitEnd(first.ref);
    const second = { ...world.specOf("sleeps"), ref: nextRun(first.ref) };
    await world.vmm.boot({ ...second, diskPath: first.diskPath });
    await world.vmm.kill(first.ref);
    await world.vmm.forget(first.ref);
    expect(await world.vmm.look(second.ref)).toEqual({ state: "alive" });
    await world.vmm.kill(second.ref);
  });
}
