/**
 * What really happened in the guests, kept apart from what anybody reports: the truth that records
 * are measured against. It outlives guests, machines and the appliance.
 */
import type { CommandEnd } from "../../src/guest/guest.ts";

export class Deeds {
  /** How often each command was executed, in any boot. */
  readonly executed = new Map<string, number>();
  /** Every boot that was told to launch it. */
  readonly launchedIn = new Map<string, Set<string>>();
  readonly ends = new Map<string, CommandEnd>();
  /** Programs that end with their stdin. */
  readonly copied = new Set<string>();
  readonly #written = new Map<string, Uint8Array[]>();
  readonly #stdin = new Map<string, Uint8Array[]>();

  execute(command: string): void {
    this.executed.set(command, (this.executed.get(command) ?? 0) + 1);
  }

  launch(command: string, bootId: string): void {
    const boots = this.launchedIn.get(command) ?? new Set();
    this.launchedIn.set(command, boots.add(bootId));
  }

  write(command: string, data: Uint8Array): void {
    push(this.#written, command, data);
  }

  read(command: string, data: Uint8Array): void {
    push(this.#stdin, command, data);
  }

  /** Both streams, in order. */
  writtenBy(command: string): Buffer {
    return Buffer.concat(this.#written.get(command) ?? []);
  }

  readBy(command: string): Buffer {
    return Buffer.concat(this.#stdin.get(command) ?? []);
  }
}

function push(map: Map<string, Uint8Array[]>, key: string, data: Uint8Array): void {
  const known = map.get(key);
  if (known) known.push(data);
  else map.set(key, [data]);
}
