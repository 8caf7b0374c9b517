/** This machine's record: made once with its database, and never again. */
import { makeId } from "../core/ids.ts";
import type { Db } from "../db/open.ts";
import type { Clock } from "../system/clock.ts";
import type { Random } from "../system/random.ts";
import type { Host } from "./host.ts";
import { findHost, insertHost } from "./store.ts";

/** The host of this database; a fresh database gets one. May be called twice. */
export function openHost(db: Db, clock: Clock, random: Random): Promise<Host> {
  return db.write(async (tx) => {
    const known = await findHost(tx);
    if (known) return known;
    const nowMs = clock.now();
    const host = { id: makeId("host", nowMs, random.bytes(10)), secret: random.bytes(32) };
    await insertHost(tx, host, nowMs);
    return host;
  });
}
