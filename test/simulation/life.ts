/** A life: what clients ask for and what happens to machines, drawn from a seed. */
import { acceptCommand } from "../../src/commands/accept.ts";
import { type CommandRow, isFinal } from "../../src/commands/command.ts";
import { requestKill } from "../../src/commands/kill.ts";
import { acceptStdin } from "../../src/commands/stdin.ts";
import { getCommand } from "../../src/commands/store.ts";
import { Fault } from "../../src/core/fault.ts";
import type { Tx } from "../../src/db/open.ts";
import type { SignalName } from "../../src/guest/guest.ts";
import { createSandbox } from "../../src/sandboxes/create.ts";
import { requestDelete } from "../../src/sandboxes/delete.ts";
import type { SandboxRow } from "../../src/sandboxes/sandbox.ts";
import { requestStart } from "../../src/sandboxes/start.ts";
import { requestStop } from "../../src/sandboxes/stop.ts";
import { getBusy, getSandbox } from "../../src/sandboxes/store.ts";
import { Checks } from "./checks.ts";
import { base } from "./outside.ts";
import type { World } from "./world.ts";

export interface Stdin {
  taken: Buffer;
  possible: Buffer;
}

export class Life {
  readonly world: World;
  readonly checks: Checks;
  readonly sandboxes: string[] = [];
  readonly commands: string[] = [];
  readonly #taken = new Map<string, Buffer>();
  readonly #unanswered = new Map<string, { data: Buffer; eof: boolean }>();

  constructor(world: World) {
    this.world = world;
    this.checks = new Checks(world);
  }

  /** A client's request: refused with a fault, or durable. undefined: refused, or never heard of. */
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
    return life === this.world.life ? answer?.value : undefined;
  }

  async create(): Promise<string | undefined> {
    const wish = { name: undefined, size: "tiny", base, labels: {} };
    const row = await this.ask((tx) => createSandbox(tx, this.world.ports, wish));
    if (row) this.sandboxes.push(row.id);
    return row?.id;
  }

  async send(
    sandboxId: string,
    argv: readonly string[],
    { timeoutMs = null, stdin = true }: { timeoutMs?: number | null; stdin?: boolean } = {},
  ): Promise<string | undefined> {
    const wish = { cwd: null, env: {}, user: "agent", timeoutMs, stdin, by: "key_1", argv };
    const row = await this.ask(async (tx) => {
      const sandbox = await getBusy(tx, sandboxId);
      return acceptCommand(tx, this.world.ports, { ...wish, sandbox });
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

  kill(id: string, signal: SignalName = "TERM") {
    return this.ask(async (tx) => {
      const command = await getCommand(tx, id);
      await requestKill(tx, this.world.ports, { command, signal, by: "key_1" });
      return true;
    });
  }

  /** A piece that was not answered for is sent again before any other. */
  async write(id: string, text: string, eof: boolean): Promise<number | undefined> {
    const { taken } = this.stdinOf(id);
    const piece = this.#unanswered.get(id) ?? { data: Buffer.from(text), eof };
    this.#unanswered.set(id, piece);
    const end = await this.ask(async (tx) => {
      const command = await getCommand(tx, id);
      return acceptStdin(tx, { command, offset: taken.length, ...piece });
    });
    if (end === undefined) return undefined;
    this.#taken.set(id, Buffer.concat([taken, piece.data]));
    this.#unanswered.delete(id);
    return end;
  }

  /** What the appliance took for certain, and what it may have taken beyond that. */
  stdinOf(id: string): Stdin {
    const taken = this.#taken.get(id) ?? Buffer.alloc(0);
    const piece = this.#unanswered.get(id);
    return { taken, possible: piece ? Buffer.concat([taken, piece.data]) : taken };
  }

  row(id: string): CommandRow | undefined {
    return this.world.look<CommandRow>("* from commands where id = ?", id)[0];
  }

  sandbox(id: string): SandboxRow | undefined {
    return this.world.look<SandboxRow>("* from sandboxes where id = ?", id)[0];
  }

  liveCommands(): CommandRow[] {
    const rows = this.world.look<CommandRow>("* from commands where ended_at_ms is null");
    return rows.filter(({ state }) => !isFinal(state));
  }

  async pass(turns: number): Promise<void> {
    for (let turn = 0; turn < turns; turn++) {
      await this.world.pass();
      await this.checks.always();
    }
  }

  /** How many wakes pass between two looks of `until`. */
  turns = 20;

  /** Until it is so, or `ms` have passed. Returns whether it is so. */
  async until(is: () => boolean | Promise<boolean>, ms: number): Promise<boolean> {
    const endMs = this.world.clock.now() + ms;
    while (!(await is())) {
      if (this.world.clock.now() >= endMs) return false;
      await this.pass(this.turns);
    }
    return true;
  }
}
