/** What has ended leaves the records when its time has come, and nothing else ever does. */
import { expect, test } from "bun:test";
import { dropAnswersBefore, keepAnswer } from "../../src/api/store.ts";
import { dayMs, minuteMs } from "../../src/core/units.ts";
import { Life } from "./life.ts";
import { recordsKeptMs } from "./outside.ts";
import type { Mishap } from "./weather.ts";
import { World } from "./world.ts";

const roundMs = 11 * minuteMs;

async function begin(): Promise<Life> {
  return new Life(await World.begin(11));
}

async function ended(life: Life, sandbox: string, ...argv: string[]): Promise<string> {
  const id = (await life.send(sandbox, argv)) ?? "";
  expect(await life.until(() => life.row(id)?.state === "exited", minuteMs)).toBe(true);
  return id;
}

async function running(life: Life, sandbox: string): Promise<string> {
  const id = (await life.send(sandbox, ["cat"])) ?? "";
  expect(await life.until(() => life.row(id)?.state === "running", minuteMs)).toBe(true);
  return id;
}

async function deleted(life: Life): Promise<string> {
  const sandbox = (await life.create()) ?? "";
  await ended(life, sandbox, "echo", "last");
  await life.remove(sandbox);
  const isGone = (): boolean => life.sandbox(sandbox)?.phase === "deleted";
  expect(await life.until(isGone, minuteMs)).toBe(true);
  return sandbox;
}

/** The wall clock goes ahead; a restart begins with a round of forgetting. */
async function later(life: Life, ms: number): Promise<void> {
  life.world.clock.set(ms);
  await life.world.crash();
  await life.until(() => false, minuteMs);
}

function count({ world }: Life, table: string, where = "true"): number {
  return world.look<{ n: number }>(`count(*) as n from ${table} where ${where}`)[0]?.n ?? -1;
}

function keepKeyOf({ world }: Life, command_id: string | null, key: string): Promise<void> {
  const request_sha256 = new Uint8Array(32);
  const created_at_ms = world.clock.now();
  const answer = { api_key_id: "key_1", key, request_sha256, status: 201, body: "{}" };
  return world.db.write((tx) => keepAnswer(tx, { ...answer, command_id, created_at_ms }));
}

test("what has ended is on record for its time, with its output and its key, and then gone", async () => {
  const life = await begin();
  const sandbox = (await life.create()) ?? "";
  const command = await ended(life, sandbox, "echo", "words");
  const gone = await deleted(life);
  await keepKeyOf(life, command, "of a command");
  await later(life, recordsKeptMs - dayMs);
  await life.world.db.write((tx) => dropAnswersBefore(tx, life.world.clock.now()));
  expect(life.row(command)?.state).toBe("exited");
  expect(life.world.commandsWithOutput()).toContain(command);
  expect(count(life, "idempotency_keys")).toBe(1);
  expect(life.sandbox(gone)?.phase).toBe("deleted");
  expect(count(life, "workflows")).toBe(3);
  // Without a restart, too.
  life.world.clock.set(2 * dayMs);
  await life.until(() => false, roundMs);
  expect(life.row(command)).toBeUndefined();
  expect(life.world.commandsWithOutput()).toEqual([]);
  expect(count(life, "idempotency_keys")).toBe(0);
  expect(life.sandbox(gone)).toBeUndefined();
  expect(count(life, "workflows")).toBe(0);
  expect(life.sandbox(sandbox)?.phase).toBe("running");
});

test("what has not ended is never forgotten, nor its sandbox, output or key", async () => {
  const life = await begin();
  const sandbox = (await life.create()) ?? "";
  const cat = (await life.send(sandbox, ["cat"])) ?? "";
  await life.write(cat, "some words", false);
  expect(await life.until(() => life.world.durableBytes(cat) === 10, minuteMs)).toBe(true);
  await keepKeyOf(life, cat, "of a command");
  await later(life, 10 * recordsKeptMs);
  expect(life.row(cat)?.state).toBe("running");
  expect(life.world.commandsWithOutput()).toEqual([cat]);
  expect(count(life, "idempotency_keys")).toBe(1);
  expect(life.sandbox(sandbox)?.phase).toBe("running");
  await life.write(cat, "", true);
  expect(await life.until(() => life.row(cat)?.state === "exited", minuteMs)).toBe(true);
  // Its time is counted from its end.
  await later(life, recordsKeptMs - dayMs);
  expect(life.row(cat)?.state).toBe("exited");
});

