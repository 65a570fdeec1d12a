-- The inbox: what arrived, and what is not finished. Big tables only ever grow; what moves are rows of
-- small tables that are inserted and deleted (ready, delayed, deferred, dead, ignored), so that a
-- change of state never updates a big table or an index of one.

create table /* schema */installation (
  one_row boolean not null default true,
  installation_id uuid not null default gen_random_uuid(),
  environment text not null,
  secret bytea not null default sha256(gen_random_uuid()::text::bytea || gen_random_uuid()::text::bytea),
  created_at timestamptz not null default now(),
  constraint installation_pkey primary key (one_row),
  constraint installation_one_row_check check (one_row),
  constraint installation_environment_check check (environment in ('live', 'test'))
);

-- provider + account + environment: the namespace of event ids, as a number that hot tables carry
create table /* schema */sources (
  source_id integer generated always as identity,
  provider text collate "C" not null,
  provider_account text collate "C" not null,
  environment text collate "C" not null,
  created_at timestamptz not null default now(),
  constraint sources_pkey primary key (source_id),
  constraint sources_identity_key unique (provider, provider_account, environment),
  constraint sources_environment_check check (environment in ('live', 'test'))
);

create table /* schema */inbox_events (
  event_key bigint generated always as identity,
  source_id integer not null,
  event_id text collate "C" not null,
  event_type text collate "C" not null,
  via text not null default 'webhook',
  received_at timestamptz not null default now(),
  occurred_at timestamptz,
  api_version text,
  body_sha256 bytea not null,
  body_bytes integer not null,
  constraint inbox_events_pkey primary key (event_key),
  constraint inbox_events_identity_key unique (source_id, event_id),
  constraint inbox_events_via_check
    check (via in ('webhook', 'confirm', 'reconciliation', 'replay', 'repair', 'app'))
);

-- one row a request and event, written for duplicates too: the flushed write behind every 2xx
create table /* schema */deliveries (
  delivery_id bigint generated always as identity,
  source_id integer not null,
  event_id text collate "C" not null,
  received_at timestamptz not null default now(),
  body_sha256 bytea not null,
  constraint deliveries_event_key unique (source_id, event_id, delivery_id)
);

create table /* schema */payloads (
  event_key bigint not null,
  received_on date not null,
  body bytea not null,
  constraint payloads_pkey primary key (event_key, received_on)
) partition by range (received_on);
create table /* schema */payloads_default partition of /* schema */payloads default
  with (toast_tuple_target = 8160);

-- bodies of unfinished events whose day is dropped
create table /* schema */payloads_held (
  event_key bigint not null,
  body bytea not null,
  held_at timestamptz not null default now(),
  constraint payloads_held_pkey primary key (event_key)
);

-- what can be worked on now; a row is locked for as long as the claiming transaction lives
create table /* schema */inbox_ready (
  event_key bigint not null,
  received_on date not null,
  attempts smallint not null default 0,
  deadline_at timestamptz,
  waits_for text,
  overdue boolean not null default false,
  constraint inbox_ready_pkey primary key (event_key)
) with (
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
  autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 20000,
  autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 5000,
  autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off
);

-- failed, to be tried again when due
create table /* schema */inbox_delayed (
  event_key bigint not null,
  received_on date not null,
  attempts smallint not null,
  due_at timestamptz not null,
  last_error text not null,
  deadline_at timestamptz,
  waits_for text,
  overdue boolean not null default false,
  constraint inbox_delayed_pkey primary key (event_key)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, vacuum_truncate = off);
create index inbox_delayed_due_idx on /* schema */inbox_delayed (due_at);

-- waits for a name or for a change of an order; past its deadline it stays and is overdue
create table /* schema */inbox_deferred (
  event_key bigint not null,
  received_on date not null,
  attempts smallint not null,
  deferred_at timestamptz not null default now(),
  deadline_at timestamptz not null,
  waits_for text not null,
  at_deadline text not null,
  overdue boolean not null default false,
  constraint inbox_deferred_pkey primary key (event_key),
  constraint inbox_deferred_at_deadline_check check (at_deadline in ('finding', 'ignore'))
);
create index inbox_deferred_deadline_idx on /* schema */inbox_deferred (deadline_at) where not overdue;

-- what wakes it: kind 'order' is a change of that order, anything else a name of that source
create table /* schema */inbox_waits (
  kind text collate "C" not null,
  source_id integer not null,
  name text collate "C" not null,
  event_key bigint not null,
  constraint inbox_waits_pkey primary key (kind, source_id, name, event_key)
);
create index inbox_waits_event_idx on /* schema */inbox_waits (event_key);

create table /* schema */inbox_ignored (
  event_key bigint not null,
  received_on date not null,
  reason text not null,
  event_type text collate "C" not null,
  ignored_at timestamptz not null default now(),
  constraint inbox_ignored_pkey primary key (event_key)
);
create index inbox_ignored_type_idx on /* schema */inbox_ignored (event_type);

-- a redelivery re-arms what is dead, but not what kills workers or cannot be read
create table /* schema */inbox_dead (
  event_key bigint not null,
  received_on date not null,
  reason text not null,
  attempts smallint not null,
  rearmed_by text not null default 'redelivery',
  died_at timestamptz not null default now(),
  constraint inbox_dead_pkey primary key (event_key),
  constraint inbox_dead_rearmed_by_check check (rearmed_by in ('redelivery', 'operator'))
);
create index inbox_dead_died_idx on /* schema */inbox_dead (died_at);

-- when a redelivery last gave a dead event new attempts: at most once an hour
create table /* schema */inbox_rearmed (
  event_key bigint not null,
  rearmed_at timestamptz not null default now(),
  constraint inbox_rearmed_pkey primary key (event_key)
);

-- duplicates seen by a receiver, for a worker to look at under the event's lock
create table /* schema */inbox_redeliveries (
  redelivery_id bigint generated always as identity,
  source_id integer not null,
  event_id text collate "C" not null,
  constraint inbox_redeliveries_pkey primary key (redelivery_id)
);

-- a batch in work: a row that can be locked means that its worker died
create table /* schema */inbox_batches (
  batch_id uuid not null,
  event_keys bigint[] not null,
  alone boolean not null,
  worker text not null,
  started_at timestamptz not null default clock_timestamp(),
  constraint inbox_batches_pkey primary key (batch_id)
);

-- events of a batch whose worker died: each runs alone; three dead lone starts end it
create table /* schema */inbox_suspects (
  event_key bigint not null,
  received_on date not null,
  attempts smallint not null,
  starts smallint not null default 0,
  due_at timestamptz not null default now(),
  deadline_at timestamptz,
  waits_for text,
  overdue boolean not null default false,
  constraint inbox_suspects_pkey primary key (event_key)
);

create table /* schema */rejections (
  rejection_id bigint generated always as identity,
  source text collate "C" not null,
  reason text collate "C" not null,
  first_at timestamptz not null default now(),
  last_at timestamptz not null default now(),
  minute timestamptz not null default date_trunc('minute', now()),
  times bigint not null default 1,
  constraint rejections_pkey primary key (rejection_id),
  constraint rejections_minute_key unique (source, reason, minute)
);
