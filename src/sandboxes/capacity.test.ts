import { expect, test } from "bun:test";
import fc from "fast-check";
import { Fault } from "../core/fault.ts";
import { GiB } from "../core/units.ts";
import { type Db, openState, type Tx } from "../db/open.ts";
import { openBytes } from "../db/sqlite.ts";
import { checkRoomToCreate, checkRoomToStart } from "./capacity.ts";
import { type PhaseReason, phasesWithVm, type SandboxPhase } from "./sandbox.ts";
import type { Limits, Size } from "./size.ts";
import { insertSandbox } from "./store.ts";

const size: Size = { name: "small", vcpus: 1, memoryBytes: GiB, diskBytes: 10 * GiB };
const plenty: Limits = {
  sandboxesTotal: 1_000,
  sandboxesRunning: 1_000,
  vcpusRunning: 1_000,
  memoryRunningBytes: 1_000 * GiB,
  diskTotalBytes: 10_000 * GiB,
  machineMemoryBytes: 1_000 * GiB,
};
const driver = {
  driver: "simulated",
  acceleration: "kvm",
  why: "",
  timeScale: 1,
  bootSlots: 1,
  overheadBytes: GiB / 4,
} as const;

type State = readonly [SandboxPhase, PhaseReason];

async function opened(states: readonly State[]): Promise<Db> {
  const sqlite = await openBytes(undefined);
  const db = openState({ sqlite, committed: () => {}, gather: async () => {} });
  await db.write(async (tx) => {
    for (const [index, [phase, phase_reason]] of states.entries()) {
      const id = `sb_${index}`;
      await insertSandbox(tx, sandbox(id));
      await tx.updateTable("sandboxes").set({ phase, phase_reason }).where("id", "=", id).execute();
    }
  });
  return db;
}

const sandbox = (id: string) => ({
  id,
  name: id.replace("_", "-"),
  size: size.name,
  vcpus: size.vcpus,
  memory_bytes: size.memoryBytes,
  disk_bytes: size.diskBytes,
  base_digest: "",
  base_name: "",
  base_built_at_ms: 0,
  labels: "{}",
  machine_id: "",
  created_at_ms: 0,
});

/** The metric that refused, "memory" for a full machine, or undefined. */
async function refusal(db: Db, check: (tx: Tx) => Promise<void>): Promise<string | undefined> {
  try {
    await db.write(check);
    return undefined;
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    const quota = error.details?.["quota"] as { metric: string } | undefined;
    return quota?.metric ?? (error.kind === "full" ? "memory" : error.kind);
  }
}

const start = (limits: Partial<Limits>) => (tx: Tx) =>
  checkRoomToStart(
    tx,
    { limits: { ...plenty, ...limits }, driver },
    { vcpus: 1, memory_bytes: GiB },
  );
const create = (limits: Partial<Limits>) => (tx: Tx) =>
  checkRoomToCreate(tx, { ...plenty, ...limits }, size);

const state = fc.constantFrom<State>(
  ["stopped", "created"],
  ["starting", "booting"],
  ["running", "guest_answered"],
  ["stopping", "stop_requested"],
  ["lost", "guest_silent"],
  ["failed", "vm_refused"],
  ["deleting", "delete_requested"],
  ["deleting", "removing_disk"],
  ["deleted", "deleted"],
);
const hasVm = ([phase, reason]: State): boolean =>
  phasesWithVm.includes(phase) || reason === "delete_requested";

test("each limit holds for exactly what has a VM, or exists", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(state, { maxLength: 12 }), async (states) => {
      const db = await opened(states);
      const vms = states.filter(hasVm).length;
      const all = states.filter(([phase]) => phase !== "deleted").length;
      const at = async (limit: (room: number) => Partial<Limits>, used: number, metric: string) => {
        const check = metric.includes("total") ? create : start;
        expect(await refusal(db, check(limit(used)))).toBe(metric);
        expect(await refusal(db, check(limit(used + 1)))).toBeUndefined();
      };
      await at((room) => ({ sandboxesRunning: room }), vms, "sandboxes.running");
      await at((room) => ({ vcpusRunning: room }), vms, "vcpus.running");
      await at((room) => ({ memoryRunningBytes: room * GiB }), vms, "memory.running");
      await at((room) => ({ machineMemoryBytes: room * GiB * 1.25 }), vms, "memory");
      await at((room) => ({ sandboxesTotal: room }), all, "sandboxes.total");
      await at((room) => ({ diskTotalBytes: room * 10 * GiB }), all, "disk.total");
    }),
    { numRuns: 20 },
  );
});

test("a refusal names the metric, the limit, the use, who uses it and when it clears", async () => {
  const db = await opened([["running", "guest_answered"]]);
  const problem = (check: (tx: Tx) => Promise<void>): Promise<Fault> =>
    db.write(check).then(
      () => Promise.reject(new Error("it was not refused")),
      (fault: Fault) => fault,
    );
  expect(await problem(start({ memoryRunningBytes: GiB }))).toMatchObject({
    kind: "quota",
    code: "quota_exceeded",
    retryAfterSeconds: 30,
    details: {
      quota: {
        metric: "memory.running",
        limit: GiB,
        used: GiB,
        used_by: { sandboxes: 1 },
        clears_when: "a running sandbox stops",
      },
    },
  });
  expect(await problem(start({ machineMemoryBytes: 2 * GiB }))).toMatchObject({
    kind: "full",
    code: "capacity_exceeded",
    details: {
      memory: { limit_bytes: 2 * GiB, used_bytes: 1.25 * GiB, wanted_bytes: 1.25 * GiB },
    },
  });
});

test("of two that ask for the last room at once, one gets it", async () => {
  const db = await opened([
    ["stopped", "created"],
    ["stopped", "created"],
  ]);
  const take = (id: string) =>
    refusal(db, async (tx) => {
      await start({ sandboxesRunning: 1 })(tx);
      await tx.updateTable("sandboxes").set({ phase: "starting" }).where("id", "=", id).execute();
    });
  expect(await Promise.all([take("sb_0"), take("sb_1")])).toEqual([undefined, "sandboxes.running"]);
});
