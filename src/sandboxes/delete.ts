/** Delete: ends the VM, then destroys the disk. Works in every phase and is finished only then. */
import { Fault } from "../core/fault.ts";
import { makeId } from "../core/ids.ts";
import { minuteMs } from "../core/units.ts";
import type { Tx } from "../db/open.ts";
import { startWorkflow } from "../workflow/store.ts";
import {
  type Attempt,
  done,
  type Looking,
  next,
  type Outcome,
  type Workflow,
} from "../workflow/workflow.ts";
import type { SandboxPorts } from "./ports.ts";
import { holdsRoom, type SandboxRow, withoutVm } from "./sandbox.ts";
import * as store from "./store.ts";

type Step = "kill" | "removeDisk" | "forget";

export const deleteSandbox: Workflow<SandboxPorts, Step> = {
  name: "deleteSandbox",
  first: "kill",
  giveUp: "kill",
  deadlineMs: 10 * minuteMs,
  steps: { kill, removeDisk, forget },
};

/**
 * Asks for the deletion; one that is being deleted is left alone.
 * @throws Fault `missing` it is deleted.
 */
export async function requestDelete(
  tx: Tx,
  ports: Pick<SandboxPorts, "clock" | "random">,
  sandbox: SandboxRow,
): Promise<{ operation: string | undefined }> {
  if (sandbox.phase === "deleted")
    throw new Fault("missing", `sandbox "${sandbox.id}" is deleted`, { code: "sandbox_not_found" });
  if (sandbox.phase === "deleting") return { operation: undefined };
  const nowMs = ports.clock.now();
  const { id: subject } = sandbox;
  const reason = holdsRoom(sandbox) ? "delete_requested" : withoutVm;
  await store.moveSandbox(tx, { id: subject, event: "delete", reason, nowMs });
  const id = makeId("operation", nowMs, ports.random.bytes(10));
  await startWorkflow(tx, deleteSandbox, { id, subject, nowMs });
  return { operation: id };
}

async function kill({ subject }: Attempt, ports: Looking<SandboxPorts>): Promise<Outcome<Step>> {
  const sandbox = await store.getSandbox(ports.db.read, subject);
  if (sandbox.run > 0) await ports.vmm.kill(store.refOf(sandbox));
  const deleting = { id: subject, phase: "deleting" as const };
  return next("removeDisk", (tx) => store.explainPhase(tx, deleting, withoutVm));
}

async function removeDisk(
  { subject }: Attempt,
  ports: Looking<SandboxPorts>,
): Promise<Outcome<Step>> {
  await ports.disks.remove(subject);
  return next("forget");
}

async function forget({ subject }: Attempt, ports: Looking<SandboxPorts>): Promise<Outcome<Step>> {
  const sandbox = await store.getSandbox(ports.db.read, subject);
  if (sandbox.run > 0) await ports.vmm.forget(store.refOf(sandbox));
  const nowMs = ports.clock.now();
  return done(async (tx) => {
    const changes = { deleted_at_ms: nowMs };
    const reason = "deleted";
    await store.moveSandbox(tx, { id: subject, event: "deleted", reason, nowMs, changes });
    await ports.runEnded(tx, { sandbox, reason, nowMs, bootsAgain: false });
  });
}
