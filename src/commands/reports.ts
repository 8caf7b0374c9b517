/**
 * What a guest part reports, written down. A report can only change commands of its own sandbox
 * that were sent to it; anything else it says is left without effect.
 */
import type { Tx } from "../db/open.ts";
import type { GuestMessage } from "../guest/guest.ts";
import type { VmRef } from "../vmm/vmm.ts";
import { type CommandRow, sentStates } from "./command.ts";
import { moveOf } from "./ends.ts";
import {
  changeCommand,
  findCommand,
  moveCommand,
  moveIfAccepted,
  stdinExtent,
  takeStdin,
} from "./store.ts";

export interface Report<Type extends GuestMessage["type"]> {
  message: Extract<GuestMessage, { type: Type }>;
  ref: VmRef;
  nowMs: number;
}

export async function recordStart(tx: Tx, report: Report<"started">): Promise<void> {
  const command = await sentTo(tx, report.message.command_id, report.ref);
  if (command?.state !== "launching") return;
  const { nowMs } = report;
  const changes = { started_at_ms: nowMs };
  await moveCommand(tx, { id: command.id, event: "started", reason: "started", nowMs, changes });
}

export async function recordEnd(tx: Tx, { message, ref, nowMs }: Report<"ended">): Promise<void> {
  const command = await sentTo(tx, message.command_id, ref);
  if (command) await moveIfAccepted(tx, moveOf(command, message, nowMs));
}

/** Another boot than it was sent to: whether it ran there cannot be told any more. */
export async function recordRefusal(tx: Tx, report: Report<"launch_refused">): Promise<void> {
  const { message, ref, nowMs } = report;
  const command = await sentTo(tx, message.command_id, ref);
  if (command?.state !== "launching") return;
  const { id } = command;
  if (message.reason === "wrong_boot")
    await moveCommand(tx, { id, event: "untold", reason: "not_established", nowMs });
  else await moveCommand(tx, { id, event: "refused", reason: "sandbox_stopped", nowMs });
}

export async function recordSignal(tx: Tx, report: Report<"signal_done">): Promise<void> {
  const command = await sentTo(tx, report.message.command_id, report.ref);
  if (command?.kill_request === report.message.request_id)
    await changeCommand(tx, command, { kill_done: 1 });
}

export async function recordStdin(tx: Tx, report: Report<"stdin_taken">): Promise<void> {
  const { message, ref } = report;
  const command = await sentTo(tx, message.command_id, ref);
  if (!command?.stdin || message.offset < command.stdin_taken) return;
  // Nobody can have taken more than was sent.
  if (message.offset > (await stdinExtent(tx, command)).endBytes) return;
  await takeStdin(tx, command, message.offset);
  if (message.closed) await changeCommand(tx, command, { stdin_closed: 1 });
}

async function sentTo(tx: Tx, id: string, ref: VmRef): Promise<CommandRow | undefined> {
  const command = await findCommand(tx, id);
  const ours = command?.sandbox_id === ref.sandbox && command.run === ref.run;
  return ours && sentStates.includes(command.state) ? command : undefined;
}
