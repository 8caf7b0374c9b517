import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { KiB } from "../../src/core/units.ts";
import { endProcess, findByArgument, isAlive } from "../../src/vmm/launch/identity.ts";
import { ownerName } from "../../src/vmm/qemu/argv.ts";
import type { VmRef } from "../../src/vmm/vmm.ts";
import { newRef } from "../contracts/vmm.contract.ts";
import { floodLine, TinyVms } from "./tiny-vms.ts";

let world: TinyVms;
beforeAll(async () => {
  world = await TinyVms.begin();
});
afterAll(() => world.end());

const runPath = ({ sandbox, run }: VmRef): string => join(world.root, "vms", sandbox, String(run));
const consoleText = async (ref: VmRef): Promise<string> =>
  new TextDecoder().decode(await world.vmm.console(ref));

async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await world.pause();
}

test("a kernel that QEMU cannot load is a failed launch in QEMU's words", async () => {
  const { boot, ...spec } = world.specOf("sleeps");
  const kernelPath = join(world.root, "not-a-kernel");
  writeFileSync(kernelPath, "not a kernel");
  await world.vmm.boot({ ...spec, boot: { ...boot, kernelPath } });
  const sight = await world.vmm.look(spec.ref);
  expect(sight).toMatchObject({ state: "ended", how: "launch_failed" });
  expect(sight).toHaveProperty("detail", expect.stringContaining("kernel"));
});

test("a kernel that is not there is broken and leaves nothing behind", async () => {
  const { boot, ...spec } = world.specOf("sleeps");
  const bad = { ...spec, boot: { ...boot, kernelPath: "/no/such/kernel" } };
  expect(world.vmm.boot(bad)).rejects.toThrow("the kernel cannot be read: /no/such/kernel");
  expect(await world.vmm.look(spec.ref)).toEqual({ state: "absent" });
});

test("two sandboxes never run on one disk", async () => {
  const first = world.specOf("sleeps");
  const second = { ...world.specOf("sleeps"), diskPath: first.diskPath };
  await world.vmm.boot(first);
  await world.vmm.boot(second);
  const sight = await world.vmm.look(second.ref);
  expect(sight).toMatchObject({ state: "ended", how: "launch_failed" });
  expect(sight).toHaveProperty("detail", expect.stringContaining("lock"));
  await world.vmm.kill(first.ref);
});

test("the console holds what the guest said, also when it has ended", async () => {
  const spec = world.specOf("powers off");
  await world.vmm.boot(spec);
  await until(async () => (await world.vmm.look(spec.ref)).state === "ended");
  expect(await consoleText(spec.ref)).toContain("tiny: off");
});

test("a guest that floods its console fills nothing, and its newest lines are there", async () => {
  const spec = world.specOf("floods its console");
  await world.vmm.boot(spec);
  const old = join(runPath(spec.ref), "console.old");
  await until(async () => existsSync(old));
  const first = statSync(old).ino;
  await until(async () => existsSync(old) && statSync(old).ino !== first);
  const sizes = readdirSync(runPath(spec.ref)).map(
    (name) => statSync(join(runPath(spec.ref), name)).size,
  );
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(1024 * KiB);
  const text = await consoleText(spec.ref);
  expect(text.length).toBe(64 * KiB);
  expect(text).toContain(floodLine.trim());
  await world.vmm.kill(spec.ref);
});

test("a guest may ignore its power button", async () => {
  const spec = world.specOf("sleeps");
  await world.vmm.boot(spec);
  await world.vmm.powerOff(spec.ref);
  expect(await world.vmm.look(spec.ref)).toEqual({ state: "alive" });
  await world.vmm.kill(spec.ref);
  // Of a VM that has ended, nobody has to press it.
  await world.vmm.powerOff(spec.ref);
});

test("whoever looks while a VM starts never takes it for one that ended", async () => {
  for (let round = 0; round < 12; round++) {
    const spec = world.specOf("sleeps");
    let isUp = false;
    const boot = world.vmm.boot(spec).then(() => {
      isUp = true;
    });
    while (!isUp) {
      expect((await world.vmm.look(spec.ref)).state).not.toBe("ended");
      await Bun.sleep(0);
    }
    await boot;
    expect(await world.vmm.look(spec.ref)).toEqual({ state: "alive" });
    await world.vmm.kill(spec.ref);
  }
});

test("a VM whose keeper is killed runs on or has died, and its end is still told", async () => {
  const spec = world.specOf("sleeps");
  await world.vmm.boot(spec);
  for (const { identity, argv } of findByArgument(ownerName(world.installation, spec.ref)))
    if (argv[0] === "/bin/sh") endProcess(identity);
  // systemd ends a unit with its main process; without it QEMU does not notice.
  await world.pause();
  const { state } = await world.vmm.look(spec.ref);
  expect(await world.countRunning()).toBe(state === "alive" ? 1 : 0);
  await world.killProcess(spec.ref);
  await until(async () => (await world.vmm.look(spec.ref)).state === "ended");
  expect(await world.vmm.look(spec.ref)).toMatchObject({ how: "died" });
  // What was established once stays so.
  await world.vmm.kill(spec.ref);
  expect(await world.vmm.look(spec.ref)).toMatchObject({ how: "died" });
});

