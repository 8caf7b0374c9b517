/** All SQL about workflows. The only writer of their rows. */
import type { Selectable } from "kysely";
import type { Reader, Tx } from "../db/open.ts";
import type { WorkflowTable } from "../db/schema.ts";
import { topics } from "../system/signals.ts";
import type { Outcome, Workflow } from "./workflow.ts";

export type WorkflowRow = Selectable<WorkflowTable>;

export interface Beginning {
  /** The operation's id, which clients may ask for. */
  id: string;
  subject: string;
  nowMs: number;
  /** Multiplies the deadline: an emulated guest is slower. */
  timeScale?: number;
}

/** Starts a workflow; one still under way on the same subject ends as superseded. */
export async function startWorkflow<P>(
  tx: Tx,
  workflow: Workflow<P>,
  { id, subject, nowMs, timeScale = 1 }: Beginning,
): Promise<void> {
  await tx
    .updateTable("workflows")
    .set({ finished_at_ms: nowMs, outcome: "superseded" })
    .where("subject", "=", subject)
    .where("finished_at_ms", "is", null)
    .execute();
  const { name, first: step } = workflow;
  const deadline_at_ms = nowMs + workflow.deadlineMs * timeScale;
  const times = { run_at_ms: nowMs, started_at_ms: nowMs, deadline_at_ms };
  await tx
    .insertInto("workflows")
    .values({ id, name, subject, step, ...times })
    .execute();
  tx.touch(topics.workflows);
}

/** Lets the subject's workflow look again at once instead of when its wait is over. */
export async function wakeWorkflow(tx: Tx, subject: string): Promise<void> {
  await tx
    .updateTable("workflows")
    .set((row) => ({ run_at_ms: 0, wakes: row("wakes", "+", 1) }))
    .where("subject", "=", subject)
    .where("finished_at_ms", "is", null)
    .execute();
  tx.touch(topics.workflows);
}

export function liveWorkflows(read: Reader): Promise<WorkflowRow[]> {
  return read
    .selectFrom("workflows")
    .selectAll()
    .where("finished_at_ms", "is", null)
    .orderBy("run_at_ms")
    .orderBy("id")
    .execute();
}

export function findWorkflow(read: Reader, id: string): Promise<WorkflowRow | undefined> {
  return read.selectFrom("workflows").selectAll().where("id", "=", id).executeTakeFirst();
}

/** The workflow at work on a subject now, if any. */
export function liveWorkflowOf(read: Reader, subject: string): Promise<WorkflowRow | undefined> {
  return read
    .selectFrom("workflows")
    .selectAll()
    .where("subject", "=", subject)
    .where("finished_at_ms", "is", null)
    .executeTakeFirst();
}

export async function scheduleRetry(tx: Tx, row: WorkflowRow, runAtMs: number): Promise<boolean> {
  const result = await tx
    .updateTable("workflows")
    .set({ attempt: row.attempt + 1, run_at_ms: runAtMs })
    .where("id", "=", row.id)
    .where("finished_at_ms", "is", null)
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

export async function recordProblem(tx: Tx, id: string, problem: string): Promise<void> {
  await tx.updateTable("workflows").set({ problem }).where("id", "=", id).execute();
}

export interface Recording {
  row: WorkflowRow;
  outcome: Outcome<string>;
  givingUp: boolean;
  nowMs: number;
}

/** Writes an outcome, unless another workflow has taken over the subject meanwhile. */
export async function recordOutcome(tx: Tx, recording: Recording): Promise<void> {
  const { row, outcome, givingUp, nowMs } = recording;
  const present = await findWorkflow(tx, row.id);
  if (present === undefined || present.finished_at_ms !== null) return;
  await outcome.write?.(tx);
  const woken = present.wakes !== row.wakes;
  const finished = outcome.kind === "done";
  await tx
    .updateTable("workflows")
    .set({
      step: outcome.kind === "next" ? outcome.step : row.step,
      attempt: 0,
      run_at_ms: outcome.kind === "wait" && !woken ? nowMs + outcome.ms : nowMs,
      finished_at_ms: finished ? nowMs : null,
      outcome: finished ? (givingUp ? "gave_up" : "done") : null,
    })
    .where("id", "=", row.id)
    .execute();
  tx.touch(topics.workflows);
}

/** Oldest first. */
export async function workflowsFinishedBefore(
  read: Reader,
  beforeMs: number,
  limit: number,
): Promise<string[]> {
  const rows = await read
    .selectFrom("workflows")
    .select("id")
    .where("finished_at_ms", "<", beforeMs)
    .orderBy("finished_at_ms")
    .limit(limit)
    .execute();
  return rows.map(({ id }) => id);
}

/** One that has not finished stays. */
export async function forgetWorkflows(tx: Tx, ids: readonly string[]): Promise<void> {
  await tx
    .deleteFrom("workflows")
    .where("id", "in", ids)
    .where("finished_at_ms", "is not", null)
    .execute();
}
