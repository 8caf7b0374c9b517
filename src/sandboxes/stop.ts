/**
 * Stop: asks the guest to end its work, waits, then ends the VM. Reports how the work ended apart
 * from how the final save went; neither fails the other.
 */
import { Fault } from "../core/fault.ts";
import { makeId } from "../core/ids.ts";
import { accepts } from "../core/moves.ts";
import { secondMs } from "../core/units.ts";
import type { Tx } from "../db/open.ts";
import { startWorkflow } from "../workflow/store.ts";
import {
  type Attempt,
  done,
  type Looking,
  next,
  type Outcome,
  type Workflow,
  wait,
} from "../workflow/workflow.ts";
import type { SandboxPorts } from "./ports.ts";
import { type LastStop, type PhaseReason, type SandboxRow, sandboxMoves } from "./sandbox.ts";
import * as store from "./store.ts";

const endPollMs = 2_000;
const drainPollMs = 200;
/** How long the guest has for its work, multiplied by the VMM's time scale. */
export const workLimitMs = 30 * secondMs;

type Step = "awaitEnd" | "kill";

/** Who talks to the guest part sees the phase and asks it to power off; this waits for the effect. */
export const stopSandbox: Workflow<SandboxPorts, Step> = {
  name: "stopSandbox",
  first: "awaitEnd",
  giveUp: "kill",
  deadlineMs: workLimitMs,
  steps: { awaitEnd, kill },
};

export type StopPorts = Pick<SandboxPorts, "clock" | "random" | "driver">;

/**
 * Asks for a stop; one that is stopped or being stopped is left alone.
 * @throws Fault `conflict` it is being deleted or failed.
 */
export async function requestStop(
  tx: Tx,
  ports: StopPorts,
  sandbox: SandboxRow,
): Promise<{ operation: string | undefined }> {
  if (["stopped", "stopping", "failed"].includes(sandbox.phase)) return { operation: undefined };
  if (!accepts(sandboxMoves, sandbox.phase, "stop"))
    throw new Fault("conflict", `sandbox "${sandbox.name}" is ${sandbox.phase}`, {
      code: `sandbox_${sandbox.phase}`,
      details: { phase: sandbox.phase },
    });
  const nowMs = ports.clock.now();
  const { id: subject } = sandbox;
  await store.moveSandbox(tx, { id: subject, event: "stop", reason: "stop_requested", nowMs });
  const { timeScale } = ports.driver;
  const id = makeId("operation", nowMs, ports.random.bytes(10));
  await startWorkflow(tx, stopSandbox, { id, subject, nowMs, timeScale });
  return { operation: id };
}

async function awaitEnd(
  { subject }: Attempt,
  ports: Looking<SandboxPorts>,
): Promise<Outcome<Step>> {
  const sandbox = await store.getSandbox(ports.db.read, subject);
  // A guest part that never answered holds no work that could be asked to end.
  if (sandbox.guest_boot_id === null) return next("kill");
  const sight = await ports.vmm.look(store.refOf(sandbox));
  if (sight.state === "alive") return wait(endPollMs);
  // Its last words may still be on their way into the records.
  if (ports.sightings.isListening(store.refOf(sandbox))) return wait(drainPollMs);
  const asked = sight.state === "ended" && sight.how === "guest_shutdown";
  return stopped(sandbox, ports, asked ? "ended" : "unknown");
}

async function kill({ subject }: Attempt, ports: Looking<SandboxPorts>): Promise<Outcome<Step>> {
  const sandbox = await store.getSandbox(ports.db.read, subject);
  await ports.vmm.kill(store.refOf(sandbox));
  return stopped(sandbox, ports, sandbox.guest_boot_id === null ? "ended" : "killed");
}

function stopped(
  sandbox: SandboxRow,
  ports: Looking<SandboxPorts>,
  outcome: LastStop["work"]["outcome"],
): Outcome<Step> {
  const nowMs = ports.clock.now();
  return done(async (tx) => {
    const reason = "stopped_on_request";
    const last_stop = stopRecord({ atMs: nowMs, reason, outcome });
    await store.moveSandbox(tx, {
      id: sandbox.id,
      event: "stopped",
      reason,
      nowMs,
      changes: { last_stop },
    });
    await ports.runEnded(tx, { sandbox, reason, nowMs, bootsAgain: false });
  });
}

/** The column's text. */
export function stopRecord(end: {
  atMs: number;
  reason: PhaseReason;
  outcome: LastStop["work"]["outcome"];
}): string {
  const record: LastStop = {
    at_ms: end.atMs,
    reason: end.reason,
    work: { outcome: end.outcome },
    final_save: { outcome: "not_configured", save_id: null, unsaved_since: null },
  };
  return JSON.stringify(record);
}
