/** What a run began from and how it ended, as the records tell it: one sentence each. */
import { expect, test } from "bun:test";
import type { LastStop, StartedFrom } from "../../src/sandboxes/sandbox.ts";
import type { VmEnd } from "../../src/vmm/vmm.ts";
import { rest } from "./lives.ts";
import { base } from "./outside.ts";
import { minute, Story } from "./story.ts";

function startOf(story: Story, id: string): StartedFrom {
  return JSON.parse(story.sandbox(id)?.started_from ?? "null");
}

function stopOf(story: Story, id: string): LastStop {
  return JSON.parse(story.sandbox(id)?.last_stop ?? "null");
}

const noSave = { outcome: "not_configured", save_id: null, unsaved_since: null } as const;

/** A sandbox that runs, and a command that runs in it. */
async function working(story: Story): Promise<[string, string]> {
  const id = await story.running();
  const command = await story.sent(id, "sleep", "600");
  await story.is(command, "running");
  return [id, command];
}

test("the first start is from the base, every other from the kept disk, and each says so", async () => {
  const story = await Story.begin();
  const id = await story.running();
  const first = { kind: "base", id: base.digest, as_of_ms: base.builtAtMs } as const;
  expect(startOf(story, id)).toEqual(first);
  await story.stop(id);
  await story.comesTo(id, "stopped");
  const stoppedAtMs = story.sandbox(id)?.phase_at_ms ?? 0;
  await story.until(() => false, 10 * minute);
  await story.start(id);
  await story.comesTo(id, "running");
  expect(startOf(story, id)).toEqual({ kind: "local_disk", id, as_of_ms: stoppedAtMs });
  expect(story.world.machine.made.get(id)).toBe(1);
  await rest(story);
});

test("a start that fails leaves no VM and the disk as it is, and the next one goes on with it", async () => {
  const story = await Story.begin();
  const id = await story.running();
  await story.stop(id);
  await story.comesTo(id, "stopped");
  story.world.machine.stillborn = 1;
  await story.start(id);
  await story.comesTo(id, "failed");
  expect(story.sandbox(id)).toMatchObject({ phase_reason: "guest_never_answered", disk_made: 1 });
  expect(story.world.machine.disks.has(id)).toBe(true);
  expect(story.world.machine.alive(id)).toEqual([]);
  story.world.machine.stillborn = 0;
  await story.start(id);
  await story.comesTo(id, "running");
  expect(startOf(story, id).kind).toBe("local_disk");
  expect(story.world.machine.made.get(id)).toBe(1);
  await rest(story);
});

test("a stop tells apart how the work ended and how the final save went", async () => {
  for (const [silent, outcome] of [
    [false, "ended"],
    [true, "killed"],
  ] as const) {
    const story = await Story.begin();
    const [id, command] = await working(story);
    story.vm(id).silent = silent;
    await story.stop(id);
    await story.comesTo(id, "stopped");
    const told = { reason: "stopped_on_request", work: { outcome }, final_save: noSave } as const;
    expect(stopOf(story, id)).toMatchObject(told);
    expect(story.row(command)).toMatchObject({ state: "interrupted", state_reason: "stopped" });
    await rest(story);
  }
});

test("a VM that ends by itself is told by what ended it, and so are its commands", async () => {
  const ends: [VmEnd, string, string][] = [
    ["guest_shutdown", "guest_shutdown", "ended"],
    ["died", "vm_died", "unknown"],
  ];
  for (const [how, reason, outcome] of ends) {
    const story = await Story.begin();
    const [id, command] = await working(story);
    story.world.machine.end(story.vm(id), how);
    await story.comesTo(id, "stopped");
    expect(story.sandbox(id)?.phase_reason).toBe(reason);
    expect(stopOf(story, id) as object).toMatchObject({ work: { outcome }, final_save: noSave });
    expect(story.row(command) as object).toMatchObject({
      state: "infrastructure_lost",
      state_reason: reason,
    });
    await rest(story);
  }
});

test("a guest that reboots or panics boots again on the same disk, and its commands are lost", async () => {
  const ends: [VmEnd, string][] = [
    ["guest_reboot", "guest_rebooted"],
    ["guest_panic", "guest_panicked"],
  ];
  for (const [how, reason] of ends) {
    const story = await Story.begin();
    const [id, command] = await working(story);
    story.world.machine.end(story.vm(id), how);
    await story.until(() => story.sandbox(id)?.run === 2, minute);
    await story.comesTo(id, "running");
    expect(story.row(command) as object).toMatchObject({
      state: "infrastructure_lost",
      state_reason: reason,
    });
    expect(startOf(story, id)).toMatchObject({ kind: "local_disk", id });
    expect(story.world.machine.made.get(id)).toBe(1);
    await rest(story);
  }
});

test("a command that was killed says by whom, one that a stop ended says that", async () => {
  const story = await Story.begin();
  const [id, killed] = await working(story);
  const other = await story.sent(id, "sleep", "600");
  await story.is(other, "running");
  await story.kill(killed, "INT");
  await story.is(killed, "interrupted");
  await story.stop(id);
  await story.is(other, "interrupted");
  const told = { state_reason: "killed", kill_by: "key_1", kill_signal: "INT", signal: "INT" };
  expect(story.row(killed) as object).toMatchObject(told);
  expect(story.row(other)).toMatchObject({ state_reason: "stopped", kill_by: null });
  await rest(story);
});

test("a run whose guest was up is never booted again, though its machine forgot it", async () => {
  const story = await Story.begin();
  story.world.machine.bootMs = 1;
  const id = await story.made();
  const boot = `boot ${id}/1`;
  let lost = false;
  // The machine goes down with the commit that says that the guest answered.
  story.world.plan = (_, what) => {
    if (what === boot) return "lostReply";
    if (lost || what !== "commit records" || !story.sandbox(id)?.guest_boot_id) return undefined;
    lost = true;
    return "hostLost";
  };
  await story.start(id);
  await story.comesTo(id, "stopped");
  expect(story.sandbox(id)).toMatchObject({ phase_reason: "vm_died", run: 1 });
  expect(story.world.occasions.filter((what) => what === boot).length).toBe(1);
  await rest(story);
});
