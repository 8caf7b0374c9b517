/** The main job on real VMs: the built binary, an emulated or real guest, and what goes wrong. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { Appliance } from "./appliance.ts";

let host: Appliance;
let id = "";

beforeAll(async () => {
  host = await Appliance.begin();
});
afterAll(() => host.end());

/** Each line once and in order, told apart from a second run by the shell's pid. */
const counting = (lines: number, pauseSeconds: string): string =>
  `echo run >>/home/agent/runs; i=0; while [ $i -lt ${lines} ]; do echo "line $i"; ` +
  `i=$((i+1)); [ $((i % 50)) -ne 0 ] || sleep ${pauseSeconds}; done; exit 3`;

const linesTo = (count: number): string =>
  Array.from({ length: count }, (_, at) => `line ${at}\n`).join("");

test("create, run, read how it ended: a stopped sandbox is started for it", async () => {
  await host.say("create", "box", "--size", "tiny");
  const before = await host.get("/v1/sandboxes/box");
  expect(before).toMatchObject({ phase: "stopped" });
  ({ id } = before);
  expect(host.vmsOf(id)).toEqual([]);
  const ran = await host.run("exec", "box", "--", "sh", "-c", "echo out; echo err >&2; exit 7");
  expect([ran.code, ran.stdout.toString(), ran.stderr.includes("err\n")]).toEqual([
    7,
    "out\n",
    true,
  ]);
  const after = await host.get("/v1/sandboxes/box");
  expect(after).toMatchObject({ phase: "running", phase_reason: "guest_answered" });
  expect(host.vmsOf(id)).toHaveLength(1);
  expect(await host.say("exec", "box", "--", "cat", "/proc/sys/kernel/hostname")).toBe("box");
  expect(await host.say("exec", "box", "--", "id", "-un")).toBe("agent");
});

test("Holdfast is killed again and again: VM and command run on, no byte is lost or doubled", async () => {
  const running = host.run("exec", "box", "--", "sh", "-c", counting(3000, "0.1"));
  for (let kills = 0; kills < 6; kills++) {
    await Bun.sleep(200 + Math.random() * 900);
    await host.restart();
  }
  const { code, stdout } = await running;
  expect([code, stdout.toString()]).toEqual([3, linesTo(3000)]);
  expect(await host.say("exec", "box", "--", "cat", "/home/agent/runs")).toBe("run");
  expect(host.vmsOf(id)).toHaveLength(1);
});

test("Holdfast is away while a command writes and ends; coming back it knows all of it", async () => {
  const command = await host.say("exec", "-d", "box", "--", "sh", "-c", counting(500, "0.05"));
  await host.until(`/v1/commands/${command}`, ({ state }) => state === "running");
  await host.kill();
  await Bun.sleep(4_000);
  await host.start();
  const ended = await host.until(`/v1/commands/${command}`, ({ state }) => state === "exited");
  expect(ended).toMatchObject({ exit_code: 3 });
  const logs = await host.run("logs", "-f", command);
  expect([logs.code, logs.stdout.toString()]).toEqual([3, linesTo(500)]);
});

test("the guest part is killed while a command writes: it goes on, and all of it arrives", async () => {
  const running = host.run("exec", "box", "--", "sh", "-c", counting(2000, "0.2"));
  for (let kills = 0; kills < 3; kills++) {
    await Bun.sleep(1_500);
    await host.say("exec", "-d", "box", "--", "sudo", "pkill", "-9", "-f", "holdfast guest");
  }
  const { code, stdout } = await running;
  expect([code, stdout.toString()]).toEqual([3, linesTo(2000)]);
});

test("stdin is passed on to its end, byte for byte", async () => {
  const bytes = Buffer.alloc(300_000, "0123456789abcdef\n");
  const sum = new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
  const ran = await host.runWith(bytes, "exec", "-i", "box", "--", "sha256sum");
  expect([ran.code, ran.stdout.toString()]).toEqual([0, `${sum}  -\n`]);
});

test("a command that is killed says by which signal, one that takes too long says so", async () => {
  const command = await host.say("exec", "-d", "box", "--", "sleep", "600");
  await host.until(`/v1/commands/${command}`, ({ state }) => state === "running");
  await host.say("kill", command);
  const killed = await host.until(`/v1/commands/${command}`, ({ ended_at }) => ended_at !== null);
  expect(killed).toMatchObject({ state: "interrupted", signal: "TERM" });
  const hard = await host.say("exec", "-d", "box", "--", "sleep", "600");
  await host.until(`/v1/commands/${hard}`, ({ state }) => state === "running");
  await host.say("kill", "-s", "KILL", hard);
  const gone = await host.until(`/v1/commands/${hard}`, ({ ended_at }) => ended_at !== null);
  expect(gone).toMatchObject({ state: "interrupted", signal: "KILL" });
  const late = await host.run("exec", "--timeout", "1", "box", "--", "sleep", "600");
  expect(late.code).toBe(124);
  expect((await host.run("exec", "box", "--", "/no/such/program")).code).toBe(127);
});

test("a command that needs more memory than there is says so", async () => {
  const greedy = "x = []\nwhile True: x.append(b'x' * 10**6)";
  const ran = await host.run("exec", "box", "--", "python3", "-c", greedy);
  expect(ran.code).toBe(137);
  const [command] = (await host.get("/v1/sandboxes/box/commands?limit=1")).data;
  expect(command).toMatchObject({ state: "resource_exhausted", exhausted: { resource: "memory" } });
});

