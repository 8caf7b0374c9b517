/** What a command is: accepted once, run at most once, ended with what is known about it. */
import type { Selectable } from "kysely";
import type { EventOf, Moves, StateOf } from "../core/moves.ts";
import { KiB, MiB } from "../core/units.ts";
import type { CommandTable } from "../db/schema.ts";

/** Nothing leads back: a command that was sent is never sent to another boot. */
export const commandMoves = {
  queued: { send: "launching", drop: "not_launched" },
  launching: {
    started: "running",
    exited: "exited",
    launchFailed: "launch_failed",
    refused: "not_launched",
    timedOut: "timed_out",
    exhausted: "resource_exhausted",
    interrupted: "interrupted",
    lost: "infrastructure_lost",
    untold: "unknown",
  },
  running: {
    exited: "exited",
    launchFailed: "launch_failed",
    timedOut: "timed_out",
    exhausted: "resource_exhausted",
    interrupted: "interrupted",
    lost: "infrastructure_lost",
    untold: "unknown",
  },
  exited: {},
  launch_failed: {},
  not_launched: {},
  timed_out: {},
  resource_exhausted: {},
  interrupted: {},
  infrastructure_lost: {},
  unknown: {},
} as const satisfies Moves;

export type CommandState = StateOf<typeof commandMoves>;
export type CommandEvent = EventOf<typeof commandMoves>;
export type CommandRow = Selectable<CommandTable>;

export const liveStates: readonly CommandState[] = ["queued", "launching", "running"];
/** States in which the guest may hold the command. */
export const sentStates: readonly CommandState[] = ["launching", "running"];

export function isFinal(state: CommandState): boolean {
  return !liveStates.includes(state);
}

/** Why a command is in its state: stable codes, each with the sentence people read. */
export const stateReasons = {
  accepted: "It was accepted and waits for its sandbox.",
  sent: "It was sent to the guest; its start has not been reported yet.",
  started: "It runs.",
  exited: "It ended by itself.",
  launch_failed: "It could not be started.",
  sandbox_stopped: "Its sandbox was stopped before it could start.",
  start_failed: "Its sandbox could not be started.",
  timed_out: "Its time limit passed and its processes were ended.",
  out_of_resources: "It was ended because a resource ran out.",
  killed: "It was ended on request.",
  stopped: "Its sandbox was stopped while it ran.",
  vm_died: "Its VM failed while it ran.",
  guest_rebooted: "The guest rebooted while it ran.",
  guest_panicked: "The guest's kernel panicked while it ran.",
  guest_shutdown: "The guest powered itself off while it ran.",
  not_established: "It was sent, and whether it ran cannot be established.",
  guest_forgot: "The guest part no longer knows how it ended.",
} as const;
export type StateReason = keyof typeof stateReasons;

/** Limits on what is accepted; together they keep a launch within one message. */
export const argumentsMax = 4096;
export const argumentsBytesMax = 128 * KiB;
export const environmentEntriesMax = 1024;
export const environmentBytesMax = 128 * KiB;
export const pathBytesMax = 4096;
export const timeoutSecondsMax = 30 * 24 * 3600;
/** Commands of one sandbox that have not ended. */
export const liveCommandsMax = 256;
/** Stdin held on the host until the guest part has taken it over. */
export const stdinHeldBytesMax = 4 * MiB;
/** One piece of stdin; below a message's limit with its header. */
export const stdinPieceBytesMax = 256 * KiB;

/** Output kept per command: the first half of it, and the newest. */
export const outputKeptBytesMax = 64 * MiB;
