/** All SQL about commands, but their output. The only writer of a command's state. */
import { assert } from "../core/assert.ts";
import { Fault } from "../core/fault.ts";
import { accepts, move } from "../core/moves.ts";
import type { Reader, Tx } from "../db/open.ts";
import { stateQuery } from "../db/prepared.ts";
import { recordEvent } from "../events/store.ts";
import { topics } from "../system/signals.ts";
import {
  type CommandEvent,
  type CommandRow,
  type CommandState,
  commandMoves,
  isFinal,
  type StateReason,
} from "./command.ts";

export type NewCommand = Pick<
  CommandRow,
  | "id"
  | "sandbox_id"
  | "argv"
  | "cwd"
  | "env"
  | "user"
  | "timeout_ms"
  | "stdin"
  | "accepted_by"
  | "accepted_at_ms"
>;

const newCommand = stateQuery((db, row: CommandRow) =>
  db.insertInto("commands").values({
    id: row.id,
    sandbox_id: row.sandbox_id,
    argv: row.argv,
    cwd: row.cwd,
    env: row.env,
    user: row.user,
    timeout_ms: row.timeout_ms,
    stdin: row.stdin,
    state: row.state,
    state_reason: row.state_reason,
    accepted_by: row.accepted_by,
    accepted_at_ms: row.accepted_at_ms,
  }),
);

/** Columns that a command comes by later, as the schema has them. */
const untouched = {
  guest_boot_id: null,
  run: null,
  started_at_ms: null,
  ended_at_ms: null,
  exit_code: null,
  signal: null,
  end_details: "{}",
  cpu_ms: null,
  memory_peak_bytes: null,
  kill_signal: null,
  kill_by: null,
  kill_request: null,
  kill_done: 0,
  stdin_taken: 0,
  stdin_closed: 0,
} as const;

/** Returns the whole record, without reading it again. */
export async function insertCommand(tx: Tx, command: NewCommand): Promise<CommandRow> {
  const row = { ...command, ...untouched, state: "queued", state_reason: "accepted" } as const;
  await tx.all(newCommand, row);
  touch(tx, row);
  return row;
}

const byId = stateQuery((db, { id }: { id: string }) =>
  db.selectFrom("commands").selectAll().where("id", "=", id),
);

export async function findCommand(read: Reader, id: string): Promise<CommandRow | undefined> {
  const [found] = await read.all(byId, { id });
  return found;
}

/** @throws Fault `missing`. */
export async function getCommand(read: Reader, id: string): Promise<CommandRow> {
  const found = await findCommand(read, id);
  if (found) return found;
  throw new Fault("missing", `no command "${id}"`, {
    code: "command_not_found",
    hint: "holdfast ps shows a sandbox's commands",
  });
}

type Changes = Partial<Omit<CommandRow, "id" | "sandbox_id" | "state" | "state_reason">>;

export interface Move {
  id: string;
  event: CommandEvent;
  reason: StateReason;
  nowMs: number;
  changes?: Changes;
}

/** @throws Bug when the state does not accept the event. */
export async function moveCommand(tx: Tx, step: Move): Promise<void> {
  const row = await findCommand(tx, step.id);
  assert(row, `no command "${step.id}"`);
  const state = move(commandMoves, row.state, step.event);
  const ended = isFinal(state) ? { ended_at_ms: step.nowMs } : {};
  await tx
    .updateTable("commands")
    .set({ state, state_reason: step.reason, ...ended, ...step.changes })
    .where("id", "=", step.id)
    .execute();
  if (isFinal(state)) await dropStdin(tx, step.id);
  await recordEvent(tx, {
    type: "command.state",
    atMs: step.nowMs,
    sandboxId: row.sandbox_id,
    commandId: row.id,
    data: {
      state,
      reason: step.reason,
      exit_code: step.changes?.exit_code ?? null,
      signal: step.changes?.signal ?? null,
    },
  });
  touch(tx, row);
}

/** As `moveCommand`, but a state that does not take the event is left as it is: a late report. */
export async function moveIfAccepted(tx: Tx, step: Move): Promise<boolean> {
  const row = await findCommand(tx, step.id);
  if (!row || !accepts(commandMoves, row.state, step.event)) return false;
  await moveCommand(tx, step);
  return true;
}

export async function changeCommand(tx: Tx, row: CommandRow, changes: Changes): Promise<void> {
  await tx.updateTable("commands").set(changes).where("id", "=", row.id).execute();
  touch(tx, row);
}

