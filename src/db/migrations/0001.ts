/** The state of one host: sandboxes, commands, who asked for what, and the work under way. */

import { commandMoves } from "../../commands/command.ts";
import { statesOf } from "../../core/moves.ts";

const oneOf = (values: readonly string[]): string => values.map((value) => `'${value}'`).join(", ");

export const migration0001 = `
create table sandboxes (
  id text primary key,
  name text not null,
  size text not null,
  vcpus integer not null,
  memory_bytes integer not null,
  disk_bytes integer not null,
  base_digest text not null,
  base_name text not null,
  base_built_at_ms integer not null,
  labels text not null,
  machine_id text not null,
  phase text not null check (phase in ('stopped', 'starting', 'running', 'stopping', 'paused', 'lost', 'recovering',
    'failed', 'quarantined', 'deleting', 'deleted')),
  phase_reason text not null,
  phase_at_ms integer not null,
  -- Counts the boots; run n+1 begins only after run n was seen ended.
  run integer not null default 0,
  -- The boot of the guest that was seen in this run; null until its guest part spoke.
  guest_boot_id text,
  guest_seen_at_ms integer,
  -- Whether a disk was ever completed: from then on a missing one is a failure, never made again.
  disk_made integer not null default 0,
  started_at_ms integer,
  -- The state its newest run booted from; null until its first start.
  started_from text,
  last_stop text,
  -- Times of the reboots the guest asked for, newest last; bounds a reboot loop.
  reboots text not null default '[]',
  created_at_ms integer not null,
  deleted_at_ms integer
) strict;
create unique index sandboxes_name on sandboxes (name) where phase <> 'deleted';
create index sandboxes_phase on sandboxes (phase);

create table commands (
  id text primary key,
  sandbox_id text not null references sandboxes (id),
  argv text not null,
  cwd text,
  env text not null,
  user text not null,
  timeout_ms integer,
  stdin integer not null,
  state text not null check (state in (${oneOf(statesOf(commandMoves))})),
  state_reason text not null,
  accepted_by text not null,
  accepted_at_ms integer not null,
  -- The one boot this command may run in, set before its launch is sent.
  guest_boot_id text,
  run integer,
  started_at_ms integer,
  ended_at_ms integer,
  exit_code integer,
  signal text,
  -- What only some ends have: which resource, its limit and peak, why a launch failed.
  end_details text not null default '{}',
  cpu_ms integer,
  memory_peak_bytes integer,
  -- Who asked for the end, with which signal; sent until the guest part answers.
  kill_signal text,
  kill_by text,
  kill_request text,
  kill_done integer not null default 0,
  -- Bytes of stdin the guest part has taken over, and whether our side is closed.
  stdin_taken integer not null default 0,
  stdin_closed integer not null default 0
) strict;
create index commands_sandbox on commands (sandbox_id, id);
create index commands_live on commands (sandbox_id, state) where ended_at_ms is null;
create index commands_ended on commands (ended_at_ms) where ended_at_ms is not null;

create table stdin_chunks (
  command_id text not null references commands (id),
  offset_bytes integer not null,
  data blob not null,
  primary key (command_id, offset_bytes)
) strict, without rowid;

create table workflows (
  id text primary key,
  name text not null,
  subject text not null,
  step text not null,
  attempt integer not null default 0,
  -- Counts the wakes, so that one that arrives while a step runs is not lost.
  wakes integer not null default 0,
  run_at_ms integer not null,
  deadline_at_ms integer not null,
  started_at_ms integer not null,
  finished_at_ms integer,
  -- 'done', 'gave_up' or 'superseded' once finished.
  outcome text,
  -- Why the last attempt failed, for people.
  problem text
) strict;
-- A thing is changed by at most one workflow at a time.
create unique index workflows_live on workflows (subject) where finished_at_ms is null;
create index workflows_due on workflows (run_at_ms) where finished_at_ms is null;
create index workflows_finished on workflows (finished_at_ms) where finished_at_ms is not null;

create table api_keys (
  id text primary key,
  name text not null,
  scope text not null check (scope in ('admin', 'operate', 'read')),
  secret_sha256 blob not null unique,
  created_at_ms integer not null,
  revoked_at_ms integer
) strict;

create table idempotency_keys (
  api_key_id text not null,
  key text not null,
  request_sha256 blob not null,
  status integer not null,
  body text not null,
  -- The command this key made: the key leaves with its record; others after their own retention.
  command_id text references commands (id) on delete cascade,
  created_at_ms integer not null,
  primary key (api_key_id, key)
) strict;
create index idempotency_keys_age on idempotency_keys (created_at_ms);
create index idempotency_keys_command on idempotency_keys (command_id);

create table host (
  id text primary key,
  -- Signs cursors, so that they outlive a restart.
  secret blob not null,
  created_at_ms integer not null
) strict;
`;
