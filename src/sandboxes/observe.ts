/**
 * What became of VMs that nobody asked to end, and of those that no record knows. Runs by signal
 * and by period; never ends a VM of a run that is on record, nor removes a disk not known deleted.
 */

import { Fault } from "../core/fault.ts";
import { accepts } from "../core/moves.ts";
import { secondMs } from "../core/units.ts";
import type { Tx } from "../db/open.ts";
import { topics } from "../system/signals.ts";
import type { VmEnd, VmRef } from "../vmm/vmm.ts";
import type { SandboxPorts } from "./ports.ts";
import {
  holdsRoom,
  type PhaseReason,
  phasesObserved,
  rebootsMax,
  rebootWindowMs,
  type SandboxRow,
  sandboxMoves,
} from "./sandbox.ts";
import { begin } from "./start.ts";
import { stopRecord } from "./stop.ts";
import * as store from "./store.ts";

const observePeriodMs = 2 * secondMs;
const sweepPeriodMs = 60 * secondMs;
/** A guest part that says nothing for so long, times the VMM's scale, is not vouched for. */
export const silenceMaxMs = 30 * secondMs;
/** Once one was silent so long, its VMM is asked whether it has halted the VM, and so often again. */
const haltAskMs = 10 * secondMs;
/** How long what a guest part said last may take into the records once its VM is gone. */
const drainMaxMs = 10 * secondMs;

/** Observes for as long as the process lives. */
export async function observeVms(ports: SandboxPorts): Promise<never> {
  const endedSince = new Map<string, number>();
  let sweptAt = Number.NEGATIVE_INFINITY;
  while (true) {
    const signal = ports.signals.wait(topics.sandboxes, observePeriodMs);
    await withoutFaults(ports, "observing VMs", () => observeAll(ports, endedSince));
    if (ports.clock.monotonic() - sweptAt >= sweepPeriodMs) {
      sweptAt = ports.clock.monotonic();
      await withoutFaults(ports, "looking for orphans", () => reapOrphans(ports));
    }
    await signal;
    // Signals come in bursts; one look serves them all.
    await ports.clock.sleep(100);
  }
}

/** A fault leaves things as they are: the next round looks again. */
async function withoutFaults(
  { log }: SandboxPorts,
  what: string,
  work: () => Promise<void>,
): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    log.error(`${what} failed`, error);
  }
}

async function observeAll(ports: SandboxPorts, endedSince: Map<string, number>): Promise<void> {
  const silent: SandboxRow[] = [];
  for (const sandbox of await store.sandboxesIn(ports.db.read, phasesObserved)) {
    const ref = store.refOf(sandbox);
    const sight = await ports.vmm.look(ref);
    if (sight.state === "alive") {
      silent.push(sandbox);
      continue;
    }
    const since = endedSince.get(sandbox.id) ?? ports.clock.monotonic();
    endedSince.set(sandbox.id, since);
    const draining = ports.clock.monotonic() - since < drainMaxMs;
    if (draining && ports.sightings.isListening(ref)) continue;
    endedSince.delete(sandbox.id);
    const how = sight.state === "absent" ? "died" : sight.how;
    await ports.db.write((tx) => recordEnd(tx, ports, { ref, how }));
  }
  // Side by side: a VMM that gives no answer holds up no other.
  await Promise.all(silent.map((sandbox) => observeSilence(ports, sandbox)));
}

async function observeSilence(ports: SandboxPorts, sandbox: SandboxRow): Promise<void> {
  const ref = store.refOf(sandbox);
  const { sightings, driver } = ports;
  const silentMs = sightings.silentForMs(ref);
  if (sandbox.phase === "paused" && (sightings.lastHeardMs(ref) ?? 0) > sandbox.phase_at_ms)
    return moveOn(ports, sandbox, { event: "seen", reason: "guest_answered" });
  if (silentMs < haltAskMs) return;
  if (await isHalted(ports, ref)) {
    sightings.excuse(ref);
    return moveOn(ports, sandbox, { event: "halt", reason: "host_disk_full" });
  }
  if (silentMs >= silenceMaxMs * driver.timeScale)
    await moveOn(ports, sandbox, { event: "silence", reason: "guest_silent" });
}

