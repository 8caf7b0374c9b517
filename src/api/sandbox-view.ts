/** A sandbox as the API shows it: what was observed, and when. */
import { z } from "@hono/zod-openapi";
import { statesOf } from "../core/moves.ts";
import {
  type LastStop,
  type PhaseReason,
  phaseReasons,
  type SandboxRow,
  type StartedFrom,
  sandboxMoves,
} from "../sandboxes/sandbox.ts";
import type { Sightings } from "../sandboxes/sightings.ts";
import { type BusySandbox, refOf } from "../sandboxes/store.ts";
import { timeOf, timeSchema } from "./schemas.ts";

export const phases = statesOf(sandboxMoves);

export const sandboxSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    phase: z.enum(phases).openapi({ description: "Observed, never intended." }),
    phase_reason: z.string().openapi({ description: "Stable code." }),
    phase_message: z.string(),
    phase_since: timeSchema,
    observed_at: timeSchema.openapi({ description: "When it was last seen so." }),
    size: z.string(),
    vcpus: z.int(),
    memory_bytes: z.int(),
    disk_bytes: z.int(),
    base: z.object({ digest: z.string(), name: z.string() }),
    labels: z.record(z.string(), z.string()),
    run: z.int().openapi({ description: "Boots so far." }),
    started_from: z
      .object({ kind: z.enum(["base", "local_disk"]), id: z.string(), as_of: timeSchema })
      .nullable()
      .openapi({ description: "The state its newest run booted from." }),
    last_stop: z
      .object({
        at: timeSchema,
        reason: z.string(),
        work: z.object({ outcome: z.enum(["ended", "killed", "unknown"]) }),
        final_save: z.object({
          outcome: z.enum(["not_configured"]),
          save_id: z.string().nullable(),
          unsaved_since: timeSchema.nullable(),
        }),
      })
      .nullable(),
    saving: z.object({
      health: z.enum(["off"]),
      reason: z.string(),
      message: z.string(),
      last_completed: z.null(),
      current_as_of: timeSchema.nullable(),
      at_risk_seconds: z.number().nullable(),
      at_risk_bytes: z.int().nullable(),
      in_progress: z.boolean(),
    }),
    commands_live: z.int().openapi({ description: "Commands that have not ended." }),
    created_at: timeSchema,
    deleted_at: timeSchema.nullable(),
  })
  .openapi("Sandbox");
export type SandboxView = z.infer<typeof sandboxSchema>;

export function viewSandbox(sightings: Sightings, row: BusySandbox): SandboxView {
  return {
    id: row.id,
    name: row.name,
    phase: row.phase,
    phase_reason: row.phase_reason,
    phase_message: phaseReasons[row.phase_reason as PhaseReason],
    phase_since: timeOf(row.phase_at_ms),
    observed_at: timeOf(observedAtMs(sightings, row)),
    size: row.size,
    vcpus: row.vcpus,
    memory_bytes: row.memory_bytes,
    disk_bytes: row.disk_bytes,
    base: { digest: row.base_digest, name: row.base_name },
    labels: JSON.parse(row.labels) as Record<string, string>,
    run: row.run,
    started_from: viewOrigin(row.started_from),
    last_stop: viewStop(row.last_stop),
    saving: savingOff,
    commands_live: row.commands_live,
    created_at: timeOf(row.created_at_ms),
    deleted_at: timeOf(row.deleted_at_ms),
  };
}

function observedAtMs(sightings: Sightings, row: SandboxRow): number {
  const heardMs = sightings.lastHeardMs(refOf(row)) ?? 0;
  return Math.max(heardMs, row.guest_seen_at_ms ?? 0, row.phase_at_ms);
}

function viewOrigin(text: string | null): SandboxView["started_from"] {
  if (text === null) return null;
  const { kind, id, as_of_ms } = JSON.parse(text) as StartedFrom;
  return { kind, id, as_of: timeOf(as_of_ms) };
}

function viewStop(text: string | null): SandboxView["last_stop"] {
  if (text === null) return null;
  const { at_ms, ...rest } = JSON.parse(text) as LastStop;
  return { at: timeOf(at_ms), ...rest };
}

const savingOff: SandboxView["saving"] = {
  health: "off",
  reason: "no_repository",
  message: "No repository is set: a failure of this host's disk loses what is on it.",
  last_completed: null,
  current_as_of: null,
  at_risk_seconds: null,
  at_risk_bytes: null,
  in_progress: false,
};
