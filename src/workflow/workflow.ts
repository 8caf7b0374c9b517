/**
 * A workflow is a list of named steps that survives a crash.
 *
 * A step does at most one thing to the outside world, then returns what to record. The record and
 * the move to the next step commit together. If we die in between, the step runs again, so a step
 * looks before it acts.
 */

import type { Fault } from "../core/fault.ts";
import type { Reader, Tx } from "../db/open.ts";

/** What a step wants written. A Fault it throws undoes it, and the step is tried again later. */
export type Write = (tx: Tx) => Promise<void>;

export type Outcome<Step extends string> =
  | { readonly kind: "next"; readonly step: Step; readonly write: Write | undefined }
  | { readonly kind: "wait"; readonly ms: number; readonly write: Write | undefined }
  | { readonly kind: "done"; readonly write: Write | undefined };

/** A step may read the database but not write it: what it wants written goes into its outcome. */
export type Looking<Ports> = Omit<Ports, "db"> & { readonly db: { readonly read: Reader } };

export interface Attempt {
  readonly subject: string;
  /** When the workflow began, milliseconds since 1970. */
  readonly startedAtMs: number;
  /** The fault or deadline that led to `giveUp`, kept for its reason. */
  readonly problem: string | undefined;
}

export interface Workflow<Ports, Step extends string = string> {
  readonly name: string;
  readonly first: Step;
  /** Where to go when a step fails for good or the deadline passes. It must release everything. */
  readonly giveUp: Step;
  readonly deadlineMs: number;
  readonly steps: Readonly<
    Record<Step, (attempt: Attempt, ports: Looking<Ports>) => Promise<Outcome<Step>>>
  >;
}

/** The code of a problem, as `giveUp` finds it: a fault's, or `deadline`. */
export const problemOf = (fault: Fault): string => fault.code;
export const deadlineProblem = "deadline";

export const next = <Step extends string>(step: Step, write?: Write): Outcome<Step> => ({
  kind: "next",
  step,
  write,
});
/** Tries the same step again after `ms`, or as soon as the subject is woken. */
export const wait = (ms: number, write?: Write): Outcome<never> => ({ kind: "wait", ms, write });
export const done = (write?: Write): Outcome<never> => ({ kind: "done", write });