const liveOf = stateQuery((db, { sandboxId }: { sandboxId: string }) =>
  db
    .selectFrom("commands")
    .selectAll()
    .where("sandbox_id", "=", sandboxId)
    .where("ended_at_ms", "is", null)
    .orderBy("id"),
);

/** Oldest first: the order in which they were accepted. */
export function liveCommandsOf(read: Reader, sandboxId: string): Promise<CommandRow[]> {
  return read.all(liveOf, { sandboxId });
}

export interface Listing {
  sandboxId: string;
  /** undefined: all of them. */
  states: readonly CommandState[] | undefined;
  before: string | undefined;
  limit: number;
}

/** Newest first. */
export function listCommands(read: Reader, listing: Listing): Promise<CommandRow[]> {
  let query = read.selectFrom("commands").selectAll().where("sandbox_id", "=", listing.sandboxId);
  if (listing.states) query = query.where("state", "in", listing.states);
  if (listing.before) query = query.where("id", "<", listing.before);
  return query.orderBy("id", "desc").limit(listing.limit).execute();
}

/** Those that ended before, oldest first. */
export async function commandsEndedBefore(
  read: Reader,
  beforeMs: number,
  limit: number,
): Promise<string[]> {
  const rows = await read
    .selectFrom("commands")
    .select("id")
    .where("ended_at_ms", "<", beforeMs)
    .orderBy("ended_at_ms")
    .limit(limit)
    .execute();
  return rows.map(({ id }) => id);
}

/** Their idempotency keys leave with them. One that has not ended stays. */
export async function forgetCommands(tx: Tx, ids: readonly string[]): Promise<void> {
  await tx
    .deleteFrom("commands")
    .where("id", "in", ids)
    .where("ended_at_ms", "is not", null)
    .execute();
}

/** Which of them are on record. */
export async function knownCommands(read: Reader, ids: readonly string[]): Promise<Set<string>> {
  const rows = await read.selectFrom("commands").select("id").where("id", "in", ids).execute();
  return new Set(rows.map(({ id }) => id));
}

// Stdin waits here until the guest part has taken it over.

export interface StdinPiece {
  command: CommandRow;
  offset: number;
  data: Uint8Array;
}

export async function insertStdin(tx: Tx, { command, offset, data }: StdinPiece): Promise<void> {
  const values = { command_id: command.id, offset_bytes: offset, data };
  await tx.insertInto("stdin_chunks").values(values).execute();
  touch(tx, command);
}

/** Bytes accepted so far, taken over or not, and how many are held here. */
export async function stdinExtent(
  read: Reader,
  command: CommandRow,
): Promise<{ endBytes: number; heldBytes: number }> {
  const rows = await read
    .selectFrom("stdin_chunks")
    .select(["offset_bytes", (row) => row.fn<number>("length", ["data"]).as("length")])
    .where("command_id", "=", command.id)
    .orderBy("offset_bytes")
    .execute();
  const last = rows.at(-1);
  const endBytes = last ? last.offset_bytes + last.length : command.stdin_taken;
  return { endBytes, heldBytes: rows.reduce((sum, { length }) => sum + length, 0) };
}

/** The first piece that ends behind `offset`, if one is held. */
export function stdinFrom(
  read: Reader,
  commandId: string,
  offset: number,
): Promise<{ offset_bytes: number; data: Uint8Array } | undefined> {
  return read
    .selectFrom("stdin_chunks")
    .select(["offset_bytes", "data"])
    .where("command_id", "=", commandId)
    .where((row) => row(row("offset_bytes", "+", row.fn<number>("length", ["data"])), ">", offset))
    .orderBy("offset_bytes")
    .executeTakeFirst();
}

export async function takeStdin(tx: Tx, command: CommandRow, offset: number): Promise<void> {
  await tx
    .deleteFrom("stdin_chunks")
    .where("command_id", "=", command.id)
    .where((row) => row(row("offset_bytes", "+", row.fn<number>("length", ["data"])), "<=", offset))
    .execute();
  await changeCommand(tx, command, { stdin_taken: offset });
}

async function dropStdin(tx: Tx, id: string): Promise<void> {
  await tx.deleteFrom("stdin_chunks").where("command_id", "=", id).execute();
}

function touch(tx: Tx, { id, sandbox_id }: Pick<CommandRow, "id" | "sandbox_id">): void {
  tx.touch(topics.command(id));
  tx.touch(topics.conversation(sandbox_id));
}
