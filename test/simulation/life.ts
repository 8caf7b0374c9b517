/** A life: what clients ask for and what happens to machines, drawn from a seed. */
import { acceptCommand } from "../../src/commands/accept.ts";
import { requestKill } from "../../src/commands/kill.ts";
import { acceptStdin } from "../../src/commands/stdin.ts";
import { getCommand } from "../../src/commands/store.ts";
import { Fault } from "../../src/core/fault.ts";
import type { Tx } from "../../src/db/open.ts";
import { createSandbox } from "../../src/sandboxes/create.ts";
import { requestDelete } from "../../src/sandboxes/delete.ts";
import { requestStart } from "../../src/sandboxes/start.ts";
import { requestStop } from "../../src/sandboxes/stop.ts";
import { getSandbox } from "../../src/sandboxes/store.ts";
import { checkAlways, checkAtRest, checkRemembered, isAtRest } from "./checks.ts";
import type { SeededRandom } from "./random.ts";
import { base, calm, type Weather, World } from "./world.ts";

/** Each seed draws its own weather: a mild average storm explores far less than many uneven ones. */
export function storm(random: SeededRandom): Weather {
  const upTo = (most: number): number => (random.chance(0.3) ? 0 : random.fraction() * most);
  return {
    stillborn: upTo(0.3),
    slowestMs: random.between(1, random.chance(0.3) ? 20_000 : 500),
    errors: upTo(0.3),
    lostReplies: upTo(0.2),
    crashes: upTo(0.15),
    cuts: upTo(0.1),
  };
}

export class Life {
  readonly world: World;
  readonly sandboxes: string[] = [];
  readonly commands: string[] = [];

  constructor(world: World) {
    this.world = world;
  }

  /** A client's request: in one transaction, refused with a fault or durable. */
  async ask<T>(work: (tx: Tx) => Promise<T>): Promise<T | undefined> {
    const { life, db } = this.world;
    const asked = db.write(work).catch((error: unknown) => {
      if (error instanceof Fault) return undefined;
      throw error;
    });
    let answer: { value: T | undefined } | undefined;
    void asked.then((value) => {
      answer = { value };
    });
    // The appliance may die under the request; the client hears nothing then.
    while (answer === undefined && life === this.world.life) await this.pass(1);
    return answer?.value;
  }

  async create(): Promise<void> {
    const wish = { name: undefined, size: "tiny", base, labels: {} };
    const row = await this.ask((tx) => createSandbox(tx, this.world.ports, wish));
    if (row) this.sandboxes.push(row.id);
  }

  async send(sandboxId: string, script = this.#script()): Promise<string | undefined> {
    const wish = { cwd: null, env: {}, user: "agent", timeoutMs: null, stdin: true, by: "key_1" };
    const row = await this.ask(async (tx) => {
      const sandbox = await getSandbox(tx, sandboxId);
      return acceptCommand(tx, this.world.ports, { ...wish, sandbox, argv: script });
    });
    if (row) this.commands.push(row.id);
    return row?.id;
  }

  start(id: string) {
    return this.ask(async (tx) => requestStart(tx, this.world.ports, await getSandbox(tx, id)));
  }

  stop(id: string) {
    return this.ask(async (tx) => requestStop(tx, this.world.ports, await getSandbox(tx, id)));
  }

  remove(id: string) {
    return this.ask(async (tx) => requestDelete(tx, this.world.ports, await getSandbox(tx, id)));
  }

  kill(id: string) {
    return this.ask(async (tx) => {
      const command = await getCommand(tx, id);
      await requestKill(tx, this.world.ports, { command, signal: "TERM", by: "key_1" });
    });
  }

  write(id: string) {
    return this.ask(async (tx) => {
      const command = await getCommand(tx, id);
      const data = new Uint8Array(10);
      await acceptStdin(tx, { command, offset: 0, data, eof: this.world.random.chance(0.5) });
    });
  }

  async pass(turns: number): Promise<void> {
    for (let turn = 0; turn < turns; turn++) {
      await this.world.clock.advance();
      await checkAlways(this.world);
    }
  }

  /** One thing a client does or a machine suffers. */
  async happen(): Promise<void> {
    const { random, machine } = this.world;
    const sandbox = random.pick(this.sandboxes);
    const command = random.pick(this.commands);
    const vm = random.pick([...machine.vms.values()]);
    const dice = random.between(0, 15);
    if (sandbox === undefined || dice === 0) return this.create();
    if (dice <= 5) return void (await this.send(sandbox));
    if (dice === 6) return void (await this.start(sandbox));
    if (dice === 7) return void (await this.stop(sandbox));
    if (dice === 8 && random.chance(0.3)) return void (await this.remove(sandbox));
    if (dice === 9 && command) return this.kill(command);
    if (dice === 10 && command) return this.write(command);
    if (!vm) return;
    if (dice === 11) machine.end(vm, "died");
    if (dice === 12) machine.end(vm, random.chance(0.5) ? "guest_reboot" : "guest_panic");
    if (dice === 13) machine.end(vm, "guest_shutdown");
    if (dice === 14) vm.silent = !vm.silent;
    if (dice === 15 && random.chance(0.2)) this.#loseHost();
  }

  /** The whole machine reboots: every VM ends, the appliance comes back with what was durable. */
  #loseHost(): void {
    for (const vm of this.world.machine.vms.values()) this.world.machine.end(vm, "died");
  }

  #script(): string[] {
    const { random } = this.world;
    const lasts = random.chance(0.5) ? 0 : random.between(1, 40_000);
    const bytes = random.chance(0.5) ? random.between(0, 5_000) : 0;
    return ["program", String(lasts), String(bytes), String(random.between(0, 3))];
  }
}

/** Stormy for a while, then calm; when calm, everything must come to rest and agree. */
export async function live(seed: number, events = 40): Promise<World> {
  const world = await World.begin(seed, calm);
  world.weather = storm(world.random);
  world.machine.stillborn = world.weather.stillborn;
  const life = new Life(world);
  for (let event = 0; event < events; event++) {
    await life.happen();
    await life.pass(world.random.between(1, 40));
  }
  await rest(life);
  return world;
}

const restMaxMs = 900_000;

/** Calms the weather, lets everything end, and checks that it does. */
export async function rest(life: Life): Promise<void> {
  const { world } = life;
  world.weather = calm;
  world.plan = undefined;
  world.machine.stillborn = 0;
  for (const vm of world.machine.vms.values()) vm.silent = false;
  const endMs = world.clock.now() + restMaxMs;
  while (!(await isAtRest(world)) && world.clock.now() < endMs) await life.pass(200);
  await checkAtRest(world);
  await checkRemembered(world, life.commands);
}
