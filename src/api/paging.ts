/** One page of a list that is ordered by id, newest first. */
import { openCursor, sealCursor } from "./cursors.ts";
import type { ApiPorts } from "./ports.ts";

export interface Paging<Row> {
  /** The list with its filters: a cursor of another one is refused. */
  purpose: string;
  cursor: string | undefined;
  limit: number;
  list: (from: { before: string | undefined; limit: number }) => Promise<Row[]>;
}

/** @throws Fault `malformed` a cursor that was not made for this list. */
export async function readRows<Row extends { id: string }>(
  { host }: Pick<ApiPorts, "host">,
  { purpose, cursor, limit, list }: Paging<Row>,
): Promise<{ rows: Row[]; next_cursor: string | null }> {
  const before = openCursor(host, purpose, cursor);
  // One more than asked for tells whether there is a next page.
  const found = await list({ before, limit: limit + 1 });
  const rows = found.slice(0, limit);
  const last = found.length > limit ? rows.at(-1) : undefined;
  return { rows, next_cursor: last ? sealCursor(host, purpose, last.id) : null };
}
