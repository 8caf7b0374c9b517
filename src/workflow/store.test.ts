import { expect, test } from "bun:test";
import fc from "fast-check";
import { type Db, openState } from "../db/open.ts";
import { openBytes } from "../db/sqlite.ts";
import * as store from "./store.ts";
import { done, next, type Outcome, type Workflow, wait } from "./workflow.ts";

const finish = async () => done();
const workflow: Workflow<unknown, "work" | "more" | "release"> = {
  name: "test",
  first: "work",
  giveUp: "release",
  deadlineMs: 1_000,
  steps: { work: finish, more: finish, release: finish },
};

async function opened(): Promise<Db> {
  const sqlite = await openBytes(undefined);
  return openState({ sqlite, committed: () => {}, gather: async () => {} });
}

const start = (db: Db, id: string, subject = "sb_1", nowMs = 0): Promise<void> =>
  db.write((tx) => store.startWorkflow(tx, workflow, { id, subject, nowMs }));

async function rowOf(db: Db, id: string): Promise<store.WorkflowRow> {
  const row = await store.findWorkflow(db.read, id);
  if (!row) throw new Error(`no workflow ${id}`);
  return row;
}

interface Deed {
  kind: "start" | "wake" | "look" | "retry" | "record";
  subject: "sb_1" | "sb_2";
  outcome: "next" | "wait" | "done";
  gaveUp: boolean;
}

const deed = fc.record<Deed>({
  kind: fc.constantFrom("start", "wake", "look", "look", "retry", "record", "record"),
  subject: fc.constantFrom("sb_1", "sb_2"),
  outcome: fc.constantFrom("next", "wait", "done"),
  gaveUp: fc.boolean(),
});

class Bench {
  readonly db: Db;
  nowMs = 0;
  started = 0;
  /** What a step that is under way saw when it began. */
  readonly seen = new Map<string, store.WorkflowRow>();
  /** Final rows, as they were when they became final. */
  readonly final = new Map<string, string>();

  constructor(db: Db) {
    this.db = db;
  }

  async do({ kind, subject, outcome, gaveUp }: Deed): Promise<void> {
    this.nowMs += 10;
    const row = this.seen.get(subject);
    if (kind === "start") await start(this.db, `op_${this.started++}`, subject, this.nowMs);
    else if (kind === "wake") await this.db.write((tx) => store.wakeWorkflow(tx, subject));
    else if (kind === "look") await this.#look(subject);
    else if (row && kind === "retry") await this.#retry(row);
    else if (row) await this.#record(row, outcome, gaveUp);
  }

  async #look(subject: string): Promise<void> {
    const row = await store.liveWorkflowOf(this.db.read, subject);
    if (row) this.seen.set(subject, row);
  }

  async #retry(row: store.WorkflowRow): Promise<void> {
    const before = await rowOf(this.db, row.id);
    const still = await this.db.write((tx) => store.scheduleRetry(tx, row, this.nowMs + 500));
    expect(still).toBe(before.finished_at_ms === null);
  }

  async #record(row: store.WorkflowRow, kind: Deed["outcome"], givingUp: boolean): Promise<void> {
    const before = await rowOf(this.db, row.id);
    let written = 0;
    const write = async (): Promise<void> => void written++;
    const outcomes: Record<Deed["outcome"], Outcome<string>> = {
      next: next("more", write),
      wait: wait(100_000, write),
      done: done(write),
    };
    const recording = { row, outcome: outcomes[kind], givingUp, nowMs: this.nowMs };
    await this.db.write((tx) => store.recordOutcome(tx, recording));
    const after = await rowOf(this.db, row.id);
    if (before.finished_at_ms !== null) {
      expect([written, after]).toEqual([0, before]);
      return;
    }
    expect(written).toBe(1);
    expect(after.attempt).toBe(0);
    expect(after.finished_at_ms === null).toBe(kind !== "done");
    if (kind === "done") expect(after.outcome).toBe(givingUp ? "gave_up" : "done");
    const woken = before.wakes !== row.wakes;
    const waits = kind === "wait" && !woken;
    expect(after.run_at_ms).toBe(waits ? this.nowMs + 100_000 : this.nowMs);
  }

  /** At most one is at work on a subject, and what has finished never changes. */
  async check(): Promise<void> {
    const rows = await this.db.read.selectFrom("workflows").selectAll().execute();
    const live = rows.filter(({ finished_at_ms }) => finished_at_ms === null);
    expect(new Set(live.map(({ subject }) => subject)).size).toBe(live.length);
    for (const row of rows) {
      expect(row.outcome === null).toBe(row.finished_at_ms === null);
      if (row.finished_at_ms === null) continue;
      const text = JSON.stringify(row);
      expect(this.final.get(row.id) ?? text).toBe(text);
      this.final.set(row.id, text);
    }
  }
}

test("one workflow at most is at work on a subject, and what was taken over records nothing", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(deed, { maxLength: 40 }), async (deeds) => {
      const bench = new Bench(await opened());
      for (const each of deeds) {
        await bench.do(each);
        await bench.check();
      }
    }),
    { numRuns: 60 },
  );
});

test("the deadline grows with what an emulated guest needs", async () => {
  const db = await opened();
  const beginning = { id: "op_1", subject: "sb_1", nowMs: 500, timeScale: 10 };
  await db.write((tx) => store.startWorkflow(tx, workflow, beginning));
  expect(await rowOf(db, "op_1")).toMatchObject({ run_at_ms: 500, deadline_at_ms: 10_500 });
});

test("only what has finished is old, and only that is forgotten", async () => {
  const db = await opened();
  await start(db, "op_1");
  await start(db, "op_2");
  expect(await store.workflowsFinishedBefore(db.read, 1_000, 10)).toEqual(["op_1"]);
  expect(await store.workflowsFinishedBefore(db.read, 0, 10)).toEqual([]);
  await db.write((tx) => store.forgetWorkflows(tx, ["op_1", "op_2"]));
  expect(await store.findWorkflow(db.read, "op_1")).toBeUndefined();
  expect((await rowOf(db, "op_2")).finished_at_ms).toBeNull();
});
