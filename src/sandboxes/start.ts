/**
 * Start: a disk, a VM, and a guest part that answers. A disk that once existed is never made again.
 */
import { Fault } from "../core/fault.ts";
import { makeId } from "../core/ids.ts";
import { accepts } from "../core/moves.ts";
import { minuteMs } from "../core/units.ts";
import type { Tx } from "../db/open.ts";
import type { VmSpec } from "../vmm/vmm.ts";
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
import { checkRoomToStart } from "./capacity.ts";
import type { SandboxPorts } from "./ports.ts";
import { type PhaseReason, type SandboxRow, type StartedFrom, sandboxMoves } from "./sandbox.ts";
import * as store from "./store.ts";
import { countBooting } from "./use.ts";

const slotPollMs = 5_000;
const guestPollMs = 2_000;
/** Multiplied by the VMM's time scale. Covers the wait for a boot slot, too. */
const startDeadlineMs = 3 * minuteMs;

type Step = "makeDisk" | "takeSlot" | "boot" | "awaitGuest" | "release";

export const startSandbox: Workflow<SandboxPorts, Step> = {
  name: "startSandbox",
  first: "makeDisk",
  giveUp: "release",
  deadlineMs: startDeadlineMs,
  steps: { makeDisk, takeSlot, boot, awaitGuest, release },
};

export type StartPorts = Pick<SandboxPorts, "clock" | "random" | "limits" | "driver">;

/** What a person's or a command's wish to start leads to. */
export interface Started {
  /** The operation that is under way; undefined when it runs already. */
  operation: string | undefined;
}

/**
 * Asks for a start; one that starts or runs already is left alone.
 * @throws Fault `conflict` it is being stopped or deleted; `quota`, `full` no room.
 */
export async function requestStart(
  tx: Tx,
  ports: StartPorts,
  sandbox: SandboxRow,
): Promise<Started> {
  if (["starting", "running", "paused", "lost"].includes(sandbox.phase))
    return { operation: undefined };
  if (!accepts(sandboxMoves, sandbox.phase, "start"))
    throw new Fault("conflict", `sandbox "${sandbox.name}" is ${sandbox.phase}`, {
      code: `sandbox_${sandbox.phase}`,
      hint: "wait until it is stopped, then start it",
      details: { phase: sandbox.phase },
    });
  await checkRoomToStart(tx, ports, sandbox);
  return {
    operation: await begin(tx, ports, { sandbox, event: "start", reason: "start_requested" }),
  };
}

export interface Beginning {
  sandbox: SandboxRow;
  event: "start" | "reboot";
  reason: PhaseReason;
  reboots?: string;
}

/** Moves to `starting` as the next run and starts the workflow. Room was checked or is still held. */
export async function begin(
  tx: Tx,
  ports: Pick<StartPorts, "clock" | "random" | "driver">,
  { sandbox, event, reason, reboots = "[]" }: Beginning,
): Promise<string> {
  const nowMs = ports.clock.now();
  const started_from = JSON.stringify(originOf(sandbox, event === "reboot" ? nowMs : undefined));
  const run = sandbox.run + 1;
  const changes = { run, guest_boot_id: null, guest_seen_at_ms: null, reboots, started_from };
  await store.moveSandbox(tx, { id: sandbox.id, event, reason, nowMs, changes });
  const { timeScale } = ports.driver;
  const id = makeId("operation", nowMs, ports.random.bytes(10));
  await startWorkflow(tx, startSandbox, { id, subject: sandbox.id, nowMs, timeScale });
  return id;
}

/** The kept disk is as it was when its last run ended: then the sandbox came into its phase. */
function originOf(sandbox: SandboxRow, rebootedAtMs: number | undefined): StartedFrom {
  if (!sandbox.disk_made)
    return { kind: "base", id: sandbox.base_digest, as_of_ms: sandbox.base_built_at_ms };
  return { kind: "local_disk", id: sandbox.id, as_of_ms: rebootedAtMs ?? sandbox.phase_at_ms };
}

