/**
 * What commands wrote, byte for byte, in the second database. A chunk is acknowledged to the guest
 * only after `appendOutput` returned. Over the cap the head and the newest stay, and the gap shows.
 */
import { assert } from "../core/assert.ts";
import type { OutputDb, Reading, Writing } from "../db/open.ts";
import type { OutputSchema } from "../db/schema.ts";
import { topics } from "../system/signals.ts";
import { outputKeptBytesMax } from "./command.ts";

export interface Chunk {
  /** Bytes of both streams before this chunk. */
  offset: number;
  stream: "stdout" | "stderr";
  atMs: number;
  data: Uint8Array;
}

/**
 * Stores consecutive chunks of one command. What is stored already is not stored again; returns
 * the number of bytes received in all, or undefined where one leaves a hole: then none is stored.
 */
export function appendOutput(
  output: OutputDb,
  commandId: string,
  chunks: readonly Chunk[],
  keptBytesMax = outputKeptBytesMax,
): Promise<number | undefined> {
  return output.write(async (tx) => {
    const before = await extentOf(tx, commandId);
    const added = newIn(chunks, before.endBytes);
    if (added === undefined) return undefined;
    if (added.length === 0) return before.endBytes;
    for (const chunk of added) await insertChunk(tx, commandId, chunk);
    const addedBytes = added.reduce((sum, { data }) => sum + data.length, 0);
    const over = before.keptBytes + addedBytes - keptBytesMax;
    const dropped = over > 0 ? await dropMiddle(tx, commandId, { over, keptBytesMax }) : 0;
    const endBytes = before.endBytes + addedBytes;
    const keptBytes = before.keptBytes + addedBytes - dropped;
    await setExtent(tx, commandId, { endBytes, keptBytes });
    tx.touch(topics.output(commandId));
    return endBytes;
  });
}

/** What is behind `endBytes`; undefined where something is missing before it. */
function newIn(chunks: readonly Chunk[], endBytes: number): Chunk[] | undefined {
  const added: Chunk[] = [];
  let end = endBytes;
  for (const chunk of chunks) {
    if (chunk.offset > end) return undefined;
    const data = chunk.data.subarray(end - chunk.offset);
    if (data.length === 0) continue;
    added.push({ ...chunk, offset: end, data });
    end += data.length;
  }
  return added;
}

export interface Extent {
  endBytes: number;
  keptBytes: number;
}

export async function extentOf(read: Reading<OutputSchema>, commandId: string): Promise<Extent> {
  const row = await read
    .selectFrom("outputs")
    .select(["end_bytes", "kept_bytes"])
    .where("command_id", "=", commandId)
    .executeTakeFirst();
  return { endBytes: row?.end_bytes ?? 0, keptBytes: row?.kept_bytes ?? 0 };
}

async function setExtent(
  tx: Writing<OutputSchema>,
  commandId: string,
  { endBytes, keptBytes }: Extent,
): Promise<void> {
  await tx
    .insertInto("outputs")
    .values({ command_id: commandId, end_bytes: endBytes, kept_bytes: keptBytes })
    .onConflict((on) =>
      on.column("command_id").doUpdateSet((row) => ({
        end_bytes: row.ref("excluded.end_bytes"),
        kept_bytes: row.ref("excluded.kept_bytes"),
      })),
    )
    .execute();
}

async function insertChunk(
  tx: Writing<OutputSchema>,
  commandId: string,
  { offset, stream, atMs, data }: Chunk,
): Promise<void> {
  await tx
    .insertInto("chunks")
    .values({
      command_id: commandId,
      offset_bytes: offset,
      stream,
      at_ms: atMs,
      length_bytes: data.length,
      data: Buffer.from(data.buffer, data.byteOffset, data.length),
    })
    .execute();
}

/** Drops the oldest chunks behind the head until the rest fits; returns the bytes dropped. */
async function dropMiddle(
  tx: Writing<OutputSchema>,
  commandId: string,
  { over, keptBytesMax }: { over: number; keptBytesMax: number },
): Promise<number> {
  const headBytes = keptBytesMax / 2;
  let [dropped, until] = [0, headBytes];
  for (let limit = rowsFirst; dropped < over; limit *= 2) {
    const oldest = await tx
      .selectFrom("chunks")
      .select(["offset_bytes", "length_bytes"])
      .where("command_id", "=", commandId)
      .where("offset_bytes", ">=", until)
      .orderBy("offset_bytes")
      .limit(limit)
      .execute();
    assert(oldest.length > 0, "there is something behind the head to drop");
    for (const { offset_bytes, length_bytes } of oldest) {
      if (dropped >= over) break;
      dropped += length_bytes;
      until = offset_bytes + length_bytes;
    }
  }
  await tx
    .deleteFrom("chunks")
    .where("command_id", "=", commandId)
    .where("offset_bytes", ">=", headBytes)
    .where("offset_bytes", "<", until)
    .execute();
  return dropped;
}

export interface OutputPage {
  parts: OutputPart[];
  /** Where to go on reading. */
  end: number;
  /** Whether more is stored already. */
  more: boolean;
}

export type OutputPart =
  | { kind: "chunk"; offset: number; stream: "stdout" | "stderr"; atMs: number; data: Uint8Array }
  | { kind: "gap"; from: number; to: number };

