import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { Appliance } from "./appliance.ts";

/** Room for a base and little more. */
const tightMiB = 900;
const roomyMiB = 4_000;

let host: Appliance;
let disks = "";

beforeAll(async () => {
  host = await Appliance.begin();
  disks = join(host.data, "disks");
  mkdirSync(disks, { recursive: true });
  mount("mount", "-t", "tmpfs", "-o", `size=${tightMiB}m`, "tmpfs", disks);
});
afterAll(async () => {
  Bun.spawnSync(["umount", "--lazy", disks]);
  await host.end();
});

function mount(...argv: string[]): void {
  const { exitCode, stderr } = Bun.spawnSync(argv);
  if (exitCode !== 0) throw new Error(`${argv.join(" ")}: ${stderr}`);
}

test("a VM whose host has no room is paused, loses nothing, and goes on once there is room", async () => {
  await host.say("create", "box", "--size", "tiny", "--start");
  await host.until("/v1/sandboxes/box", ({ phase }) => phase === "running");
  const fill =
    "dd if=/dev/urandom of=/workspace/fill bs=1M count=700 conv=fsync && md5sum /workspace/fill";
  const command = await host.say("exec", "-d", "box", "--", "sh", "-c", fill);
  const paused = await host.until("/v1/sandboxes/box", ({ phase }) => phase === "paused", 300_000);
  expect(paused).toMatchObject({ phase_reason: "host_disk_full" });
  expect(await host.get(`/v1/commands/${command}`)).toMatchObject({ state: "running" });
  await host.kill();
  await host.start();
  expect(await host.get("/v1/sandboxes/box")).toMatchObject({ phase: "paused" });
  mount("mount", "-o", `remount,size=${roomyMiB}m`, disks);
  await host.until("/v1/sandboxes/box", ({ phase }) => phase === "running", 120_000);
  const ended = await host.until(`/v1/commands/${command}`, ({ is_final }) => is_final, 300_000);
  expect(ended).toMatchObject({ state: "exited", exit_code: 0 });
  const sum = await host.say("exec", "box", "--", "md5sum", "/workspace/fill");
  expect((await host.run("logs", command)).stdout.toString()).toContain(sum);
});
