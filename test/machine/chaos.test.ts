/**
 * Holdfast is killed at random moments while sandboxes are made, started, stopped, used and
 * deleted. What the records say has to be what runs, before and after.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { Appliance } from "./appliance.ts";

let host: Appliance;
const seed = Number(process.env["SEED"] ?? Math.floor(Math.random() * 2 ** 31));
const kills = Number(process.env["KILLS"] ?? 14);
const names = ["one", "two"];

beforeAll(async () => {
  host = await Appliance.begin();
});
afterAll(() => host.end());

/** mulberry32: the same seed gives the same run, but for the machine's own moods. */
let state = seed;
function random(): number {
  state = (state + 0x6d2b79f5) | 0;
  let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
}
const one = <T>(of: readonly T[]): T => of[Math.floor(random() * of.length)] as T;

const asked: string[] = [];
const script = (mark: string): string =>
  `echo ${mark} >>/home/agent/runs; for i in 1 2 3 4 5; do echo $i; sleep 0.3; done`;

/** Its outcome does not matter: it may be refused, and its answer may be lost. */
async function deed(): Promise<void> {
  const name = one(names);
  const what = one(["create", "start", "stop", "exec", "exec", "exec", "delete"]);
  if (what === "create") await host.run("create", name, "--size", "tiny");
  if (what === "start") await host.run("start", name, "--no-wait");
  if (what === "stop") await host.run("stop", name, "--no-wait");
  if (what === "delete" && random() < 0.4) await host.run("rm", name, "--no-wait");
  if (what !== "exec") return;
  const mark = `mark-${asked.length}`;
  asked.push(mark);
  await host.run("exec", "-d", name, "--", "sh", "-c", script(mark));
}

test(`killed at ${kills} random moments, it agrees with the world (SEED=${seed})`, async () => {
  for (const name of names) await host.run("create", name, "--size", "tiny");
  for (let kill = 0; kill < kills; kill++) {
    const deeds = Array.from({ length: 1 + Math.floor(random() * 3) }, deed);
    await Bun.sleep(random() * 2_500);
    await host.kill();
    for (const { id } of await livingAfter(deeds)) expect(host.vmsOf(id).length).toBeLessThan(2);
  }
  await settle();
  const boxes = (await host.get("/v1/sandboxes?limit=100")).data;
  for (const { id, phase } of boxes)
    expect([id, phase, host.vmsOf(id).length]).toEqual([id, phase, phase === "running" ? 1 : 0]);
  const disks = readdirSync(join(host.data, "disks")).filter((name) => name.endsWith(".raw"));
  const ids = boxes.map(({ id }: { id: string }) => `${id}.raw`);
  for (const disk of disks) expect(ids).toContain(disk);
  for (const { id, phase } of boxes) if (phase === "running") await checkMarks(id);
});

/** Clients go on once the server is back; their outcome may be anything. */
async function livingAfter(deeds: readonly Promise<void>[]): Promise<{ id: string }[]> {
  await host.start();
  await Promise.all(deeds);
  return (await host.get("/v1/sandboxes?limit=100")).data;
}

/** Nothing is under way any more: every phase is at rest and every command has ended. */
async function settle(): Promise<void> {
  const isAtRest = ({ phase, commands_live }: { phase: string; commands_live: number }): boolean =>
    ["stopped", "running"].includes(phase) && commands_live === 0;
  await host.until("/v1/sandboxes?limit=100", ({ data }) => data.every(isAtRest), 400_000);
}

/** No command left its mark twice, and one that exited left it and told all of its output. */
async function checkMarks(id: string): Promise<void> {
  const { data } = await host.get(`/v1/sandboxes/${id}/commands?limit=100`);
  const marks = await host.run("exec", id, "--", "cat", "/home/agent/runs");
  const left = marks.stdout.toString().split("\n").filter(Boolean);
  expect(new Set(left).size).toBe(left.length);
  for (const { id: command, state: end, exit_code } of data) {
    if (end !== "exited" || exit_code !== 0) continue;
    const logs = await host.run("logs", command);
    expect([command, logs.stdout.toString()]).toEqual([command, "1\n2\n3\n4\n5\n"]);
  }
}
