/** A guest whose root is an enemy: whatever it says, Holdfast and its other sandboxes go on. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { pssMb } from "../bench/output.ts";
import { Appliance } from "./appliance.ts";

let host: Appliance;
const serveMbMax = 250;

beforeAll(async () => {
  host = await Appliance.begin();
  await host.say("create", "enemy", "--size", "tiny", "--start");
});
afterAll(() => host.end());

const asRoot = (script: string): Promise<string> =>
  host.say("exec", "-d", "enemy", "--", "sudo", "sh", "-c", script);

test("garbage on the guest's port is endured, and the guest part is believed again after it", async () => {
  const port =
    'p=$(grep -l holdfast.guest /sys/class/virtio-ports/*/name); p=/dev/$(basename "$(dirname "$p")")';
  const flood =
    `${port}; end=$(($(date +%s)+8)); while [ $(date +%s) -lt $end ]; do ` +
    `pkill -9 -f "holdfast guest"; pkill -9 -f -- --bridge; ` +
    "head -c 3000000 /dev/urandom >$p; done";
  await asRoot(flood);
  for (let looks = 0; looks < 20; looks++) {
    expect(await host.isHealthy()).toBe(true);
    expect(pssMb(host.pid)).toBeLessThan(serveMbMax);
    await Bun.sleep(500);
  }
  expect(await host.say("exec", "enemy", "--", "echo", "believed")).toBe("believed");
});

test("a command that never stops writing fills no disk, and its newest output is there", async () => {
  const writes = "head -c 300000000 /dev/zero; echo the end";
  const command = await host.say("exec", "-d", "enemy", "--", "sh", "-c", writes);
  const path = `/v1/commands/${command}?wait=20`;
  const ended = await host.until(path, ({ is_final }) => is_final === true, 400_000);
  expect(ended).toMatchObject({ state: "exited", output: { bytes: 300_000_008 } });
  expect(ended.output.stored_bytes).toBeLessThan(150_000_000);
  const { stdout } = await host.run("logs", command);
  expect(stdout.subarray(-8).toString()).toBe("the end\n");
  expect(pssMb(host.pid)).toBeLessThan(serveMbMax);
});

test("a fork bomb ends with its command, and the guest serves the next one", async () => {
  const bomb = await host.say(
    ...["exec", "-d", "--timeout", "10", "enemy", "--"],
    ...["bash", "-c", "f() { f | f & }; f; sleep 600"],
  );
  await host.until(`/v1/commands/${bomb}`, ({ ended_at }) => ended_at !== null, 200_000);
  expect(await host.isHealthy()).toBe(true);
  const { code } = await host.run("stop", "enemy");
  expect(code).toBe(0);
  expect(await host.say("exec", "enemy", "--", "echo", "again")).toBe("again");
});
