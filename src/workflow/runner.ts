/** Runs workflows. Knows no noun; never runs two steps of one subject at once. */
import { assert } from "../core/assert.ts";
import { Fault } from "../core/fault.ts";
import type { Db } from "../db/open.ts";
import type { Clock } from "../system/clock.ts";
import type { Log } from "../system/log.ts";
import { type Signals, topics } from "../system/signals.ts";
import * as store from "./store.ts";
import { deadlineProblem, next, type Outcome, problemOf, type Workflow } from "./workflow.ts";

/** How often we look without a signal. */
const idleMs = 1_000;
const backoffFirstMs = 1_000;
const backoffMaxMs = 60_000;

export interface RunnerPorts {
  readonly db: Db;
  readonly clock: Clock;
  readonly signals: Signals;
  readonly log: Log;
}

/** Runs every due workflow, for as long as the process lives. None waits for another's step. */
export async function runWorkflows<P extends RunnerPorts>(
  ports: P,
  known: readonly Workflow<P>[],
): Promise<never> {
  const byName = new Map(known.map((workflow) => [workflow.name, workflow]));
  const busy = new Set<string>();
  while (true) {
    const signal = ports.signals.wait(topics.workflows, idleMs);
    const nowMs = ports.clock.now();
    for (const row of await store.liveWorkflows(ports.db.read)) {
      if (row.run_at_ms > nowMs || busy.has(row.subject)) continue;
      const workflow = byName.get(row.name);
      assert(workflow, `unknown workflow "${row.name}"`);
      busy.add(row.subject);
      void runStep(ports, workflow, row).finally(() => {
        busy.delete(row.subject);
        ports.signals.notify([topics.workflows]);
      });
    }
    await signal;
  }
}

/** Schedules the retry first, then tries: failing, crashing and being killed all look the same. */
async function runStep<P extends RunnerPorts>(
  ports: P,
  workflow: Workflow<P>,
  row: store.WorkflowRow,
): Promise<void> {
  const { db, clock } = ports;
  const backoffMs = Math.min(backoffFirstMs * 2 ** row.attempt, backoffMaxMs);
  try {
    const still = await db.write((tx) => store.scheduleRetry(tx, row, clock.now() + backoffMs));
    if (!still) return;
    const outcome = await attempt(ports, workflow, row);
    if (!outcome) return;
    const givingUp = row.step === workflow.giveUp;
    await db.write((tx) => store.recordOutcome(tx, { row, outcome, givingUp, nowMs: clock.now() }));
  } catch (error) {
    // The retry stands; whatever the step did, it finds it when it looks.
    if (!(error instanceof Fault)) throw error;
    ports.log.warn("a step's record was not taken", { workflow: row.name, subject: row.subject });
  }
}

/** Nothing to record means the retry stands. Anything but a fault is a bug, and ends the process. */
async function attempt<P extends RunnerPorts>(
  ports: P,
  workflow: Workflow<P>,
  row: store.WorkflowRow,
): Promise<Outcome<string> | undefined> {
  const givingUp = row.step === workflow.giveUp;
  if (!givingUp && ports.clock.now() >= row.deadline_at_ms)
    return hop(workflow, row, row.problem ?? deadlineProblem);
  const step = workflow.steps[row.step];
  assert(step, `"${workflow.name}" has no step "${row.step}"`);
  const { subject, started_at_ms: startedAtMs } = row;
  try {
    return await step({ subject, startedAtMs, problem: row.problem ?? undefined }, ports);
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    ports.log.error("a step failed", error, { workflow: row.name, step: row.step, subject });
    // Giving up never gives up: what we hold must be released, however long that takes.
    if (givingUp) return undefined;
    if (!error.retriable) return hop(workflow, row, problemOf(error));
    await ports.db.write((tx) => store.recordProblem(tx, row.id, problemOf(error)));
    return undefined;
  }
}

function hop<P>(workflow: Workflow<P>, row: store.WorkflowRow, problem: string): Outcome<string> {
  return next(workflow.giveUp, (tx) => store.recordProblem(tx, row.id, problem));
}
