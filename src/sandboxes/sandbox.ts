/** What a sandbox is: its phases, why it is in one, and the limits on what a person may ask for. */
import type { Selectable } from "kysely";
import type { EventOf, Moves, StateOf } from "../core/moves.ts";
import type { SandboxTable } from "../db/schema.ts";

/** Phases are observed: only a guest part that answered moves a sandbox to `running`. */
export const sandboxMoves = {
  stopped: { start: "starting", delete: "deleting" },
  starting: {
    seen: "running",
    fail: "failed",
    stop: "stopping",
    delete: "deleting",
  },
  running: {
    stop: "stopping",
    delete: "deleting",
    vmEnded: "stopped",
    reboot: "starting",
    halt: "paused",
    silence: "lost",
  },
  paused: {
    seen: "running",
    stop: "stopping",
    delete: "deleting",
    vmEnded: "stopped",
    reboot: "starting",
    silence: "lost",
  },
  stopping: { stopped: "stopped", delete: "deleting" },
  lost: {
    seen: "running",
    stop: "stopping",
    delete: "deleting",
    vmEnded: "stopped",
    reboot: "starting",
    halt: "paused",
  },
  failed: { start: "starting", delete: "deleting" },
  deleting: { deleted: "deleted" },
  deleted: {},
} as const satisfies Moves;

export type SandboxPhase = StateOf<typeof sandboxMoves>;
export type SandboxEvent = EventOf<typeof sandboxMoves>;
export type SandboxRow = Selectable<SandboxTable>;

/** Phases in which exactly one workflow is at work; in every other, none is. */
export const busyPhases: readonly SandboxPhase[] = ["starting", "stopping", "deleting"];

/** Phases in which a VM may be spoken to. */
export const phasesWithVm: readonly SandboxPhase[] = [
  "starting",
  "running",
  "paused",
  "stopping",
  "lost",
];

/** Phases in which a VM ought to run that no workflow is at work on. */
export const phasesObserved = ["running", "paused", "lost"] as const satisfies SandboxPhase[];

/** Phases that may hold memory and processors of the host: a deletion has yet to end the VM. */
export const phasesHoldingRoom: readonly SandboxPhase[] = [...phasesWithVm, "deleting"];

/** From here on a deletion has no VM: it had none, or it has been ended. */
export const withoutVm = "removing_disk" satisfies PhaseReason;

/** Whether its VM may be there, and needs memory and processors. */
export function holdsRoom(sandbox: Pick<SandboxRow, "phase" | "phase_reason">): boolean {
  return phasesHoldingRoom.includes(sandbox.phase) && sandbox.phase_reason !== withoutVm;
}

/** Why a sandbox is in its phase: stable codes, each with the sentence people read. */
export const phaseReasons = {
  created: "It was created and has not been started.",
  start_requested: "A person or a command asked for a start.",
  waiting_for_boot_slot: "It waits for other boots on this host to finish.",
  making_disk: "Its disk is being made from the base.",
  booting: "Its VM was started; the guest part has not answered yet.",
  guest_answered: "Its VM runs and its guest part answers.",
  host_disk_full:
    "This host has no room for what it writes: its VM waits, and goes on once there is some.",
  guest_silent: "Its VM runs, but its guest part has not answered for too long.",
  guest_rebooted: "The guest rebooted; its VM boots again on the same disk.",
  guest_panicked: "The guest's kernel panicked; its VM boots again on the same disk.",
  reboot_loop: "The guest rebooted too often in a short time; it stays stopped.",
  stop_requested: "A person asked for a stop.",
  stopped_on_request: "It was stopped on request.",
  guest_shutdown: "The guest powered itself off.",
  vm_died: "Its VM ended unexpectedly; the disk is as after a power cut.",
  delete_requested: "A person asked for its deletion.",
  removing_disk: "It is being deleted: no VM of it is left, and its disk is being removed.",
  deleted: "It was deleted.",
  disk_missing: "Its disk is not where it was; nothing is made in its place.",
  base_missing: "Its base is not on this host.",
  host_full: "This host has no room for its disk or memory.",
  vm_refused: "The hypervisor refused to start its VM.",
  vm_ended_in_boot: "Its VM ended before the guest part answered.",
  guest_never_answered: "The guest part did not answer within the time limit.",
} as const;
export type PhaseReason = keyof typeof phaseReasons;

/** How the last run ended, told apart for the work and for the save. */
export interface LastStop {
  at_ms: number;
  reason: PhaseReason;
  work: { outcome: "ended" | "killed" | "unknown" };
  /** Until a repository is set there is nothing to save to. */
  final_save: { outcome: "not_configured"; save_id: null; unsaved_since: null };
}

/** What a run booted from, and how old that state was. */
export interface StartedFrom {
  kind: "base" | "local_disk";
  /** The base's digest, or the sandbox whose kept disk it is. */
  id: string;
  as_of_ms: number;
}

/** A DNS label, so that it can be the guest's hostname. Never the shape of an id: no underscore. */
export const namePattern = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
export const labelsMax = 32;
export const labelLengthMax = 256;

/** Reboots a guest may ask for within the window before it stays stopped. */
export const rebootsMax = 5;
export const rebootWindowMs = 120_000;