async function makeDisk(
  { subject }: Attempt,
  ports: Looking<SandboxPorts>,
): Promise<Outcome<Step>> {
  const sandbox = await store.getSandbox(ports.db.read, subject);
  const disk = await ports.disks.look(subject);
  if (sandbox.disk_made) {
    if (disk === "ready") return next("takeSlot");
    throw new Fault("broken", `the disk of "${sandbox.name}" is missing`, { code: "disk_missing" });
  }
  if (disk === "absent") {
    const base = (await ports.images.bases()).find(({ digest }) => digest === sandbox.base_digest);
    if (!base)
      throw new Fault("missing", `base ${sandbox.base_name} is not on this host`, {
        code: "base_missing",
      });
    await ports.disks.make(subject, { basePath: base.path, sizeBytes: sandbox.disk_bytes });
  }
  return next("takeSlot", (tx) => store.changeSandbox(tx, subject, { disk_made: 1 }));
}

/** Emulated guests share few cores: more boots at once would only make all of them late. */
async function takeSlot(
  { subject }: Attempt,
  ports: Looking<SandboxPorts>,
): Promise<Outcome<Step>> {
  const { bootSlots } = ports.driver;
  const starting = { id: subject, phase: "starting" as const };
  if ((await countBooting(ports.db.read)) >= bootSlots)
    return wait(slotPollMs, (tx) => store.explainPhase(tx, starting, "waiting_for_boot_slot"));
  return next("boot", async (tx) => {
    if ((await countBooting(tx)) >= bootSlots)
      throw new Fault("unavailable", "another boot took the slot");
    await store.explainPhase(tx, starting, "booting");
  });
}

async function boot({ subject }: Attempt, ports: Looking<SandboxPorts>): Promise<Outcome<Step>> {
  const sandbox = await store.getSandbox(ports.db.read, subject);
  // One run is one boot: a VM whose guest answered is never booted again, even where it is gone.
  if (sandbox.guest_boot_id !== null) return next("awaitGuest");
  const sight = await ports.vmm.look(store.refOf(sandbox));
  if (sight.state === "absent") await ports.vmm.boot(await specOf(sandbox, ports));
  return next("awaitGuest");
}

async function specOf(
  sandbox: SandboxRow,
  { disks, images }: Pick<SandboxPorts, "disks" | "images">,
): Promise<VmSpec> {
  return {
    ref: store.refOf(sandbox),
    vcpus: sandbox.vcpus,
    memoryBytes: sandbox.memory_bytes,
    diskPath: disks.pathOf(sandbox.id),
    boot: await images.bootFiles(),
    hostname: sandbox.name,
    machineId: sandbox.machine_id,
  };
}

/** The guest part's answer is recorded by whoever talks to it; that also wakes this step. */
async function awaitGuest(
  { subject }: Attempt,
  ports: Looking<SandboxPorts>,
): Promise<Outcome<Step>> {
  const sandbox = await store.getSandbox(ports.db.read, subject);
  const nowMs = ports.clock.now();
  if (sandbox.guest_boot_id !== null)
    return done((tx) =>
      store.moveSandbox(tx, {
        id: subject,
        event: "seen",
        reason: "guest_answered",
        nowMs,
        changes: { started_at_ms: nowMs },
      }),
    );
  const sight = await ports.vmm.look(store.refOf(sandbox));
  if (sight.state === "alive") return wait(guestPollMs);
  if (sight.state === "absent" || sight.how !== "launch_failed")
    throw new Fault("broken", `the VM of "${sandbox.name}" ended in its boot`, {
      code: "vm_ended_in_boot",
    });
  throw new Fault("broken", `the VM of "${sandbox.name}" did not start: ${sight.detail}`, {
    code: "vm_refused",
  });
}

/** Giving up: nothing may be left that could still boot. */
async function release(
  { subject, problem }: Attempt,
  ports: Looking<SandboxPorts>,
): Promise<Outcome<Step>> {
  const sandbox = await store.getSandbox(ports.db.read, subject);
  await ports.vmm.kill(store.refOf(sandbox));
  const nowMs = ports.clock.now();
  const reason = reasonOf(problem);
  return done(async (tx) => {
    await store.moveSandbox(tx, { id: subject, event: "fail", reason, nowMs });
    await ports.runEnded(tx, { sandbox, reason, nowMs, bootsAgain: false });
  });
}

const reasonsByProblem: Readonly<Record<string, PhaseReason>> = {
  disk_missing: "disk_missing",
  base_missing: "base_missing",
  vm_ended_in_boot: "vm_ended_in_boot",
  vm_refused: "vm_refused",
  full: "host_full",
  disk_full: "host_full",
  deadline: "guest_never_answered",
};

function reasonOf(problem: string | undefined): PhaseReason {
  return reasonsByProblem[problem ?? ""] ?? "vm_refused";
}
