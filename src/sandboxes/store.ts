/** All SQL about sandboxes. The only writer of a sandbox's phase. */
import { type QueryCreator, sql } from "kysely";
import { assert } from "../core/assert.ts";
import { Fault } from "../core/fault.ts";
import { move } from "../core/moves.ts";
import type { Reader, Tx } from "../db/open.ts";
import { stateQuery } from "../db/prepared.ts";
import type { Schema } from "../db/schema.ts";
import { recordEvent } from "../events/store.ts";
import { topics } from "../system/signals.ts";
import type { VmRef } from "../vmm/vmm.ts";
import {
  type PhaseReason,
  phaseReasons,
  phasesWithVm,
  type SandboxEvent,
  type SandboxPhase,
  type SandboxRow,
  sandboxMoves,
} from "./sandbox.ts";

/** Columns a move may set along with the phase. */
export type Changes = Partial<
  Pick<
    SandboxRow,
    | "run"
    | "guest_boot_id"
    | "guest_seen_at_ms"
    | "disk_made"
    | "started_at_ms"
    | "started_from"
    | "last_stop"
    | "reboots"
    | "deleted_at_ms"
  >
>;

export interface Move {
  id: string;
  event: SandboxEvent;
  reason: PhaseReason;
  nowMs: number;
  changes?: Changes;
}

export type NewSandbox = Pick<
  SandboxRow,
  | "id"
  | "name"
  | "size"
  | "vcpus"
  | "memory_bytes"
  | "disk_bytes"
  | "base_digest"
  | "base_name"
  | "base_built_at_ms"
  | "labels"
  | "machine_id"
  | "created_at_ms"
>;

export async function insertSandbox(tx: Tx, sandbox: NewSandbox): Promise<void> {
  await tx
    .insertInto("sandboxes")
    .values({
      ...sandbox,
      phase: "stopped",
      phase_reason: "created",
      phase_at_ms: sandbox.created_at_ms,
      guest_boot_id: null,
      guest_seen_at_ms: null,
      started_at_ms: null,
      started_from: null,
      last_stop: null,
      deleted_at_ms: null,
    })
    .execute();
  await recordEvent(tx, {
    type: "sandbox.created",
    atMs: sandbox.created_at_ms,
    sandboxId: sandbox.id,
    data: { name: sandbox.name },
  });
  touch(tx, sandbox.id);
}

const byId = stateQuery((db, { id }: { id: string }) =>
  db.selectFrom("sandboxes").selectAll().where("id", "=", id),
);

export async function findSandbox(read: Reader, id: string): Promise<SandboxRow | undefined> {
  const [found] = await read.all(byId, { id });
  return found;
}

/** By id, or by the name of one that is not deleted. @throws Fault `missing`. */
export async function getSandbox(read: Reader, idOrName: string): Promise<SandboxRow> {
  const found = idOrName.includes("_")
    ? await findSandbox(read, idOrName)
    : await findByName(read, idOrName);
  if (found) return found;
  throw missing(idOrName);
}

const missing = (idOrName: string): Fault =>
  new Fault("missing", `no sandbox "${idOrName}"`, {
    code: "sandbox_not_found",
    hint: "holdfast ls shows those that exist",
  });

/** With how many of its commands have not ended. */
export type BusySandbox = SandboxRow & { commands_live: number };

const withLive = (db: Pick<QueryCreator<Schema>, "selectFrom">) =>
  db
    .selectFrom("sandboxes")
    .selectAll()
    .select(
      sql<number>`(select count(*) from commands
        where sandbox_id = sandboxes.id and ended_at_ms is null)`.as("commands_live"),
    );
const busyById = stateQuery((db, { id }: { id: string }) => withLive(db).where("id", "=", id));
const busyByName = stateQuery((db, { name }: { name: string }) =>
  withLive(db).where("name", "=", name).where("phase", "<>", "deleted"),
);

/** As `getSandbox`, for who shows it or gives it another command: one look at the database. */
export async function getBusy(read: Reader, idOrName: string): Promise<BusySandbox> {
  const [found] = idOrName.includes("_")
    ? await read.all(busyById, { id: idOrName })
    : await read.all(busyByName, { name: idOrName });
  if (found) return found;
  throw missing(idOrName);
}

const byName = stateQuery((db, { name }: { name: string }) =>
  db.selectFrom("sandboxes").selectAll().where("name", "=", name).where("phase", "<>", "deleted"),
);

export async function findByName(read: Reader, name: string): Promise<SandboxRow | undefined> {
  const [found] = await read.all(byName, { name });
  return found;
}