test("a deleted sandbox whose disk or VM is still there stays on record", async () => {
  const life = await begin();
  const { machine } = life.world;
  const gone = await deleted(life);
  // Each removal fails, so that the sweep leaves it.
  life.world.plan = (_, what) => (what === `remove disk ${gone}` ? "error" : undefined);
  machine.makeDisk(gone);
  await later(life, 2 * recordsKeptMs);
  expect(life.sandbox(gone)?.phase).toBe("deleted");
  expect(count(life, "commands")).toBe(0);
  life.world.plan = undefined;
  await later(life, 0);
  expect(machine.disks.has(gone)).toBe(false);
  await later(life, 0);
  expect(life.sandbox(gone)).toBeUndefined();
});

test("much that is old leaves in steps, between which others are served", async () => {
  const life = await begin();
  const sandbox = (await life.create()) ?? "";
  const first = await ended(life, sandbox, "true");
  // The copies never ran; the checks hold them against nothing.
  life.world.machine.hostile.add(sandbox);
  const [row] = life.world.look<Record<string, string>>("* from commands");
  const copies = Array.from({ length: 1_000 }, (_, index) => ({ ...row, id: `${first}${index}` }));
  await life.world.db.write(async (tx) => {
    for (const copy of copies)
      await tx
        .insertInto("commands")
        .values(copy as never)
        .execute();
  });
  let most = 0;
  let before = count(life, "commands");
  life.world.clock.set(2 * recordsKeptMs);
  const isEmpty = (): boolean => {
    const now = count(life, "commands");
    most = Math.max(most, before - now);
    before = now;
    return now === 0;
  };
  life.turns = 1;
  expect(await life.until(isEmpty, roundMs)).toBe(true);
  expect(most).toBeLessThanOrEqual(200);
});

test("whatever strikes while it forgets, the next round leaves nothing half forgotten", async () => {
  for (const mishap of ["error", "crashBefore", "crashAfter"] satisfies Mishap[])
    for (let strike = 0; strike < 5; strike++) {
      const life = await begin();
      const gone = await deleted(life);
      const sandbox = (await life.create()) ?? "";
      const old = await ended(life, sandbox, "seq", "1000");
      const work = await running(life, sandbox);
      life.world.clock.set(recordsKeptMs + dayMs);
      let commits = 0;
      life.world.plan = (_, what) =>
        what.startsWith("commit") && commits++ === strike ? mishap : undefined;
      await life.until(() => commits > strike, roundMs);
      life.world.plan = undefined;
      await later(life, 0);
      expect([life.row(old), life.sandbox(gone)]).toEqual([undefined, undefined]);
      expect(life.world.commandsWithOutput()).toEqual([]);
      expect(life.row(work)?.state).toBe("running");
    }
});

test("a guest that still holds what was forgotten long ago is told to forget it, and goes on", async () => {
  const life = await begin();
  const { machine } = life.world;
  const sandbox = (await life.create()) ?? "";
  await ended(life, sandbox, "true");
  life.world.plan = (_, what) => (/^say (ack|forget)$/.test(what) ? "error" : undefined);
  const command = await ended(life, sandbox, "program", "0", "500", "0");
  const [vm] = machine.alive(sandbox);
  if (!vm) throw new Error("it has no VM");
  vm.silent = true;
  await later(life, recordsKeptMs + dayMs);
  expect([life.row(command), vm.guest.commands.has(command)]).toEqual([undefined, true]);
  life.world.plan = undefined;
  vm.silent = false;
  expect(await life.until(() => vm.guest.commands.size === 0, 3 * minuteMs)).toBe(true);
  await ended(life, sandbox, "true");
  expect(life.sandbox(sandbox)?.phase).toBe("running");
});