/** What was received from `offset` on, at most about `bytesMax`, gaps told where they are. */
export async function readOutput(
  read: Reading<OutputSchema>,
  commandId: string,
  { offset, bytesMax }: { offset: number; bytesMax: number },
): Promise<OutputPage> {
  const { endBytes } = await extentOf(read, commandId);
  const rows = await rowsFrom(read, commandId, { offset, bytesMax });
  const parts: OutputPart[] = [];
  let at = offset;
  let left = bytesMax;
  for (const row of rows) {
    if (left <= 0) break;
    if (row.offset_bytes > at) parts.push({ kind: "gap", from: at, to: row.offset_bytes });
    at = Math.max(at, row.offset_bytes);
    const data = new Uint8Array(row.data).subarray(at - row.offset_bytes).subarray(0, left);
    parts.push({ kind: "chunk", offset: at, stream: row.stream, atMs: row.at_ms, data });
    at += data.length;
    left -= data.length;
  }
  return { parts, end: at, more: at < endBytes };
}

const rowsMax = 2_000;
const rowsFirst = 16;

/** The chunk that holds `offset` and those behind it: measured first, so that memory is bounded. */
async function rowsFrom(
  read: Reading<OutputSchema>,
  commandId: string,
  { offset, bytesMax }: { offset: number; bytesMax: number },
) {
  const ofCommand = read.selectFrom("chunks").where("command_id", "=", commandId);
  const before = await ofCommand
    .select(["offset_bytes", "length_bytes"])
    .where("offset_bytes", "<=", offset)
    .orderBy("offset_bytes", "desc")
    .limit(1)
    .executeTakeFirst();
  // Where the one before it ends before it, the offset is in a gap.
  const holds = before !== undefined && before.offset_bytes + before.length_bytes > offset;
  const from = holds ? before.offset_bytes : offset;
  const last = await lastInPage(read, commandId, { from, bytesMax });
  if (last === undefined) return [];
  return ofCommand
    .selectAll()
    .where("offset_bytes", ">=", from)
    .where("offset_bytes", "<=", last)
    .orderBy("offset_bytes")
    .execute();
}

/** Looks at few lengths first: a page of large chunks must not cost a look at all of them. */
async function lastInPage(
  read: Reading<OutputSchema>,
  commandId: string,
  { from, bytesMax }: { from: number; bytesMax: number },
): Promise<number | undefined> {
  let last: number | undefined;
  let bytes = 0;
  for (let rows = 0, limit = rowsFirst; rows < rowsMax; rows += limit, limit *= 2) {
    const lengths = await read
      .selectFrom("chunks")
      .select(["offset_bytes", "length_bytes"])
      .where("command_id", "=", commandId)
      .where("offset_bytes", ">=", last === undefined ? from : last + 1)
      .orderBy("offset_bytes")
      .limit(limit)
      .execute();
    for (const { offset_bytes, length_bytes } of lengths) {
      if (bytes >= bytesMax) return last;
      last = offset_bytes;
      bytes += length_bytes;
    }
    if (lengths.length < limit) return last;
  }
  return last;
}

const chunksRemovedMax = 500;

/** In steps that other writers can go between. What is half removed is removed by the next call. */
export async function removeOutput(output: OutputDb, commandId: string): Promise<void> {
  let more = true;
  while (more) more = await output.write((tx) => removeSome(tx, commandId));
}

/** Returns whether there is more; the extent goes last, so that the rest can be found again. */
async function removeSome(tx: Writing<OutputSchema>, commandId: string): Promise<boolean> {
  const next = await tx
    .selectFrom("chunks")
    .select("offset_bytes")
    .where("command_id", "=", commandId)
    .orderBy("offset_bytes")
    .limit(1)
    .offset(chunksRemovedMax)
    .executeTakeFirst();
  await tx
    .deleteFrom("chunks")
    .where("command_id", "=", commandId)
    .where("offset_bytes", "<", next?.offset_bytes ?? Number.MAX_SAFE_INTEGER)
    .execute();
  if (next) return true;
  await tx.deleteFrom("outputs").where("command_id", "=", commandId).execute();
  return false;
}

/** Commands that have output, in the order of their ids: behind `after` and before `before`. */
export async function commandsWithOutput(
  read: Reading<OutputSchema>,
  { after, before, limit }: { after: string; before: string; limit: number },
): Promise<string[]> {
  const rows = await read
    .selectFrom("outputs")
    .select("command_id")
    .where("command_id", ">", after)
    .where("command_id", "<", before)
    .orderBy("command_id")
    .limit(limit)
    .execute();
  return rows.map(({ command_id }) => command_id);
}

/** Where bytes are missing over the cap: between the head and the newest. */
export async function gapOf(
  read: Reading<OutputSchema>,
  commandId: string,
  keptBytesMax = outputKeptBytesMax,
): Promise<{ from: number; to: number } | undefined> {
  const { endBytes, keptBytes } = await extentOf(read, commandId);
  if (keptBytes === endBytes) return undefined;
  const ofCommand = read.selectFrom("chunks").where("command_id", "=", commandId);
  const head = await ofCommand
    .select((row) => row("offset_bytes", "+", row.ref("length_bytes")).as("end"))
    .where("offset_bytes", "<", keptBytesMax / 2)
    .orderBy("offset_bytes", "desc")
    .limit(1)
    .executeTakeFirst();
  const newest = await ofCommand
    .select("offset_bytes")
    .where("offset_bytes", ">=", keptBytesMax / 2)
    .orderBy("offset_bytes")
    .limit(1)
    .executeTakeFirst();
  return { from: head?.end ?? 0, to: newest?.offset_bytes ?? endBytes };
}
