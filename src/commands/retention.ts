/**
 * Forgets what ended long ago: commands with their idempotency keys and output, operations, events
 * and deleted sandboxes. In small steps, so that nobody waits for it; never what is still referred to.
 */
import { Fault } from "../core/fault.ts";
import { makeId } from "../core/ids.ts";
import { minuteMs } from "../core/units.ts";
import { dropEventsBefore } from "../events/store.ts";
import { forgetSandboxes, sandboxesDeletedBefore } from "../sandboxes/store.ts";
import { forgetWorkflows, workflowsFinishedBefore } from "../workflow/store.ts";
import { commandsWithOutput, removeOutput } from "./output.ts";
import type { CommandPorts } from "./ports.ts";
import { commandsEndedBefore, forgetCommands, knownCommands } from "./store.ts";

const roundPeriodMs = 10 * minuteMs;
const pauseMs = 100;
/** Records that one step looks at or removes. */
const stepMax = 200;

/** Forgets for as long as the process lives. Cut off anywhere, the next round goes on from there. */
export async function forgetOldRecords(ports: CommandPorts): Promise<never> {
  while (true) {
    try {
      await forgetOnce(ports);
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      ports.log.error("forgetting old records failed", error);
    }
    await ports.clock.sleep(roundPeriodMs);
  }
}

/** Commands go before their sandbox, and their records before their output: none shows a part. */
async function forgetOnce(ports: CommandPorts): Promise<void> {
  const beforeMs = ports.clock.now() - ports.recordsKeptMs;
  await inSteps(ports, () => forgetSomeCommands(ports, beforeMs));
  await inSteps(ports, () => forgetSomeWorkflows(ports, beforeMs));
  await inSteps(ports, () => forgetSomeEvents(ports, beforeMs));
  await walk(ports, (after) => removeSomeOutput(ports, { beforeMs, after }));
  await walk(ports, (after) => forgetSomeSandboxes(ports, { beforeMs, after }));
}

/** Until a step finds nothing more. */
async function inSteps({ clock }: CommandPorts, step: () => Promise<boolean>): Promise<void> {
  while (await step()) await clock.sleep(pauseMs);
}

/** Each step goes on behind the id that the one before it ended with. */
async function walk(
  ports: CommandPorts,
  step: (after: string) => Promise<string | undefined>,
): Promise<void> {
  let after: string | undefined = "";
  await inSteps(ports, async () => {
    after = await step(after ?? "");
    return after !== undefined;
  });
}

async function forgetSomeCommands({ db }: CommandPorts, beforeMs: number): Promise<boolean> {
  const ids = await commandsEndedBefore(db.read, beforeMs, stepMax);
  if (ids.length > 0) await db.write((tx) => forgetCommands(tx, ids));
  return ids.length > 0;
}

async function forgetSomeWorkflows({ db }: CommandPorts, beforeMs: number): Promise<boolean> {
  const ids = await workflowsFinishedBefore(db.read, beforeMs, stepMax);
  if (ids.length > 0) await db.write((tx) => forgetWorkflows(tx, ids));
  return ids.length > 0;
}

async function forgetSomeEvents({ db }: CommandPorts, beforeMs: number): Promise<boolean> {
  return (await db.write((tx) => dropEventsBefore(tx, beforeMs, stepMax))) > 0;
}

interface Walk {
  beforeMs: number;
  /** The id the step before ended with. */
  after: string;
}

/** Output whose command is not on record. Returns where to go on. */
async function removeSomeOutput(
  { db, output }: CommandPorts,
  { beforeMs, after }: Walk,
): Promise<string | undefined> {
  // Ids sort by time, and what was accepted later is on record still.
  const before = makeId("command", beforeMs, new Uint8Array(10));
  const ids = await commandsWithOutput(output.read, { after, before, limit: stepMax });
  if (ids.length === 0) return undefined;
  const known = await knownCommands(db.read, ids);
  for (const id of ids) if (!known.has(id)) await removeOutput(output, id);
  return ids.at(-1);
}

/** One that left a VM or a disk behind stays on record until the sweep has removed them. */
async function forgetSomeSandboxes(
  { db, vmm, disks }: CommandPorts,
  { beforeMs, after }: Walk,
): Promise<string | undefined> {
  const ids = await sandboxesDeletedBefore(db.read, { beforeMs, after, limit: stepMax });
  if (ids.length === 0) return undefined;
  const vms = await vmm.list();
  const left = new Set([...vms.map(({ sandbox }) => sandbox), ...(await disks.list())]);
  const gone = ids.filter((id) => !left.has(id));
  if (gone.length > 0) await db.write((tx) => forgetSandboxes(tx, gone));
  return ids.at(-1);
}