/** The run a VM of this sandbox would be, or is. */
export const refOf = (sandbox: Pick<SandboxRow, "id" | "run">): VmRef => ({
  sandbox: sandbox.id,
  run: sandbox.run,
});

/** @throws Bug when the phase does not accept the event: the caller checks under the same `tx`. */
export async function moveSandbox(tx: Tx, step: Move): Promise<void> {
  const row = await findSandbox(tx, step.id);
  assert(row, `no sandbox "${step.id}"`);
  const phase = move(sandboxMoves, row.phase, step.event);
  await tx
    .updateTable("sandboxes")
    .set({ phase, phase_reason: step.reason, phase_at_ms: step.nowMs, ...step.changes })
    .where("id", "=", step.id)
    .execute();
  await recordEvent(tx, {
    type: "sandbox.phase",
    atMs: step.nowMs,
    sandboxId: step.id,
    data: {
      phase,
      reason: step.reason,
      message: phaseReasons[step.reason],
      run: step.changes?.run ?? row.run,
    },
  });
  touch(tx, step.id);
}

/** A finer reason for the phase it is in. No-op once the sandbox has left it. */
export async function explainPhase(
  tx: Tx,
  sandbox: Pick<SandboxRow, "id" | "phase">,
  reason: PhaseReason,
): Promise<void> {
  await tx
    .updateTable("sandboxes")
    .set({ phase_reason: reason })
    .where("id", "=", sandbox.id)
    .where("phase", "=", sandbox.phase)
    .where("phase_reason", "<>", reason)
    .execute();
  touch(tx, sandbox.id);
}

export async function changeSandbox(
  tx: Tx,
  id: string,
  changes: Changes & Partial<Pick<SandboxRow, "name" | "labels">>,
): Promise<void> {
  await tx.updateTable("sandboxes").set(changes).where("id", "=", id).execute();
  touch(tx, id);
}

export function sandboxesIn(read: Reader, phases: readonly SandboxPhase[]): Promise<SandboxRow[]> {
  return read
    .selectFrom("sandboxes")
    .selectAll()
    .where("phase", "in", phases)
    .orderBy("id")
    .execute();
}

export interface Listing {
  /** undefined: every phase but `deleted`. */
  phases: readonly SandboxPhase[] | undefined;
  /** Only those that have all of these. */
  labels: Readonly<Record<string, string>>;
  /** Ids below this one; undefined = from the newest. */
  before: string | undefined;
  limit: number;
}

/** Newest first. */
export function listSandboxes(read: Reader, listing: Listing): Promise<BusySandbox[]> {
  let query = withLive(read);
  query = listing.phases
    ? query.where("phase", "in", listing.phases)
    : query.where("phase", "<>", "deleted");
  for (const [key, value] of Object.entries(listing.labels))
    query = query.where(hasLabel(key, value));
  if (listing.before) query = query.where("id", "<", listing.before);
  return query.orderBy("id", "desc").limit(listing.limit).execute();
}

const hasLabel = (key: string, value: string) =>
  sql<boolean>`exists (select 1 from json_each(labels) where key = ${key} and value = ${value})`;

export const sandboxesWithVm = (read: Reader): Promise<SandboxRow[]> =>
  sandboxesIn(read, phasesWithVm);

export interface OldSandboxes {
  beforeMs: number;
  /** Ids above this one. */
  after: string;
  limit: number;
}

/** Deleted before that time, and no command on record is theirs; in the order of their ids. */
export async function sandboxesDeletedBefore(
  read: Reader,
  { beforeMs, after, limit }: OldSandboxes,
): Promise<string[]> {
  const rows = await read
    .selectFrom("sandboxes")
    .select("id")
    .where("phase", "=", "deleted")
    .where("deleted_at_ms", "<", beforeMs)
    .where("id", ">", after)
    .where(sql<boolean>`not exists (select 1 from commands where sandbox_id = sandboxes.id)`)
    .orderBy("id")
    .limit(limit)
    .execute();
  return rows.map(({ id }) => id);
}

/** One that is not deleted stays. */
export async function forgetSandboxes(tx: Tx, ids: readonly string[]): Promise<void> {
  await tx.deleteFrom("sandboxes").where("id", "in", ids).where("phase", "=", "deleted").execute();
}

function touch(tx: Tx, id: string): void {
  tx.touch(topics.sandbox(id));
  tx.touch(topics.conversation(id));
  tx.touch(topics.sandboxes);
}
