import { expect, test } from "bun:test";
import { settle, VirtualClock } from "../../test/simulation/clock.ts";
import { Fault } from "../core/fault.ts";
import { openState } from "../db/open.ts";
import { openBytes } from "../db/sqlite.ts";
import { silentLog } from "../system/log.ts";
import { Signals } from "../system/signals.ts";
import { type RunnerPorts, runWorkflows } from "./runner.ts";
import { findWorkflow, startWorkflow, wakeWorkflow } from "./store.ts";
import { done, next, type Workflow, wait } from "./workflow.ts";

type Step = "work" | "release";
type Steps = Workflow<RunnerPorts, Step>["steps"];

class Bench {
  readonly clock = new VirtualClock();
  readonly began = this.clock.now();
  ports!: RunnerPorts;
  /** Which step began when, milliseconds since the beginning. */
  readonly attempts: [string, number][] = [];

  static async begin(steps: Steps, deadlineMs = 60_000): Promise<Bench> {
    const bench = new Bench();
    const { clock } = bench;
    const signals = new Signals(clock);
    const sqlite = await openBytes(undefined);
    const committed = (topics: Iterable<string>): void => signals.notify(topics);
    const db = openState({ sqlite, committed, gather: async () => {} });
    bench.ports = { db, clock, signals, log: silentLog };
    const workflow = {
      name: "test",
      first: "work",
      giveUp: "release",
      deadlineMs,
      steps: { work: bench.#timed("work", steps), release: bench.#timed("release", steps) },
    } as const satisfies Workflow<RunnerPorts, Step>;
    void runWorkflows(bench.ports, [workflow]);
    const beginning = { id: "op_1", subject: "sb_1", nowMs: clock.now() };
    await db.write((tx) => startWorkflow(tx, workflow, beginning));
    return bench;
  }

  #timed(name: Step, steps: Steps): Steps[Step] {
    return (attempt, ports) => {
      this.attempts.push([name, this.clock.now() - this.began]);
      return steps[name](attempt, ports);
    };
  }

  async pass(ms: number): Promise<void> {
    await settle();
    const endMs = this.clock.now() + ms;
    void this.clock.sleep(ms);
    while (this.clock.now() < endMs) await this.clock.advance();
  }

  row() {
    return findWorkflow(this.ports.db.read, "op_1");
  }
}

const fail = (kind: "unavailable" | "broken"): Promise<never> =>
  Promise.reject(new Fault(kind, "it failed", { code: `${kind}_code` }));
const finish = async () => done();

test("a step that hangs is not tried a second time beside itself", async () => {
  const hangs = (): Promise<never> => new Promise<never>(() => {});
  const bench = await Bench.begin({ work: hangs, release: finish });
  await bench.pass(30_000);
  expect(bench.attempts.length).toBe(1);
  // The retry was scheduled before the attempt: whoever comes after us finds it due.
  const row = await bench.row();
  expect(row?.attempt).toBe(1);
  expect(row?.run_at_ms).toBeLessThanOrEqual(bench.began + 1_000);
});

test("a step that fails is tried again, later each time", async () => {
  const bench = await Bench.begin({ work: () => fail("unavailable"), release: finish });
  await bench.pass(16_000);
  const times = bench.attempts.map(([, atMs]) => Math.round(atMs / 1_000));
  expect(times).toEqual([0, 1, 3, 7, 15]);
  expect(await bench.row()).toMatchObject({ step: "work", problem: "unavailable_code" });
});

test("a fault that no retry can mend leads to giving up at once, with its code", async () => {
  let problem: string | undefined;
  const release: Steps["release"] = async (attempt) => {
    ({ problem } = attempt);
    return done();
  };
  const bench = await Bench.begin({ work: () => fail("broken"), release });
  await bench.pass(500);
  expect(problem).toBe("broken_code");
  expect(await bench.row()).toMatchObject({ outcome: "gave_up" });
});

test("after the deadline it gives up, and giving up never gives up", async () => {
  let failures = 3;
  const release = () => (failures-- > 0 ? fail("broken") : finish());
  const bench = await Bench.begin({ work: async () => wait(1_000), release }, 5_000);
  await bench.pass(60_000);
  const steps = bench.attempts.map(([name]) => name);
  expect(steps.lastIndexOf("work")).toBeLessThan(steps.indexOf("release"));
  expect(steps.filter((name) => name === "release").length).toBe(4);
  expect(await bench.row()).toMatchObject({ outcome: "gave_up", problem: "deadline" });
});

test("a wake that comes while a step runs makes it look again at once", async () => {
  let bench: Bench | undefined;
  const work: Steps["work"] = async () => {
    if (bench && bench.attempts.length === 1)
      await bench.ports.db.write((tx) => wakeWorkflow(tx, "sb_1"));
    return wait(50_000);
  };
  bench = await Bench.begin({ work, release: finish });
  await bench.pass(2_000);
  expect(bench.attempts.length).toBe(2);
});

test("a workflow that another took over records nothing more", async () => {
  let told = 0;
  let takenOver = false;
  let bench: Bench | undefined;
  const other = { name: "test", first: "work", giveUp: "release", deadlineMs: 60_000 } as const;
  const work: Steps["work"] = async (_, { clock }) => {
    if (!bench || takenOver) return wait(50_000);
    takenOver = true;
    const beginning = { id: "op_2", subject: "sb_1", nowMs: clock.now() };
    const steps = { work, release: finish };
    await bench.ports.db.write((tx) => startWorkflow(tx, { ...other, steps }, beginning));
    return done(async () => {
      told++;
    });
  };
  bench = await Bench.begin({ work, release: finish });
  await bench.pass(3_000);
  expect([takenOver, told]).toEqual([true, 0]);
  expect(await bench.row()).toMatchObject({ outcome: "superseded" });
});

test("the move to the next step and what it records stand or fall together", async () => {
  let refusals = 2;
  const work: Steps["work"] = async () =>
    next("release", async (tx) => {
      await tx
        .insertInto("host")
        .values({ id: "h", secret: new Uint8Array(), created_at_ms: 1 })
        .execute();
      if (refusals-- > 0) throw new Fault("unavailable", "not now");
    });
  const bench = await Bench.begin({ work, release: finish });
  await bench.pass(10_000);
  expect(bench.attempts.map(([name]) => name)).toEqual(["work", "work", "work", "release"]);
});