test("a command that eats memory leaves the guest part enough to answer, and can be ended", async () => {
  // Fills what it may have with what cannot be thrown out, and stays just below the end.
  const full = [
    "import os",
    "m = bytearray(os.sysconf('SC_PHYS_PAGES') * 4096 * 6 // 10)",
    "while True: open('/usr/lib/os-release').read()",
  ].join("\n");
  const hog = await host.say("exec", "-d", "box", "--", "python3", "-c", full);
  const tail = await host.say("exec", "-d", "box", "--", "sh", "-c", "head -c 2G /dev/zero | tail");
  expect((await host.run("exec", "box", "--", "true")).code).toBe(0);
  for (const id of [hog, tail]) {
    await host.run("kill", "-s", "KILL", id);
    await host.until(`/v1/commands/${id}`, ({ ended_at }) => ended_at !== null);
  }
  expect(await host.get("/v1/sandboxes/box")).toMatchObject({ phase: "running" });
});

test("stop ends the work in order, and a start goes on with the same disk", async () => {
  await host.say("exec", "box", "--", "sh", "-c", "echo kept >/workspace/note; sync");
  const command = await host.say("exec", "-d", "box", "--", "sleep", "600");
  await host.until(`/v1/commands/${command}`, ({ state }) => state === "running");
  await host.say("stop", "box");
  expect(host.vmsOf(id)).toEqual([]);
  const stopped = await host.get("/v1/sandboxes/box");
  expect(stopped).toMatchObject({ phase: "stopped" });
  expect(stopped.last_stop).toMatchObject({ final_save: { outcome: "not_configured" } });
  expect(await host.get(`/v1/commands/${command}`)).toMatchObject({ state: "interrupted" });
  expect(await host.say("exec", "box", "--", "cat", "/workspace/note")).toBe("kept");
});

test("the VM's process is killed: commands end infrastructure_lost, and a start works", async () => {
  const command = await host.say("exec", "-d", "box", "--", "sleep", "600");
  await host.until(`/v1/commands/${command}`, ({ state }) => state === "running");
  for (const pid of host.vmsOf(id)) process.kill(pid, "SIGKILL");
  const ended = await host.until(`/v1/commands/${command}`, ({ ended_at }) => ended_at !== null);
  expect(ended).toMatchObject({ state: "infrastructure_lost" });
  const box = await host.until("/v1/sandboxes/box", ({ phase }) => phase === "stopped");
  expect(box).toMatchObject({ phase_reason: "vm_died" });
  expect(await host.say("exec", "box", "--", "cat", "/workspace/note")).toBe("kept");
});

test("the guest reboots: its commands end, and the sandbox comes up again by itself", async () => {
  const command = await host.say("exec", "-d", "box", "--", "sleep", "600");
  await host.until(`/v1/commands/${command}`, ({ state }) => state === "running");
  const { run } = await host.get("/v1/sandboxes/box");
  await host.say("exec", "-d", "box", "--", "sudo", "systemctl", "reboot");
  const ended = await host.until(`/v1/commands/${command}`, ({ ended_at }) => ended_at !== null);
  expect(["infrastructure_lost", "signal", "interrupted"]).toContain(ended.state);
  await host.until("/v1/sandboxes/box", (box) => box.phase === "running" && box.run !== run);
  expect(await host.say("exec", "box", "--", "cat", "/workspace/note")).toBe("kept");
});

test("the guest's kernel panics: its commands end, and the sandbox comes up again", async () => {
  const command = await host.say("exec", "-d", "box", "--", "sleep", "600");
  await host.until(`/v1/commands/${command}`, ({ state }) => state === "running");
  const { run } = await host.get("/v1/sandboxes/box");
  const panic = "echo 1 >/proc/sys/kernel/sysrq; echo c >/proc/sysrq-trigger";
  await host.say("exec", "-d", "box", "--", "sudo", "sh", "-c", panic);
  const ended = await host.until(`/v1/commands/${command}`, ({ ended_at }) => ended_at !== null);
  expect(ended).toMatchObject({ state: "infrastructure_lost", state_reason: "guest_panicked" });
  await host.until("/v1/sandboxes/box", (box) => box.phase === "running" && box.run !== run);
  expect(await host.say("exec", "box", "--", "cat", "/workspace/note")).toBe("kept");
});

test("the guest powers itself off: stopped, by its own doing", async () => {
  await host.say("exec", "-d", "box", "--", "sudo", "systemctl", "poweroff");
  const box = await host.until("/v1/sandboxes/box", ({ phase }) => phase === "stopped");
  expect(box).toMatchObject({ phase_reason: "guest_shutdown" });
  expect(host.vmsOf(id)).toEqual([]);
});

test("what happened to a VM while Holdfast was away is told when it is back", async () => {
  await host.say("start", "box");
  await host.kill();
  for (const pid of host.vmsOf(id)) process.kill(pid, "SIGKILL");
  await host.start();
  const box = await host.until("/v1/sandboxes/box", ({ phase }) => phase === "stopped");
  expect(box).toMatchObject({ phase_reason: "vm_died" });
});

test("delete leaves no process, no disk and no file of a run behind", async () => {
  await host.say("start", "box");
  await host.say("rm", "box");
  expect(host.vmsOf(id)).toEqual([]);
  expect(readdirSync(join(host.data, "disks"))).toEqual([]);
  expect((await host.run("info", "box")).code).toBe(1);
  expect(existsSync(join(host.data, "disks", `${id}.raw`))).toBe(false);
});
