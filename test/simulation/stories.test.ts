/** Lives that are told on purpose: one sentence about the product each. */
import { expect, test } from "bun:test";
import { readAll } from "./check-output.ts";
import { rest } from "./lives.ts";
import { outputOf } from "./programs.ts";
import { minute, Story } from "./story.ts";

test("a boot still in flight never comes up once its run was over and forgotten", async () => {
  const story = await Story.begin();
  const id = await story.running();
  const { ref } = story.vm(id);
  story.world.machine.end(story.vm(id), "guest_shutdown");
  await story.comesTo(id, "stopped");
  await story.until(() => story.world.machine.vms.size === 0, 5 * minute);
  story.world.machine.boot({ ref, diskPath: id });
  expect(story.world.machine.alive(id)).toEqual([]);
  await rest(story);
});

test("what a command wrote and how it ended is kept though its VM ends right behind it", async () => {
  const story = await Story.begin({ commitMs: 3_000 });
  const id = await story.running();
  const command = await story.sent(id, "program", "2000", "1500", "7");
  await story.until(() => story.world.machine.deeds.ends.has(command), minute);
  await story.pass(3);
  story.world.machine.end(story.vm(id), "guest_shutdown");
  await story.over(command);
  expect(story.row(command)).toMatchObject({ state: "exited", exit_code: 7 });
  expect(await readAll(story.world, command)).toEqual(Buffer.from(outputOf(command, 1500)));
  await story.comesTo(id, "stopped");
  await rest(story);
});

test("a stop tells the end of every command it ended, also of one that would not end", async () => {
  const story = await Story.begin({ commitMs: 4_000 });
  const id = await story.running();
  const willing = await story.sent(id, "sleep", "600");
  const stubborn = await story.sent(id, "stubborn", "600");
  await story.is(willing, "running");
  await story.is(stubborn, "running");
  await story.stop(id);
  await story.comesTo(id, "stopped");
  for (const command of [willing, stubborn])
    expect(story.row(command)).toMatchObject({ state: "interrupted", state_reason: "stopped" });
  expect(story.row(willing)?.signal).toBe("TERM");
  expect(story.row(stubborn)?.signal).toBe("KILL");
  expect(JSON.parse(story.sandbox(id)?.last_stop ?? "{}").work.outcome).toBe("ended");
  await rest(story);
});

test("a stop records every end its guest told before the VM was gone", async () => {
  const story = await Story.begin({ commitMs: 3_000 });
  const id = await story.running();
  const commands: string[] = [];
  for (let count = 0; count < 4; count++) commands.push(await story.sent(id, "sleep", "600"));
  for (const command of commands) await story.is(command, "running");
  await story.stop(id);
  await story.comesTo(id, "stopped");
  const signals = commands.map((command) => story.row(command)?.signal);
  expect(signals).toEqual(["TERM", "TERM", "TERM", "TERM"]);
  await rest(story);
});

test("a VM that ends takes along no end that its guest had told", async () => {
  const story = await Story.begin({ commitMs: 1_000 });
  const id = await story.running();
  const commands: string[] = [];
  for (let count = 0; count < 4; count++)
    commands.push(await story.sent(id, "program", "9000", "10", "7"));
  await story.until(
    () => commands.every((each) => story.world.machine.deeds.ends.has(each)),
    minute,
  );
  await story.pass(3);
  story.world.machine.end(story.vm(id), "died");
  await story.comesTo(id, "stopped");
  const codes = commands.map((command) => story.row(command)?.exit_code);
  expect(codes).toEqual([7, 7, 7, 7]);
  await rest(story);
});

test("a stop of a guest that does not listen ends its VM and says so", async () => {
  const story = await Story.begin();
  const id = await story.running();
  const command = await story.sent(id, "sleep", "600");
  await story.is(command, "running");
  story.vm(id).silent = true;
  await story.stop(id);
  await story.comesTo(id, "stopped");
  expect(story.row(command)?.state).toBe("interrupted");
  expect(JSON.parse(story.sandbox(id)?.last_stop ?? "{}").work.outcome).toBe("killed");
  await rest(story);
});

