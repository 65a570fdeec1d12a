-- Who is at work: one row a process, told anew every few seconds. What is not told for a while is gone, however
-- it ended; nothing depends on it, it is for people and alerts.
create table /* schema */processes (
  process_id uuid not null,
  host text not null,
  pid integer not null,
  roles text[] not null,
  version text not null,
  started_at timestamptz not null default clock_timestamp(),
  seen_at timestamptz not null default clock_timestamp(),
  constraint processes_pkey primary key (process_id)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
