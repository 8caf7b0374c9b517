/**
 * Talks to the guest part of every VM that should have one: one conversation per run, opened again
 * whenever it ends, for as long as the process lives. What is said is decided from the records.
 */
import { Fault } from "../core/fault.ts";
import { secondMs } from "../core/units.ts";
import { phasesWithVm } from "../sandboxes/sandbox.ts";
import { findSandbox, refOf, sandboxesWithVm } from "../sandboxes/store.ts";
import { topics } from "../system/signals.ts";
import type { VmRef } from "../vmm/vmm.ts";
import { Conversation } from "./conversation.ts";
import type { CommandPorts } from "./ports.ts";

const lookPeriodMs = 2 * secondMs;
const reopenFirstMs = 200;
const reopenMaxMs = 3 * secondMs;

export async function converseWithAll(ports: CommandPorts): Promise<never> {
  const talking = new Set<string>();
  while (true) {
    const signal = ports.signals.wait(topics.sandboxes, lookPeriodMs);
    for (const sandbox of await sandboxesWithVm(ports.db.read)) {
      const ref = refOf(sandbox);
      const name = `${ref.sandbox}/${ref.run}`;
      if (talking.has(name)) continue;
      talking.add(name);
      void converseUntilGone(ports, ref).finally(() => talking.delete(name));
    }
    await signal;
  }
}

/** Until the run is over. */
async function converseUntilGone(ports: CommandPorts, ref: VmRef): Promise<void> {
  let pauseMs = reopenFirstMs;
  while (await isExpected(ports, ref)) {
    const spoke = await converseOnce(ports, ref);
    pauseMs = spoke ? reopenFirstMs : Math.min(pauseMs * 2, reopenMaxMs);
    await ports.clock.sleep(pauseMs);
  }
  ports.sightings.forget(ref);
}

async function isExpected({ db }: CommandPorts, ref: VmRef): Promise<boolean> {
  const sandbox = await findSandbox(db.read, ref.sandbox);
  return sandbox?.run === ref.run && phasesWithVm.includes(sandbox.phase);
}

/** Returns whether the guest part said anything. */
async function converseOnce(ports: CommandPorts, ref: VmRef): Promise<boolean> {
  let isOpen = false;
  try {
    const channel = await ports.guests.open(ref);
    isOpen = true;
    ports.sightings.setListening(ref, true);
    try {
      return await new Conversation(ports, ref, channel).run();
    } finally {
      channel.close();
      ports.sightings.setListening(ref, false);
      ports.signals.notify([topics.sandboxes, topics.workflows]);
    }
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    // One that boots or is gone is tried again and again: that is no news.
    if (isOpen)
      ports.log.info("a guest part's channel ended", { sandbox: ref.sandbox, why: error.message });
    return false;
  }
}
