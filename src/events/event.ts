/** What happened, as others hear of it: written with the change itself, in one transaction. */
import type { Selectable } from "kysely";
import type { EventTable } from "../db/schema.ts";

/** Each with what its `data` holds. */
export const eventTypes = {
  "sandbox.created": "its name",
  "sandbox.changed": "its name and labels",
  "sandbox.phase": "the phase, its reason and sentence, and the run",
  "command.state": "the state, its reason, and how it ended",
} as const;
export type EventType = keyof typeof eventTypes;

export type EventRow = Selectable<EventTable>;

export interface NewEvent {
  readonly type: EventType;
  readonly atMs: number;
  readonly sandboxId: string;
  readonly commandId?: string;
  readonly data: Readonly<Record<string, unknown>>;
}

const prefix = "evt_";
const digits = 16;

/** Ids sort as their events came about. */
export const eventIdOf = (seq: number): string => prefix + String(seq).padStart(digits, "0");

/** Undefined for what is no event's id. */
export function seqOf(id: string): number | undefined {
  const isId = id.length === prefix.length + digits && id.startsWith(prefix);
  const text = id.slice(prefix.length);
  return isId && /^\d+$/.test(text) ? Number(text) : undefined;
}
