-- Gather and mirror: what an event needs from its provider before it can be decided. A request gets its number
-- under the row of what it looks at, in a commit of its own, before it is sent; an answer counts only while no
-- later one is there. What is waited for stands in small tables that move.

-- what is looked at, one row an object of an order, for ever; of a gathering (kind 'event') until it is decided
create table /* schema */looked_at (
  order_id text collate "C" not null,
  source_id integer not null,
  kind text collate "C" not null,
  object_id text collate "C" not null,
  workflow text collate "C" not null,
  sent bigint not null default 0,
  answered bigint not null default 0,
  applied bigint not null default 0,
  evidence_id bigint,
  answered_at timestamptz,
  applied_by bigint,
  constraint looked_at_pkey primary key (order_id, source_id, kind, object_id),
  constraint looked_at_numbers_check check (0 <= applied and applied <= answered and answered <= sent)
) with (fillfactor = 70);
create index looked_at_object_idx on /* schema */looked_at (source_id, kind, object_id);

-- the newest answer of each request number that was kept; the bytes are a payload
create table /* schema */evidence (
  evidence_id bigint generated always as identity,
  order_id text collate "C" not null,
  source_id integer not null,
  kind text collate "C" not null,
  object_id text collate "C" not null,
  number bigint not null,
  workflow text collate "C" not null,
  event_key bigint,
  order_version bigint,
  is_found boolean not null,
  is_late boolean not null default false,
  requested_at timestamptz not null,
  fetched_at timestamptz not null default clock_timestamp(),
  body_sha256 bytea not null,
  body_bytes integer not null,
  body bytea,
  constraint evidence_pkey primary key (evidence_id),
  constraint evidence_number_key unique (order_id, source_id, kind, object_id, number)
);
create index evidence_fetched_idx on /* schema */evidence (fetched_at) where body is not null;

-- requests to be made: one row an object, whatever waits for it
create table /* schema */fetches (
  order_id text collate "C" not null,
  source_id integer not null,
  kind text collate "C" not null,
  object_id text collate "C" not null,
  workflow text collate "C" not null,
  event_type text collate "C" not null,
  event_key bigint not null,
  wanted bigint not null,
  asked_at timestamptz not null default clock_timestamp(),
  due_at timestamptz not null default clock_timestamp(),
  leased_until timestamptz,
  attempts integer not null default 0,
  last_error text,
  constraint fetches_pkey primary key (order_id, source_id, kind, object_id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, vacuum_truncate = off);
create index fetches_due_idx on /* schema */fetches (due_at);

-- events that wait for an answer (on no other list meanwhile), or have one and are being decided
create table /* schema */inbox_gathers (
  event_key bigint not null,
  received_on date not null,
  order_id text collate "C" not null,
  source_id integer not null,
  kind text collate "C" not null,
  object_id text collate "C" not null,
  wanted bigint not null,
  waiting boolean not null default true,
  tries smallint not null default 0,
  asked_at timestamptz not null default clock_timestamp(),
  attempts smallint not null,
  deadline_at timestamptz,
  waits_for text,
  overdue boolean not null default false,
  constraint inbox_gathers_pkey primary key (event_key)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, vacuum_truncate = off);
create index inbox_gathers_waiting_idx on /* schema */inbox_gathers (order_id, source_id, kind, object_id) where waiting;

-- how fast a source, and each account of it, may be asked: shared by all gatherers
create table /* schema */fetch_budgets (
  budget text collate "C" not null,
  tokens double precision not null,
  refilled_at timestamptz not null default clock_timestamp(),
  failures integer not null default 0,
  closed_until timestamptz,
  last_error text,
  constraint fetch_budgets_pkey primary key (budget)
);

create view /* schema */mirrored_objects as
select l.order_id, l.workflow, s.provider, s.provider_account, s.environment, l.kind, l.object_id,
  l.sent, l.answered, l.applied, l.answered_at, l.evidence_id, l.applied_by as decision_id
from /* schema */looked_at l join /* schema */sources s on s.source_id = l.source_id
where l.kind <> 'event';