test("a reboot loses what ran, and what was asked for meanwhile runs after it", async () => {
  const story = await Story.begin();
  const id = await story.running();
  const ran = await story.sent(id, "sleep", "600");
  await story.is(ran, "running");
  story.world.machine.end(story.vm(id), "guest_reboot");
  await story.comesTo(id, "starting");
  const waits = await story.sent(id, "echo", "after");
  expect(story.row(waits)?.state).toBe("queued");
  await story.is(waits, "exited");
  const lost = { state: "infrastructure_lost", state_reason: "guest_rebooted" };
  expect(story.row(ran)).toMatchObject(lost);
  await rest(story);
});

test("a guest that reboots again and again stays stopped", async () => {
  const story = await Story.begin();
  story.world.machine.bootMs = 100;
  const id = await story.running();
  for (let reboot = 0; reboot < 10 && story.sandbox(id)?.phase === "running"; reboot++) {
    story.world.machine.end(story.vm(id), "guest_reboot");
    await story.until(() => story.sandbox(id)?.run === reboot + 2, 10_000);
    await story.until(() => story.sandbox(id)?.phase !== "starting", 10_000);
  }
  const looping = { phase: "stopped", phase_reason: "reboot_loop", run: 6 };
  expect(story.sandbox(id) as object).toMatchObject(looping);
  await rest(story);
});

test("a guest that falls silent is lost, and found again with all it did meanwhile", async () => {
  const story = await Story.begin();
  const id = await story.running();
  const command = await story.sent(id, "program", "50000", "5000", "4");
  await story.is(command, "running");
  story.vm(id).silent = true;
  await story.comesTo(id, "lost");
  story.vm(id).silent = false;
  await story.comesTo(id, "running");
  await story.over(command);
  expect(story.row(command)).toMatchObject({ state: "exited", exit_code: 4 });
  await rest(story);
});

test("a VM that its full host halted is paused, and goes on once there is room", async () => {
  const story = await Story.begin();
  const id = await story.running();
  const command = await story.sent(id, "program", "50000", "5000", "4");
  await story.is(command, "running");
  story.world.machine.isFull = true;
  story.vm(id).halted = true;
  await story.comesTo(id, "paused");
  expect(story.sandbox(id)).toMatchObject({ phase_reason: "host_disk_full" });
  const laterMs = story.world.clock.now() + 5 * 60_000;
  await story.until(() => story.world.clock.now() > laterMs, 10 * 60_000);
  expect(story.row(command)).toMatchObject({ state: "running" });
  expect(story.sandbox(id)).toMatchObject({ phase: "paused" });
  story.world.machine.isFull = false;
  await story.comesTo(id, "running");
  await story.over(command);
  expect(story.row(command)).toMatchObject({ state: "exited", exit_code: 4 });
  await rest(story);
});

test("no more VMs boot at once than there are slots, and all come up", async () => {
  const story = await Story.begin();
  const ids: string[] = [];
  for (let count = 0; count < 4; count++) ids.push(await story.made());
  for (const id of ids) await story.start(id);
  for (const id of ids) await story.comesTo(id, "running");
  await rest(story);
});

test("more sandboxes than may run are refused, and started once there is room", async () => {
  const story = await Story.begin();
  const ids: string[] = [];
  for (let count = 0; count < 5; count++) ids.push(await story.made());
  for (const id of ids) await story.start(id);
  const last = ids.at(-1) ?? "";
  expect(story.sandbox(last)?.phase).toBe("stopped");
  await story.remove(ids[0] ?? "");
  await story.comesTo(ids[0] ?? "", "deleted");
  await story.start(last);
  await story.comesTo(last, "running");
  await rest(story);
});

test("a disk that is gone is not made again, and the start says so", async () => {
  const story = await Story.begin();
  const id = await story.running();
  await story.stop(id);
  await story.comesTo(id, "stopped");
  story.world.machine.disks.delete(id);
  await story.start(id);
  await story.comesTo(id, "failed");
  expect(story.sandbox(id)?.phase_reason).toBe("disk_missing");
  expect(story.world.machine.made.get(id)).toBe(1);
  await rest(story);
});

test("a killed guest part comes back with every command and every byte", async () => {
  const story = await Story.begin();
  const id = await story.running();
  const command = await story.sent(id, "both", "30000", "9000", "0");
  for (let kill = 0; kill < 8; kill++) {
    await story.pass(30);
    story.world.machine.killPart(story.vm(id));
  }
  await story.is(command, "exited");
  await rest(story);
});

