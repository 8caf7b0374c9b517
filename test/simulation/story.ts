/** A life that is told on purpose, in calm weather unless a story wants it otherwise. */
import { expect } from "bun:test";
import { isFinal } from "../../src/commands/command.ts";
import type { SandboxPhase } from "../../src/sandboxes/sandbox.ts";
import { Life } from "./life.ts";
import type { SimulatedVm } from "./machine.ts";
import { calm, type Weather } from "./weather.ts";
import { World } from "./world.ts";

export const minute = 60_000;

export class Story extends Life {
  static async begin(weather: Partial<Weather> = {}): Promise<Story> {
    return new Story(await World.begin(5, { ...calm, ...weather }));
  }

  override turns = 1;

  async made(): Promise<string> {
    return (await this.create()) ?? "";
  }

  async sent(sandbox: string, ...argv: string[]): Promise<string> {
    return (await this.send(sandbox, argv)) ?? "";
  }

  async is(command: string, state: string): Promise<void> {
    await this.until(() => this.row(command)?.state === state, 10 * minute);
    expect(this.row(command)?.state as string).toBe(state);
  }

  async comesTo(sandbox: string, phase: SandboxPhase): Promise<void> {
    await this.until(() => this.sandbox(sandbox)?.phase === phase, 10 * minute);
    expect(this.sandbox(sandbox)?.phase).toBe(phase);
  }

  async over(command: string): Promise<void> {
    await this.until(() => isFinal(this.row(command)?.state ?? "queued"), 10 * minute);
  }

  vm(sandbox: string): SimulatedVm {
    const [vm] = this.world.machine.alive(sandbox);
    if (!vm) throw new Error(`no VM of ${sandbox}`);
    return vm;
  }

  async running(): Promise<string> {
    const id = await this.made();
    await this.start(id);
    await this.comesTo(id, "running");
    return id;
  }
}
