/** All SQL about hosts. */
import type { Reader, Tx } from "../db/open.ts";
import type { Host } from "./host.ts";

export async function findHost(read: Reader): Promise<Host | undefined> {
  const row = await read.selectFrom("host").select(["id", "secret"]).executeTakeFirst();
  return row && { id: row.id, secret: new Uint8Array(row.secret) };
}

export async function insertHost(tx: Tx, { id, secret }: Host, nowMs: number): Promise<void> {
  const values = { id, secret: Buffer.from(secret), created_at_ms: nowMs };
  await tx.insertInto("host").values(values).execute();
}