test("a command killed before it was sent never runs", async () => {
  const story = await Story.begin();
  const id = await story.made();
  const command = await story.sent(id, "echo", "never");
  await story.kill(command);
  await story.comesTo(id, "running");
  await story.pass(200);
  expect(story.row(command)).toMatchObject({ state: "not_launched", state_reason: "killed" });
  expect(story.world.machine.executed.size).toBe(0);
  await rest(story);
});

test("a delete works in every phase and leaves nothing", async () => {
  for (const turns of [0, 3, 10, 40, 200]) {
    const story = await Story.begin();
    const id = await story.made();
    await story.sent(id, "sleep", "600");
    await story.pass(turns);
    await story.remove(id);
    await story.comesTo(id, "deleted");
    expect(story.world.machine.disks.size).toBe(0);
    await rest(story);
  }
});

test("stdin that was sent before its command ran arrives whole, and its end behind it", async () => {
  const story = await Story.begin();
  const id = await story.made();
  const command = await story.sent(id, "cat");
  for (const piece of ["one ", "two ", "three"]) await story.write(command, piece, false);
  await story.write(command, "", true);
  await story.is(command, "exited");
  expect((await readAll(story.world, command)).toString()).toBe("one two three");
  await rest(story);
});

test("a wish to end a command survives the channel it was said on", async () => {
  const story = await Story.begin();
  const id = await story.running();
  const command = await story.sent(id, "sleep", "900");
  await story.is(command, "running");
  let lost = 0;
  story.world.plan = (_, what) => (what === "say signal" && lost++ === 0 ? "error" : undefined);
  await story.kill(command);
  await story.is(command, "interrupted");
  expect(lost).toBeGreaterThan(1);
  await rest(story);
});

test("a sandbox that is being deleted holds its room until its VM has ended", async () => {
  const story = await Story.begin();
  const ids: string[] = [];
  for (let count = 0; count < 4; count++) ids.push(await story.running());
  const [first = ""] = ids;
  story.world.plan = (_, what) => (what.startsWith(`kill ${first}`) ? "error" : undefined);
  await story.remove(first);
  const next = await story.made();
  await story.start(next);
  expect(story.sandbox(next)?.phase).toBe("stopped");
  story.world.plan = undefined;
  await story.comesTo(first, "deleted");
  await story.start(next);
  await story.comesTo(next, "running");
  await rest(story);
});

test("a sandbox without a VM holds no room while it is deleted", async () => {
  const story = await Story.begin();
  const idle = await story.made();
  for (let count = 0; count < 3; count++) await story.running();
  story.world.plan = (_, what) => (what === `remove disk ${idle}` ? "error" : undefined);
  await story.remove(idle);
  const next = await story.running();
  expect(story.sandbox(idle)?.phase).toBe("deleting");
  // The room of one that ran is free once its VM has ended, before its disk is gone.
  story.world.plan = (_, what) => (what.startsWith("remove disk") ? "error" : undefined);
  await story.remove(next);
  const isEnded = (): boolean => story.world.machine.alive(next).length === 0;
  expect(await story.until(isEnded, minute)).toBe(true);
  await story.running();
  expect(story.sandbox(next)?.phase).toBe("deleting");
  await rest(story);
});

test("old news about an earlier run changes nothing", async () => {
  const story = await Story.begin();
  const id = await story.running();
  story.world.machine.end(story.vm(id), "guest_shutdown");
  // The observer's look takes long; meanwhile a person stops and starts the sandbox.
  story.world.slow = { what: `look ${id}/1`, ms: 60_000 };
  await story.until(() => story.world.slow === undefined, minute);
  await story.stop(id);
  await story.comesTo(id, "stopped");
  await story.start(id);
  await story.comesTo(id, "running");
  await story.until(() => false, 2 * minute);
  expect(story.sandbox(id)).toMatchObject({ phase: "running", run: 2 });
  await rest(story);
});

test("a VM that ends on its own while it is being stopped or deleted is no news", async () => {
  for (const wish of ["stop", "remove"] as const) {
    const story = await Story.begin();
    const id = await story.running();
    story.world.machine.end(story.vm(id), "died");
    story.world.slow = { what: `look ${id}/1`, ms: 5_000 };
    await story.until(() => story.world.slow === undefined, minute);
    story.world.slow = { what: wish === "stop" ? `look ${id}/1` : `kill ${id}/1`, ms: 20_000 };
    await story[wish](id);
    await story.comesTo(id, wish === "stop" ? "stopped" : "deleted");
    await rest(story);
  }
});
