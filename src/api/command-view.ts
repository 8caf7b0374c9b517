/** A command as the API shows it: its state, and all that is known about its end. */
import { z } from "@hono/zod-openapi";
import {
  type CommandRow,
  commandMoves,
  isFinal,
  type StateReason,
  stateReasons,
} from "../commands/command.ts";
import type { Extent } from "../commands/output.ts";
import { statesOf } from "../core/moves.ts";
import { timeOf, timeSchema } from "./schemas.ts";

export const states = statesOf(commandMoves);

export const commandSchema = z
  .object({
    id: z.string(),
    sandbox_id: z.string(),
    argv: z.array(z.string()),
    cwd: z.string().nullable(),
    env: z.record(z.string(), z.string()),
    user: z.string(),
    timeout_seconds: z.number().nullable(),
    stdin: z.boolean(),
    state: z.enum(states),
    state_reason: z.string().openapi({ description: "Stable code." }),
    message: z.string(),
    is_final: z.boolean().openapi({ description: "Whether it has ended, whatever the state." }),
    exit_code: z.int().nullable(),
    signal: z.string().nullable().openapi({ description: "Without SIG, as KILL." }),
    exhausted: z
      .object({
        resource: z.string(),
        limit_bytes: z.int().nullable(),
        peak_bytes: z.int().nullable(),
      })
      .nullable(),
    launch_failure: z.object({ reason: z.string(), detail: z.string() }).nullable(),
    kill: z
      .object({ signal: z.string(), api_key_id: z.string(), delivered: z.boolean() })
      .nullable()
      .openapi({ description: "The newest signal that was asked for." }),
    accepted_by: z.string().openapi({ description: "The API key's id." }),
    accepted_at: timeSchema,
    started_at: timeSchema.nullable(),
    ended_at: timeSchema.nullable(),
    run: z.int().nullable().openapi({ description: "The sandbox's boot it was sent to." }),
    output: z.object({
      bytes: z.int().openapi({ description: "Received, of both streams." }),
      stored_bytes: z.int().openapi({ description: "Less than bytes once over the cap." }),
      complete: z.boolean().openapi({ description: "Whether nothing more can come." }),
    }),
    usage: z.object({
      cpu_seconds: z.number().nullable(),
      memory_peak_bytes: z.int().nullable(),
    }),
  })
  .openapi("Command");
export type CommandView = z.infer<typeof commandSchema>;

export const noOutput: Extent = { endBytes: 0, keptBytes: 0 };

export function viewCommand(row: CommandRow, extent: Extent): CommandView {
  return {
    id: row.id,
    sandbox_id: row.sandbox_id,
    argv: JSON.parse(row.argv) as string[],
    cwd: row.cwd,
    env: JSON.parse(row.env) as Record<string, string>,
    user: row.user,
    timeout_seconds: row.timeout_ms === null ? null : row.timeout_ms / 1000,
    stdin: row.stdin === 1,
    ...viewState(row),
    accepted_by: row.accepted_by,
    accepted_at: timeOf(row.accepted_at_ms),
    started_at: timeOf(row.started_at_ms),
    ended_at: timeOf(row.ended_at_ms),
    run: row.run,
    output: {
      bytes: extent.endBytes,
      stored_bytes: extent.keptBytes,
      complete: isFinal(row.state),
    },
    usage: {
      cpu_seconds: row.cpu_ms === null ? null : row.cpu_ms / 1000,
      memory_peak_bytes: row.memory_peak_bytes,
    },
  };
}

interface EndDetails {
  resource?: string;
  limit_bytes?: number | null;
  peak_bytes?: number | null;
  reason?: string;
  detail?: string;
}

function viewState(row: CommandRow) {
  const end = JSON.parse(row.end_details) as EndDetails;
  const { resource, limit_bytes = null, peak_bytes = null, reason, detail = "" } = end;
  return {
    state: row.state,
    state_reason: row.state_reason,
    message: stateReasons[row.state_reason as StateReason],
    is_final: isFinal(row.state),
    exit_code: row.exit_code,
    signal: row.signal,
    exhausted: resource === undefined ? null : { resource, limit_bytes, peak_bytes },
    launch_failure: reason === undefined ? null : { reason, detail },
    kill: viewKill(row),
  };
}

function viewKill({ kill_signal, kill_by, kill_done }: CommandRow): CommandView["kill"] {
  if (kill_signal === null || kill_by === null) return null;
  return { signal: kill_signal, api_key_id: kill_by, delivered: kill_done === 1 };
}
