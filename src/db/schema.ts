/** The rows, as SQLite holds them: times in milliseconds since 1970 UTC, JSON as text, flags 0 or 1. */
import type { Generated } from "kysely";
import type { CommandState } from "../commands/command.ts";
import type { EventType } from "../events/event.ts";
import type { SandboxPhase } from "../sandboxes/sandbox.ts";

export interface Schema {
  sandboxes: SandboxTable;
  commands: CommandTable;
  stdin_chunks: StdinChunkTable;
  workflows: WorkflowTable;
  api_keys: ApiKeyTable;
  idempotency_keys: IdempotencyKeyTable;
  host: HostTable;
  events: EventTable;
}

export interface OutputSchema {
  chunks: ChunkTable;
  outputs: OutputTable;
}

export interface SandboxTable {
  id: string;
  name: string;
  size: string;
  vcpus: number;
  memory_bytes: number;
  disk_bytes: number;
  base_digest: string;
  base_name: string;
  base_built_at_ms: number;
  labels: string;
  machine_id: string;
  phase: SandboxPhase;
  phase_reason: string;
  phase_at_ms: number;
  run: Generated<number>;
  guest_boot_id: string | null;
  guest_seen_at_ms: number | null;
  disk_made: Generated<number>;
  started_at_ms: number | null;
  started_from: string | null;
  last_stop: string | null;
  reboots: Generated<string>;
  created_at_ms: number;
  deleted_at_ms: number | null;
}

export interface CommandTable {
  id: string;
  sandbox_id: string;
  argv: string;
  cwd: string | null;
  env: string;
  user: string;
  timeout_ms: number | null;
  stdin: number;
  state: CommandState;
  state_reason: string;
  accepted_by: string;
  accepted_at_ms: number;
  guest_boot_id: string | null;
  run: number | null;
  started_at_ms: number | null;
  ended_at_ms: number | null;
  exit_code: number | null;
  signal: string | null;
  end_details: Generated<string>;
  cpu_ms: number | null;
  memory_peak_bytes: number | null;
  kill_signal: string | null;
  kill_by: string | null;
  kill_request: string | null;
  kill_done: Generated<number>;
  stdin_taken: Generated<number>;
  stdin_closed: Generated<number>;
}

export interface StdinChunkTable {
  command_id: string;
  offset_bytes: number;
  data: Uint8Array;
}

export interface WorkflowTable {
  id: string;
  name: string;
  subject: string;
  step: string;
  attempt: Generated<number>;
  wakes: Generated<number>;
  run_at_ms: number;
  deadline_at_ms: number;
  started_at_ms: number;
  finished_at_ms: number | null;
  outcome: "done" | "gave_up" | "superseded" | null;
  problem: string | null;
}

export interface ApiKeyTable {
  id: string;
  name: string;
  scope: "admin" | "operate" | "read";
  secret_sha256: Uint8Array;
  created_at_ms: number;
  revoked_at_ms: number | null;
}

export interface IdempotencyKeyTable {
  api_key_id: string;
  key: string;
  request_sha256: Uint8Array;
  status: number;
  body: string;
  command_id: string | null;
  created_at_ms: number;
}

export interface EventTable {
  seq: Generated<number>;
  type: EventType;
  at_ms: number;
  sandbox_id: string;
  command_id: string | null;
  data: string;
}

export interface HostTable {
  id: string;
  secret: Uint8Array;
  created_at_ms: number;
}

export interface ChunkTable {
  command_id: string;
  offset_bytes: number;
  stream: "stdout" | "stderr";
  at_ms: number;
  length_bytes: number;
  data: Uint8Array;
}

export interface OutputTable {
  command_id: string;
  end_bytes: number;
  kept_bytes: number;
}
