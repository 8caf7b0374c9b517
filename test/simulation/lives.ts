/** Random lives: a storm for a while, then calm, in which everything must come to rest and agree. */
import { liveStates } from "../../src/commands/command.ts";
import { assert } from "../../src/core/assert.ts";
import { dayMs, minuteMs } from "../../src/core/units.ts";
import { signalNames } from "../../src/guest/guest.ts";
import { checkStdin, readAll } from "./check-output.ts";
import { Life } from "./life.ts";
import { recordsKeptMs } from "./outside.ts";
import { calm, storm } from "./weather.ts";
import { World } from "./world.ts";

const eventsInALife = 40;

/**
 * @param begun told of the world as it begins, for whoever asks what happened in it until it failed.
 * @throws when anything that must hold does not.
 */
export async function live(seed: number, begun?: (world: World) => void): Promise<World> {
  const world = await World.begin(seed);
  begun?.(world);
  world.weather = storm(world.random);
  const life = new Life(world);
  for (let event = 0; event < eventsInALife; event++) {
    await (world.random.chance(0.7) ? ask(life) : suffer(life));
    await life.pass(world.random.between(1, 40));
  }
  await rest(life);
  await outlive(life);
  return world;
}

const deeds = [create, send, send, send, send, start, stop, remove, kill, write, write] as const;

/** One thing a client asks for. */
async function ask(life: Life): Promise<void> {
  const deed = life.sandboxes.length === 0 ? create : life.world.random.pick(deeds);
  await deed?.(life);
}

async function create(life: Life): Promise<void> {
  await life.create();
}

async function send(life: Life): Promise<void> {
  const { random } = life.world;
  const timeoutMs = random.chance(0.2) ? random.between(1, 20_000) : null;
  const stdin = random.chance(0.5);
  const sandbox = random.pick(life.sandboxes);
  if (sandbox) await life.send(sandbox, argvOf(life), { timeoutMs, stdin });
}

function argvOf({ world: { random } }: Life): string[] {
  const lasts = random.chance(0.5) ? 0 : random.between(1, 40_000);
  const bytes = random.chance(0.5) ? random.between(0, 5_000) : 0;
  const numbers = [lasts, bytes, random.between(0, 3)].map(String);
  const programs = [
    ["program", ...numbers],
    ["program", ...numbers],
    ["both", ...numbers],
    ["cat"],
    ["cat"],
    ["sleep", "600"],
    ["stubborn", "600"],
    ["seq", "100"],
    ["no-such-program"],
  ];
  return random.pick(programs) ?? ["true"];
}

async function start(life: Life): Promise<void> {
  const sandbox = life.world.random.pick(life.sandboxes);
  if (sandbox) await life.start(sandbox);
}

async function stop(life: Life): Promise<void> {
  const sandbox = life.world.random.pick(life.sandboxes);
  if (sandbox) await life.stop(sandbox);
}

async function remove(life: Life): Promise<void> {
  const sandbox = life.world.random.pick(life.sandboxes);
  if (sandbox && life.world.random.chance(0.4)) await life.remove(sandbox);
}

async function kill(life: Life): Promise<void> {
  const command = life.world.random.pick(life.commands);
  const signal = life.world.random.pick(signalNames);
  if (command && signal) await life.kill(command, signal);
}

async function write(life: Life): Promise<void> {
  const { random } = life.world;
  const cats = life.liveCommands().filter(({ stdin }) => stdin === 1);
  const command = random.pick(cats);
  const text = `${random.between(0, 1e6)},`.repeat(random.between(0, 30));
  if (command) await life.write(command.id, text, random.chance(0.3));
}

/** One thing that happens to a machine. */
async function suffer({ world }: Life): Promise<void> {
  const { machine, random } = world;
  const vm = random.pick([...machine.vms.values()]);
  const dice = random.between(0, 9);
  if (dice === 0 && random.chance(0.4)) return world.loseHost();
  if (dice === 1 && random.chance(0.4)) return world.crash();
  if (!vm) return;
  if (dice === 2) machine.end(vm, "died");
  else if (dice === 3) machine.end(vm, "guest_reboot");
  else if (dice === 4) machine.end(vm, "guest_panic");
  else if (dice === 5) machine.end(vm, "guest_shutdown");
  else if (dice === 6) vm.silent = !vm.silent;
  else if (dice === 7) {
    machine.isFull = random.chance(0.7);
    vm.halted = true;
  } else machine.killPart(vm);
}

const restMaxMs = 900_000;

/** Calms the weather, lets everything end, and checks that it does and works again. */
export async function rest(life: Life): Promise<void> {
  const { world } = life;
  world.weather = calm;
  world.plan = undefined;
  world.machine.isFull = false;
  for (const vm of world.machine.vms.values()) {
    vm.silent = false;
    if (vm.hostile) world.machine.end(vm, "died");
  }
  const isOver = async (): Promise<boolean> => {
    await endEndless(life);
    return life.checks.isAtRest();
  };
  await life.until(isOver, restMaxMs);
  await life.checks.atRest();
  life.checks.remembers(life.commands);
  for (const id of life.commands)
    if (!world.machine.hostile.has(life.row(id)?.sandbox_id ?? ""))
      checkStdin(world, id, life.stdinOf(id));
  await checkAllWork(life);
}

/** Programs that never end by themselves are ended by their users. */
async function endEndless(life: Life): Promise<void> {
  for (const { id, argv, stdin_closed, kill_signal, state } of life.liveCommands()) {
    if (state === "queued") continue;
    if (argv.includes("cat") && !stdin_closed) await life.write(id, "", true);
    if (argv.includes('"600"') && kill_signal !== "KILL") await life.kill(id, "KILL");
  }
}

/** Whatever it went through, a sandbox that runs takes a command and tells how it ended. */
async function checkAllWork(life: Life): Promise<void> {
  for (const id of life.sandboxes) {
    if (life.sandbox(id)?.phase !== "running") continue;
    const command = await life.send(id, ["echo", "still", "here"]);
    assert(command, `${id} runs and takes no command`);
    const isOver = (): boolean => {
      const state = life.row(command)?.state;
      return state !== undefined && !liveStates.includes(state);
    };
    await life.until(isOver, 60_000);
    assert(life.row(command)?.state === "exited", `${id}: ${life.row(command)?.state}`);
    assert((await readAll(life.world, command)).toString() === "still here\n", `${id}: its words`);
  }
}

const forgetMaxMs = 30 * minuteMs;

/** Long after, nothing is left of what has ended, and what runs goes on. */
async function outlive(life: Life): Promise<void> {
  const { world } = life;
  world.clock.set(recordsKeptMs + dayMs);
  await world.crash();
  const left = (): string[] => [
    ...world.look<{ id: string }>("id from commands").map(({ id }) => id),
    ...world.look<{ id: string }>("id from sandboxes where phase = 'deleted'").map(({ id }) => id),
    ...world.commandsWithOutput(),
  ];
  await life.until(() => left().length === 0, forgetMaxMs);
  assert(left().length === 0, `${left()} ended long ago and is still on record`);
  await checkAllWork(life);
}