test("after a restart of the machine every VM that ran has died", async () => {
  const spec = world.specOf("sleeps");
  await world.vmm.boot(spec);
  // A copy of its run directory is what a disk would still hold.
  const later = await TinyVms.begin({ hostBootId: crypto.randomUUID() });
  const from = join(world.root, "vms", spec.ref.sandbox);
  Bun.spawnSync(["cp", "-r", `--target-directory=${join(later.root, "vms")}`, from]);
  const copied = join(later.root, "vms", spec.ref.sandbox, String(spec.ref.run));
  writeFileSync(join(copied, "owner"), later.installation);
  const died = { state: "ended", how: "died", detail: "the machine restarted" };
  expect(await later.vmm.look(spec.ref)).toMatchObject(died);
  // Another boot's process numbers mean nothing: no process is touched.
  await later.vmm.kill(spec.ref);
  expect(await world.vmm.look(spec.ref)).toEqual({ state: "alive" });
  await later.end();
  await world.vmm.kill(spec.ref);
});

test("a VM whose run directory is gone is still found, and ended", async () => {
  const spec = world.specOf("sleeps");
  await world.vmm.boot(spec);
  renameSync(runPath(spec.ref), join(world.root, "taken-away"));
  expect(await world.vmm.look(spec.ref)).toEqual({ state: "alive" });
  expect(await world.vmm.list()).toContainEqual(spec.ref);
  await world.vmm.kill(spec.ref);
  expect(await world.vmm.look(spec.ref)).toEqual({ state: "absent" });
  expect(await world.countRunning()).toBe(0);
});

test("another installation's VMs are neither listed nor ended", async () => {
  const spec = world.specOf("sleeps");
  await world.vmm.boot(spec);
  const other = await TinyVms.begin();
  expect(await other.vmm.list()).toEqual([]);
  await other.vmm.kill(spec.ref);
  expect(await world.vmm.look(spec.ref)).toEqual({ state: "alive" });
  await other.end();
  await world.vmm.kill(spec.ref);
});

test("a VM lives on when the process that booted it is killed, whenever that is", async () => {
  for (const afterMs of [0, 30, 60, 120, 400]) {
    const spec = world.specOf("sleeps");
    const program = `
      import { openQemu } from "${import.meta.dir}/../../src/vmm/qemu/open.ts";
      import { systemClock } from "${import.meta.dir}/../../src/system/clock.ts";
      import { silentLog } from "${import.meta.dir}/../../src/system/log.ts";
      const vmm = await openQemu({ runRoot: process.argv[1], installation: process.argv[2],
        clock: systemClock, log: silentLog, translationMib: 32 });
      console.log("open");
      await vmm.boot(JSON.parse(process.argv[3]));
      await new Promise(() => {});`;
    const argv = [process.execPath, "-e", program, world.root, world.installation];
    const child = Bun.spawn([...argv, JSON.stringify(spec)], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    for await (const _ of child.stdout) break;
    await Bun.sleep(afterMs);
    child.kill("SIGKILL");
    await child.exited;
    // Started or not, the next process makes it so, once.
    await world.vmm.boot(spec);
    expect(await world.vmm.look(spec.ref)).toEqual({ state: "alive" });
    expect(await world.countRunning()).toBe(1);
    await world.vmm.kill(spec.ref);
    expect(await world.countRunning()).toBe(0);
  }
});

test("nothing of a VM is left when it was ended and forgotten", async () => {
  const spec = world.specOf("sleeps");
  await world.vmm.boot(spec);
  const processes = findByArgument(ownerName(world.installation, spec.ref));
  expect(processes.length).toBeGreaterThan(1);
  await world.vmm.kill(spec.ref);
  await world.vmm.forget(spec.ref);
  for (const { identity } of processes) expect(isAlive(identity)).toBe(false);
  expect(existsSync(runPath(spec.ref))).toBe(false);
});

test("an id that is not one names no path", async () => {
  for (const sandbox of ["../../x", "", "sb_1"])
    expect(world.vmm.look({ sandbox, run: 1 })).rejects.toThrow("is not a sandbox's id");
  for (const run of [0, -1, 1.5, Number.NaN])
    expect(world.vmm.look({ ...newRef(), run })).rejects.toThrow("is not the number of a run");
  rmSync(join(world.root, "taken-away"), { recursive: true, force: true });
});

test("a VM is a unit of systemd where that runs, and in a cgroup of its own elsewhere", async () => {
  const spec = world.specOf("sleeps");
  await world.vmm.boot(spec);
  const { sandbox, run } = spec.ref;
  const groups = findByArgument(ownerName(world.installation, spec.ref)).map(({ identity }) =>
    readFileSync(`/proc/${identity.pid}/cgroup`, "utf8")
      .split("\n")
      .find((each) => each.startsWith("0::")),
  );
  const isUnit = existsSync("/run/systemd/system");
  const name = isUnit
    ? `holdfast-vm@${sandbox}-${run}.service`
    : `holdfast/${world.installation}/${sandbox}-${run}`;
  for (const group of groups) expect(group).toEndWith(name);
  console.log(`its group: ${groups[0]}`);
  await world.vmm.kill(spec.ref);
});

test("a VM's process cannot do what root can, and not regain it", async () => {
  const spec = world.specOf("sleeps");
  await world.vmm.boot(spec);
  const readSearch = 1n << 2n;
  for (const { identity } of findByArgument(ownerName(world.installation, spec.ref))) {
    const status = readFileSync(`/proc/${identity.pid}/status`, "utf8");
    const fieldOf = (name: string) => new RegExp(`^${name}:\\s*(\\S+)$`, "m").exec(status)?.[1];
    expect(BigInt(`0x${fieldOf("CapEff")}`) & ~readSearch).toBe(0n);
    expect(BigInt(`0x${fieldOf("CapBnd")}`) & ~readSearch).toBe(0n);
    expect(fieldOf("NoNewPrivs")).toBe("1");
  }
  await world.vmm.kill(spec.ref);
});
