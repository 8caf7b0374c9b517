/**
 * Whole lives without chance: each is lived once for each of its calls, messages and commits and
 * each mishap there. A client that hears nothing asks again until it is so.
 */
import { expect, test } from "bun:test";
import { workflows } from "../../src/appliance.ts";
import { isFinal } from "../../src/commands/command.ts";
import type { SandboxPhase } from "../../src/sandboxes/sandbox.ts";
import { Life } from "./life.ts";
import { rest } from "./lives.ts";
import { calm, type Mishap, mishaps } from "./weather.ts";
import { World } from "./world.ts";

const patienceMs = 900_000;
const steps = new Set<string>();

async function until(life: Life, id: string, phases: readonly SandboxPhase[]): Promise<void> {
  const is = (): boolean => phases.includes(life.sandbox(id)?.phase ?? "deleted");
  expect(await life.until(is, patienceMs)).toBe(true);
}

async function insist<T>(wish: () => Promise<T | undefined>): Promise<T> {
  for (let turn = 0; turn < 20; turn++) {
    const answer = await wish();
    if (answer !== undefined) return answer;
  }
  throw new Error("nothing was granted in 20 attempts");
}

async function ended(life: Life, command: string): Promise<void> {
  const is = (): boolean => isFinal(life.row(command)?.state ?? "queued");
  expect(await life.until(is, patienceMs)).toBe(true);
}

/** A sandbox is used, stopped, started again, and deleted. */
async function use(life: Life): Promise<void> {
  const id = await insist(() => life.create());
  const first = await insist(() => life.send(id, ["cat"]));
  await insist(() => life.write(first, "some words", true));
  await ended(life, first);
  await insist(() => life.start(id));
  const killed = await insist(() => life.send(id, ["program", "5000", "900", "3"]));
  await life.until(() => life.row(killed)?.state === "running", 8_000);
  await life.kill(killed);
  await ended(life, killed);
  await insist(() => life.stop(id));
  await until(life, id, ["stopped", "failed"]);
  await insist(() => life.start(id));
  await until(life, id, ["running", "stopped", "failed"]);
  await insist(() => life.remove(id));
  await until(life, id, ["deleted"]);
}

/** The guest reboots under a command, while another waits. */
async function reboot(life: Life): Promise<void> {
  const id = await insist(() => life.create());
  const command = await insist(() => life.send(id, ["program", "60000", "100", "0"]));
  await life.until(() => life.row(command)?.state === "running", 60_000);
  for (const vm of life.world.machine.alive(id)) life.world.machine.end(vm, "guest_reboot");
  await life.send(id, ["echo", "after"]);
  await until(life, id, ["running", "stopped", "failed"]);
}

/** The guest never answers, and the start is given up. */
async function stillborn(life: Life): Promise<void> {
  life.world.weather = { ...calm, stillborn: 1 };
  const id = await insist(() => life.create());
  const command = await insist(() => life.send(id, ["true"]));
  await until(life, id, ["failed", "stopped"]);
  expect(life.world.machine.executed.get(command) ?? 0).toBe(0);
}

type Story = (life: Life) => Promise<void>;

async function tell(story: Story, plan: World["plan"]): Promise<World> {
  const world = await World.begin(1);
  world.plan = plan ?? (() => undefined);
  const life = new Life(world);
  await story(life);
  await rest(life);
  for (const step of world.steps) steps.add(step);
  return world;
}

/** What is polled is struck the first times only: later ones find the same. */
const sameMax = 2;
/** Each mishap strikes at every n-th place, and each at others; STRIDE=1 leaves out none. */
const stride = Number(process.env["STRIDE"] ?? 3);

async function tellWith(story: Story, mishap: Mishap, beside: World["plan"]): Promise<void> {
  const { occasions } = await tell(story, beside);
  expect(occasions.length).toBeGreaterThan(10);
  const seen = new Map<string, number>();
  let places = 0;
  for (const [at, what] of occasions.entries()) {
    const place = `${occasions[at - 1]}, ${what}`;
    seen.set(place, (seen.get(place) ?? 0) + 1);
    if ((seen.get(place) ?? 0) > sameMax) continue;
    if (places++ % stride !== mishaps.indexOf(mishap) % stride) continue;
    try {
      await tell(story, (number, each) => (number === at ? mishap : beside?.(number, each)));
    } catch (error) {
      throw new Error(`${mishap} at ${at}: ${what}`, { cause: error });
    }
  }
}

for (const story of [use, reboot, stillborn])
  for (const mishap of mishaps)
    test(`${story.name}: nothing is lost or done twice by one ${mishap}, wherever it strikes`, () =>
      tellWith(story, mishap, undefined));

/** The guest answers before the appliance hears that its VM runs. */
async function fastBoot(life: Life): Promise<void> {
  life.world.machine.bootMs = 10;
  const id = await insist(() => life.create());
  const command = await insist(() => life.send(id, ["program", "5000", "100", "0"]));
  await ended(life, command);
}

test("fastBoot: the machine is lost while every boot's reply is lost, too", () =>
  tellWith(fastBoot, "hostLost", (_, what) =>
    what.startsWith("boot sb") ? "lostReply" : undefined,
  ));

test("the stories pass through every step of every workflow", () => {
  const all = workflows.flatMap(({ name, steps: each }) =>
    Object.keys(each).map((step) => `${name}.${step}`),
  );
  expect([...steps].sort()).toEqual(all.sort());
});
