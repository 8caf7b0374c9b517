/**
 * How commands end: by the guest part's report, or with their sandbox's run. What was sent and
 * never reported back is `unknown`; nothing is guessed and nothing is sent twice.
 */
import type { Tx } from "../db/open.ts";
import type { CommandEnd, GuestMessage } from "../guest/guest.ts";
import type { RunEnd } from "../sandboxes/ports.ts";
import type { PhaseReason } from "../sandboxes/sandbox.ts";
import type { CommandEvent, CommandRow, StateReason } from "./command.ts";
import { liveCommandsOf, type Move, moveCommand } from "./store.ts";

export type EndReport = Extract<GuestMessage, { type: "ended" }>;

/** The move a report leads to. A signal of ours that was delivered makes the end an interruption. */
export function moveOf(command: CommandRow, report: EndReport, nowMs: number): Move {
  const [event, reason] = verdict(command, report);
  const { end, usage } = report;
  return {
    id: command.id,
    event,
    reason,
    nowMs,
    changes: {
      ended_at_ms: nowMs,
      started_at_ms: command.started_at_ms,
      exit_code: "exit_code" in end ? end.exit_code : null,
      signal: "signal" in end ? end.signal : null,
      end_details: JSON.stringify(detailsOf(end)),
      cpu_ms: usage.cpu_ms,
      memory_peak_bytes: usage.memory_peak_bytes,
    },
  };
}

const endingSignals: readonly string[] = ["HUP", "INT", "QUIT", "KILL", "TERM"];

function verdict(command: CommandRow, report: EndReport): [CommandEvent, StateReason] {
  const { end, signalled } = report;
  if (end.kind === "launch_failed") return ["launchFailed", "launch_failed"];
  if (end.kind === "timed_out") return ["timedOut", "timed_out"];
  if (end.kind === "resource_exhausted") return ["exhausted", "out_of_resources"];
  if (end.kind !== "exited" && end.kind !== "signal") return ["untold", "guest_forgot"];
  // Only the first signal is reported: a harmless one may have come before the one that ended it.
  const last = end.kind === "signal" ? end.signal : signalled;
  const ours = [signalled, last].some((signal) => endingSignals.includes(signal ?? ""));
  if (signalled !== null && ours)
    return ["interrupted", command.kill_request === null ? "stopped" : "killed"];
  return ["exited", "exited"];
}

function detailsOf(end: CommandEnd): Record<string, unknown> {
  const { kind: _, ...rest } = end;
  return rest;
}

const stoppedReasons: Partial<Record<PhaseReason, [CommandEvent, StateReason]>> = {
  stopped_on_request: ["interrupted", "stopped"],
  deleted: ["interrupted", "stopped"],
  guest_shutdown: ["lost", "guest_shutdown"],
  guest_rebooted: ["lost", "guest_rebooted"],
  guest_panicked: ["lost", "guest_panicked"],
};

/** Ends what its run leaves open. Called in the transaction that records the run's end. */
export async function endCommandsOf(tx: Tx, ended: RunEnd): Promise<void> {
  for (const command of await liveCommandsOf(tx, ended.sandbox.id)) {
    const end = endWith(command, ended);
    if (end) await moveCommand(tx, { id: command.id, nowMs: ended.nowMs, ...end });
  }
}

/** How one command ends with its run; undefined: it goes on waiting. */
export function endWith(
  command: Pick<CommandRow, "state">,
  { reason, bootsAgain }: Pick<RunEnd, "reason" | "bootsAgain">,
): { event: CommandEvent; reason: StateReason } | undefined {
  if (command.state === "queued") {
    if (bootsAgain) return undefined;
    const stopped = stoppedReasons[reason] !== undefined;
    return { event: "drop", reason: stopped ? "sandbox_stopped" : "start_failed" };
  }
  if (command.state === "launching") return { event: "untold", reason: "not_established" };
  const [event, why] = stoppedReasons[reason] ?? ["lost", "vm_died"];
  return { event, reason: why };
}
