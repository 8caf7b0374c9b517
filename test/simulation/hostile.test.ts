/** What a guest that lies can do: harm to its own sandbox, and to nothing else. */
import { expect, test } from "bun:test";
import type { GuestMessage } from "../../src/guest/guest.ts";
import { readAll } from "./check-output.ts";
import { Life } from "./life.ts";
import { rest } from "./lives.ts";
import { World } from "./world.ts";

const usage = { cpu_ms: 0, memory_peak_bytes: null, oom_kills: 0 };

interface Pair {
  life: Life;
  honest: string;
  /** Runs in the honest sandbox. */
  command: string;
  hostile: string;
  /** Runs in the hostile one. */
  own: string;
}

async function running(life: Life, argv: readonly string[]): Promise<[string, string]> {
  const sandbox = (await life.create()) ?? "";
  const command = (await life.send(sandbox, argv)) ?? "";
  expect(await life.until(() => life.row(command)?.state === "running", 60_000)).toBe(true);
  return [sandbox, command];
}

async function pair(): Promise<Pair> {
  const life = new Life(await World.begin(3));
  const [honest, command] = await running(life, ["program", "60000", "4000", "5"]);
  const [hostile, own] = await running(life, ["sleep", "600"]);
  life.world.machine.hostile.add(hostile);
  return { life, honest, command, hostile, own };
}

function tell({ life, hostile }: Pair, ...lies: GuestMessage[]): void {
  for (const { guest } of life.world.machine.alive(hostile)) guest.lies.push(...lies);
}

const ended = (command_id: string, output_bytes: number): GuestMessage => ({
  type: "ended",
  command_id,
  end: { kind: "exited", exit_code: 0 },
  usage,
  at_ms: 0,
  output_bytes,
  signalled: null,
});

async function pass(life: Life, ms: number): Promise<void> {
  await life.until(() => false, ms);
}

test("it cannot end, refuse or start a command of another sandbox, nor write its output", async () => {
  const two = await pair();
  const { life, command } = two;
  const payload = new TextEncoder().encode("forged");
  const output = { type: "output", command_id: command, stream: "stdout", at_ms: 0 } as const;
  const refusal = { type: "launch_refused", command_id: command } as const;
  const lies: GuestMessage[] = [
    { ...output, offset: life.world.durableBytes(command), payload },
    ended(command, 0),
    { ...refusal, reason: "powering_off" },
    { ...refusal, reason: "wrong_boot" },
    { type: "stdin_taken", command_id: command, offset: 100, closed: true },
  ];
  for (const each of lies) {
    tell(two, each);
    await pass(life, 5_000);
    expect(life.row(command)).toMatchObject({ state: "running", stdin_taken: 0, stdin_closed: 0 });
  }
  // The checks compare every byte with what was really written.
  expect(await life.until(() => life.row(command)?.state === "exited", 120_000)).toBe(true);
  expect(life.row(command)?.exit_code).toBe(5);
  expect((await readAll(life.world, command)).length).toBe(4_000);
  await rest(life);
});

test("it is not believed an end whose output it never sent", async () => {
  const two = await pair();
  tell(two, ended(two.own, 1_000));
  await pass(two.life, 10_000);
  expect(two.life.row(two.own)?.state).toBe("running");
  await rest(two.life);
});

test("it cannot leave a hole in its own output", async () => {
  const two = await pair();
  const payload = new Uint8Array(10);
  const more = { command_id: two.own, stream: "stdout", at_ms: 0, payload } as const;
  tell(two, { type: "output", offset: 5, ...more });
  await pass(two.life, 5_000);
  expect(two.life.world.durableBytes(two.own)).toBe(0);
  await rest(two.life);
});

test("it cannot become another boot, and one that claims to be is lost", async () => {
  const two = await pair();
  const { life, hostile } = two;
  const before = life.sandbox(hostile)?.guest_boot_id;
  for (const vm of life.world.machine.alive(hostile)) {
    vm.guest.claimedBootId = "00000000-0000-4000-8000-000000000000";
    life.world.machine.killPart(vm);
  }
  expect(await life.until(() => life.sandbox(hostile)?.phase === "lost", 120_000)).toBe(true);
  expect(life.sandbox(hostile)?.guest_boot_id).toBe(before as string);
  for (const vm of life.world.machine.alive(hostile)) life.world.machine.end(vm, "died");
  await rest(life);
});

test("it cannot claim stdin that nobody sent", async () => {
  const two = await pair();
  tell(two, { type: "stdin_taken", command_id: two.own, offset: 2 ** 40, closed: false });
  await pass(two.life, 5_000);
  expect(two.life.row(two.own)?.stdin_taken).toBe(0);
  await rest(two.life);
});