/** A VMM that cannot be asked vouches for nothing: its guest is taken for silent. */
async function isHalted({ vmm }: SandboxPorts, ref: VmRef): Promise<boolean> {
  try {
    return (await vmm.resume(ref)) === "halted";
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    return false;
  }
}

interface Step {
  event: "seen" | "halt" | "silence";
  reason: PhaseReason;
}

/** Where it is as it was when it was looked at, and its phase takes the event. */
async function moveOn(ports: SandboxPorts, seen: SandboxRow, step: Step): Promise<void> {
  if (!accepts(sandboxMoves, seen.phase, step.event)) return;
  const nowMs = ports.clock.now();
  await ports.db.write(async (tx) => {
    const present = await store.findSandbox(tx, seen.id);
    if (present?.phase !== seen.phase || present.run !== seen.run) return;
    await store.moveSandbox(tx, { id: seen.id, nowMs, ...step });
  });
}

interface Ending {
  ref: VmRef;
  how: VmEnd;
}

/** Looks again inside the transaction: a stop or delete may have taken over meanwhile. */
async function recordEnd(tx: Tx, ports: SandboxPorts, { ref, how }: Ending): Promise<void> {
  const sandbox = await store.findSandbox(tx, ref.sandbox);
  if (!sandbox || sandbox.run !== ref.run) return;
  if (!phasesObserved.some((phase) => phase === sandbox.phase)) return;
  const nowMs = ports.clock.now();
  const reboots = how === "guest_reboot" || how === "guest_panic";
  if (reboots && (await bootAgain(tx, ports, { sandbox, how, nowMs }))) return;
  const reason = reboots ? "reboot_loop" : how === "guest_shutdown" ? "guest_shutdown" : "vm_died";
  const outcome = how === "guest_shutdown" ? "ended" : "unknown";
  const last_stop = stopRecord({ atMs: nowMs, reason, outcome });
  const changes = { last_stop };
  await store.moveSandbox(tx, { id: sandbox.id, event: "vmEnded", reason, nowMs, changes });
  await ports.runEnded(tx, { sandbox, reason, nowMs, bootsAgain: false });
}

interface Reboot {
  sandbox: SandboxRow;
  how: VmEnd;
  nowMs: number;
}

/** The same disk, the next run; a few times a minute at most. */
async function bootAgain(
  tx: Tx,
  ports: SandboxPorts,
  { sandbox, how, nowMs }: Reboot,
): Promise<boolean> {
  const earlier = (JSON.parse(sandbox.reboots) as number[]).filter(
    (atMs) => nowMs - atMs < rebootWindowMs,
  );
  if (earlier.length >= rebootsMax) return false;
  const reason: PhaseReason = how === "guest_panic" ? "guest_panicked" : "guest_rebooted";
  const reboots = JSON.stringify([...earlier, nowMs]);
  await begin(tx, ports, { sandbox, event: "reboot", reason, reboots });
  await ports.runEnded(tx, { sandbox, reason, nowMs, bootsAgain: true });
  return true;
}

/** VMs of this installation that no record expects, runs that are over, disks known deleted. */
async function reapOrphans(ports: SandboxPorts): Promise<void> {
  for (const ref of await ports.vmm.list()) {
    const sandbox = await store.findSandbox(ports.db.read, ref.sandbox);
    if (sandbox?.run === ref.run && holdsRoom(sandbox)) continue;
    const { state } = await ports.vmm.look(ref);
    if (state === "alive")
      ports.log.warn("ending a VM that no record expects", { sandbox: ref.sandbox, run: ref.run });
    // Also one that ended: a boot of it may still be in flight, and only a kill is final.
    await ports.vmm.kill(ref);
    await ports.vmm.forget(ref);
    ports.sightings.forget(ref);
  }
  for (const id of await ports.disks.list()) {
    const sandbox = await store.findSandbox(ports.db.read, id);
    if (sandbox?.phase === "deleted") await ports.disks.remove(id);
    if (!sandbox) ports.log.warn("a disk that no record knows is left alone", { sandbox: id });
  }
}
