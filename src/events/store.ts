/** All SQL about events. Numbers go up with each and never come again, also after a forgetting. */
import type { Reader, Tx } from "../db/open.ts";
import { stateQuery } from "../db/prepared.ts";
import { topics } from "../system/signals.ts";
import type { EventRow, EventType, NewEvent } from "./event.ts";

type Values = Omit<EventRow, "seq">;

const newEvent = stateQuery((db, event: Values) =>
  db.insertInto("events").values({
    type: event.type,
    at_ms: event.at_ms,
    sandbox_id: event.sandbox_id,
    command_id: event.command_id,
    data: event.data,
  }),
);

export async function recordEvent(tx: Tx, event: NewEvent): Promise<void> {
  await tx.all(newEvent, {
    type: event.type,
    at_ms: event.atMs,
    sandbox_id: event.sandboxId,
    command_id: event.commandId ?? null,
    data: JSON.stringify(event.data),
  });
  tx.touch(topics.events);
}

export interface Listing {
  /** The number of the one before the first wanted. */
  after: number;
  /** undefined: all of them. */
  types: readonly EventType[] | undefined;
  sandboxId: string | undefined;
  limit: number;
}

/** Oldest first. */
export function listEvents(read: Reader, listing: Listing): Promise<EventRow[]> {
  let query = read.selectFrom("events").selectAll().where("seq", ">", listing.after);
  if (listing.types) query = query.where("type", "in", listing.types);
  if (listing.sandboxId !== undefined) query = query.where("sandbox_id", "=", listing.sandboxId);
  return query.orderBy("seq").limit(listing.limit).execute();
}

/** The numbers that are there: of the oldest and the newest, 0 before the first. */
export async function extentOfEvents(read: Reader): Promise<{ oldest: number; newest: number }> {
  const row = await read
    .selectFrom("events")
    .select(({ fn }) => [fn.min("seq").as("oldest"), fn.max("seq").as("newest")])
    .executeTakeFirst();
  return { oldest: row?.oldest ?? 0, newest: row?.newest ?? 0 };
}

/**
 * Forgets events from before this time, but never the newest, from which the numbers go on. Returns
 * how many.
 */
export async function dropEventsBefore(tx: Tx, atMs: number, limit: number): Promise<number> {
  const { newest } = await extentOfEvents(tx);
  const old = await tx
    .selectFrom("events")
    .select("seq")
    .where("at_ms", "<", atMs)
    .where("seq", "<", newest)
    .orderBy("seq")
    .limit(limit)
    .execute();
  const last = old.at(-1);
  if (!last) return 0;
  await tx.deleteFrom("events").where("seq", "<=", last.seq).execute();
  return old.length;
}
