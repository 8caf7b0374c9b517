/** What commands need from outside. */
import type { OutputDb } from "../db/open.ts";
import type { Guests } from "../guest/guest.ts";
import type { SandboxPorts } from "../sandboxes/ports.ts";

export interface CommandPorts extends SandboxPorts {
  readonly guests: Guests;
  readonly output: OutputDb;
  /** How long the record of what has ended stays readable. Longer than a client retries. */
  readonly recordsKeptMs: number;
}
