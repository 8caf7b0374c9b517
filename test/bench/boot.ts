/** From the wish to start until the guest part answers, against QEMU alone with the same files. */
import { mkdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MiB } from "../../src/core/units.ts";
import { SocketGuests } from "../../src/guest/channel.ts";
import { systemClock } from "../../src/system/clock.ts";
import { systemRandom } from "../../src/system/random.ts";
import { type QemuMachine, qemuArgv } from "../../src/vmm/qemu/argv.ts";
import { Appliance } from "../machine/appliance.ts";
import { testImages } from "../machine/images.ts";
import { type Group, inPairs, median } from "./rows.ts";

const pairs = 5;

export const boot: Group = async (say) => {
  const host = await Appliance.begin();
  try {
    await host.say("create", "boot", "--size", "tiny");
    // The first start makes the disk, grows its file system and fills the page cache.
    await host.say("start", "boot");
    const { id } = await host.get("/v1/sandboxes/boot");
    const { driver } = await host.get("/v1/system");
    await host.say("stop", "boot");
    const disk = join(host.data, "disks", `${id}.raw`);
    const { ours, theirs } = await inPairs(
      pairs,
      async () => {
        const began = performance.now();
        await host.say("start", "boot", "--no-wait");
        await host.until("/v1/sandboxes/boot", ({ phase }) => phase === "running");
        const ms = performance.now() - began;
        await host.say("stop", "boot");
        say(`start: ${(ms / 1000).toFixed(1)} s`);
        return ms;
      },
      async () => {
        const ms = await plainBoot(disk, driver.acceleration);
        say(`plain QEMU: ${(ms / 1000).toFixed(1)} s`);
        return ms;
      },
    );
    const [a, b] = [median(ours), median(theirs)];
    return [
      { group: "boot", what: "start, until the guest part answers", value: a / 1000, unit: "s" },
      { group: "boot", what: "plain QEMU, same files", value: b / 1000, unit: "s" },
      { group: "boot", what: "start / plain QEMU", value: a / b, unit: "x", bar: { atMost: 1.15 } },
    ];
  } finally {
    await host.end();
  }
};

async function plainBoot(diskPath: string, kind: "kvm" | "emulated"): Promise<number> {
  const directory = join(tmpdir(), `holdfast-plain-${process.pid}`);
  mkdirSync(directory);
  const machine: QemuMachine = {
    program: "/usr/bin/qemu-system-x86_64",
    installation: "bench",
    acceleration: { kind, translationMib: 64 },
  };
  const spec = {
    ref: { sandbox: "plain", run: 1 },
    vcpus: 1,
    memoryBytes: 256 * MiB,
    diskPath,
    boot: await testImages().bootFiles(),
    hostname: "boot",
    machineId: "0".repeat(32),
  };
  // Without the keeper nobody reads what it writes about itself.
  const argv = qemuArgv(spec, machine).map((word) =>
    word.startsWith("pipe,id=events")
      ? "null,id=events"
      : word.startsWith("file,id=console")
        ? "null,id=console"
        : word,
  );
  const guests = new SocketGuests({
    pathOf: () => join(directory, "guest"),
    clock: systemClock,
    random: systemRandom,
  });
  const began = performance.now();
  const qemu = Bun.spawn(argv, { cwd: directory, stdio: ["ignore", "ignore", "inherit"] });
  try {
    while (true) {
      try {
        const channel = await guests.open(spec.ref);
        const hello = { host_time_ms: Date.now(), hostname: "boot" };
        await channel.send({ type: "hello", protocol: 1, ...hello });
        await channel.receive();
        const ms = performance.now() - began;
        await channel.send({ type: "power_off", grace_ms: 1_000 });
        await Promise.race([qemu.exited, Bun.sleep(60_000)]);
        return ms;
      } catch (error) {
        if (performance.now() - began > 180_000) throw error;
        await Bun.sleep(100);
      }
    }
  } finally {
    qemu.kill("SIGKILL");
    await qemu.exited;
    rmSync(directory, { recursive: true });
  }
}
