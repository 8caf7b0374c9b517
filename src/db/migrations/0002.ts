/** Events: what happened, in its order. */
export const migration0002 = `
create table events (
  -- Also after a forgetting, no number comes twice: who reads goes on behind the one it has.
  seq integer primary key autoincrement,
  type text not null,
  at_ms integer not null,
  sandbox_id text not null,
  command_id text,
  data text not null
) strict;
create index events_of_sandbox on events (sandbox_id, seq);
create index events_age on events (at_ms);
`;
