/** The second database: what commands wrote. Rows are chunks in order of arrival. */
export const outputMigration0001 = `
create table chunks (
  command_id text not null,
  -- Bytes of both streams before this chunk.
  offset_bytes integer not null,
  stream text not null check (stream in ('stdout', 'stderr')),
  at_ms integer not null,
  length_bytes integer not null,
  data blob not null,
  -- With rowids: a tree of keys that holds the data would read all of it at each comparison.
  primary key (command_id, offset_bytes)
) strict;

create table outputs (
  command_id text primary key,
  -- Bytes received so far, kept or not.
  end_bytes integer not null,
  -- Bytes of the chunks that are kept.
  kept_bytes integer not null
) strict, without rowid;
`;
