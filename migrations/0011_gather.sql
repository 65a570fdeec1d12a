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
  checked_at timestamptz,
  constraint looked_at_pkey primary key (order_id, source_id, kind, object_id),
  constraint looked_at_numbers_check check (0 <= applied and applied <= answered and answered <= sent)
) with (fillfactor = 70);
create index looked_at_object_idx on /* schema */looked_at (source_id, kind, object_id);
-- what was not looked at (nor passed over by reconciliation) for the longest time comes first
create index looked_at_checked_idx on /* schema */looked_at (greatest(answered_at, checked_at)) where kind <> 'event';

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
  told boolean not null default false,
  constraint fetches_pkey primary key (order_id, source_id, kind, object_id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, vacuum_truncate = off);
-- account by account: what one waits for never stands in the way of another
create index fetches_due_idx on /* schema */fetches (source_id, due_at);
create index fetches_asked_idx on /* schema */fetches (asked_at) where not told;

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
create index inbox_gathers_object_idx on /* schema */inbox_gathers (order_id, source_id, kind, object_id);

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

-- What a worker reads of the answers that stand now, with their bytes, under the locks of what was looked at:
-- never of one that another answer has overtaken.
create function /* schema */newest_answers(ids bigint[], fresh_ms bigint)
returns table (evidence_id bigint, number bigint, order_version bigint, is_found boolean, is_fresh boolean,
  fetched_at timestamptz, body_sha256 bytea, body bytea)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set plan_cache_mode = force_generic_plan rows 100 as $$
#variable_conflict use_column
begin
  return query
  select e.evidence_id, e.number, e.order_version, e.is_found,
    e.fetched_at > clock_timestamp() - fresh_ms * interval '1 millisecond', e.fetched_at, e.body_sha256, e.body
  from unnest(ids) as k(evidence_id)
  join /* schema */evidence e on e.evidence_id = k.evidence_id
  join /* schema */looked_at l on l.order_id = e.order_id and l.source_id = e.source_id and l.kind = e.kind
    and l.object_id = e.object_id and l.evidence_id = e.evidence_id;
end $$;
revoke execute on function /* schema */newest_answers(bigint[], bigint) from public;

-- The bodies of events that something is gathered for, while they wait for it.
create function /* schema */gathered_payloads(keys bigint[])
returns table (event_key bigint, body bytea)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set plan_cache_mode = force_generic_plan rows 20 as $$
#variable_conflict use_column
begin
  return query
  select w.event_key, coalesce(
    (select p.body from /* schema */payloads p where p.event_key = w.event_key and p.received_on = w.received_on),
    (select h.body from /* schema */payloads_held h where h.event_key = w.event_key))
  from (select g.event_key, g.received_on from /* schema */inbox_gathers g
    where g.event_key = any (keys) and g.waiting and g.kind = 'event' offset 0) w;
end $$;
revoke execute on function /* schema */gathered_payloads(bigint[]) from public;

-- One answer, for a person: recorded with its reason before it is returned, as the reading of a body is. Null
-- when it is no longer kept.
alter table /* schema */payload_reads alter column event_key drop not null, add column evidence_id bigint,
  add constraint payload_reads_what_check check (num_nonnulls(event_key, evidence_id) = 1);
create function /* schema */read_evidence(id bigint, reason text, actor text) returns bytea
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  found_body bytea;
  number bigint;
begin
  if coalesce(btrim(reason), '') = '' or coalesce(btrim(actor), '') = '' then
    raise exception 'reading evidence needs a reason and an actor' using errcode = '22023';
  end if;
  if not exists (select from /* schema */evidence e where e.evidence_id = id) then
    raise exception 'there is no evidence with this number' using errcode = 'P0002';
  end if;
  insert into /* schema */payload_reads (evidence_id, reason, actor) values (id, reason, actor) returning read_id into number;
  raise log 'hookledger: role % reads evidence % as %, reading %', session_user, id, to_json(left(actor, 100)), number;
  select e.body into found_body from /* schema */evidence e where e.evidence_id = id;
  return found_body;
end $$;
revoke execute on function /* schema */read_evidence(bigint, text, text) from public;

-- Whether an answer is the one that came, without showing it; null when it is no longer kept.
create function /* schema */is_evidence_intact(id bigint) returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select sha256(e.body) = e.body_sha256 and length(e.body) = e.body_bytes
  from /* schema */evidence e where e.evidence_id = id and e.body is not null
$$;
revoke execute on function /* schema */is_evidence_intact(bigint) from public;

-- Evidence is added and never changed: only its bytes go, in their time.
create trigger evidence_append_only before delete or truncate on /* schema */evidence
  for each statement execute function /* schema */refuse_change();
create trigger evidence_permanent before update on /* schema */evidence for each row
  when ((old.evidence_id, old.order_id, old.source_id, old.kind, old.object_id, old.number, old.event_key, old.order_version,
      old.is_found, old.requested_at, old.fetched_at, old.body_sha256, old.body_bytes)
    is distinct from (new.evidence_id, new.order_id, new.source_id, new.kind, new.object_id, new.number, new.event_key, new.order_version,
      new.is_found, new.requested_at, new.fetched_at, new.body_sha256, new.body_bytes)
    or (new.body is not null and new.body is distinct from old.body))
  execute function /* schema */refuse_change();

-- The bytes of answers past the time that bodies are kept, at most so many; not those that an event is about
-- to be decided from.
create function /* schema */drop_evidence(keep_days integer, at_most integer) returns integer
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
  gone integer;
begin
  update /* schema */evidence e set body = null
  where e.evidence_id in (
    select o.evidence_id from /* schema */evidence o
    where o.body is not null and o.fetched_at < now() - make_interval(days =>
        coalesce((select /* schema */kept_days(keep_days, r.payload_days) from /* schema */retention r), 36500))
      and not exists (select from /* schema */inbox_gathers g
        where g.order_id = o.order_id and g.source_id = o.source_id and g.kind = o.kind and g.object_id = o.object_id
          and not g.waiting and g.wanted <= o.number)
    order by o.fetched_at limit least(at_most, 10000) for update skip locked);
  get diagnostics gone = row_count;
  return gone;
end $$;
revoke execute on function /* schema */drop_evidence(integer, integer) from public;

-- what waits for an answer is not finished: its body is held when its day is dropped
create or replace function /* schema */drop_payload_partitions(keep_days integer) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '200ms' as $$
declare
  due record;
  parts regclass[] := '{}';
  days date[] := '{}';
  at_once constant integer := 2000;
  kept integer := coalesce((select /* schema */kept_days(keep_days, r.payload_days) from /* schema */retention r), 36500);
begin
  -- what is finished by now needs no body: in the default partition, and among those held
  begin
    delete from /* schema */payloads_default p
    where p.received_on < (now() at time zone 'UTC')::date - kept
      and (exists (select from /* schema */ledger_decisions d where d.event_key = p.event_key and d.final)
        or exists (select from /* schema */inbox_ignored i where i.event_key = p.event_key));
  exception when lock_not_available or deadlock_detected then
    null; -- somebody drops a day, which locks this partition too: the next round
  end;
  delete from /* schema */payloads_held h
  where h.event_key in (
    select k.event_key from /* schema */payloads_held k
    where exists (select from /* schema */ledger_decisions d where d.event_key = k.event_key and d.final)
      or exists (select from /* schema */inbox_ignored i where i.event_key = k.event_key)
    order by k.event_key limit at_once for update skip locked);

  if /* schema */hold_payloads(keep_days, at_once) >= at_once then return 0; end if;
  begin
    for due in select d.part, d.day from /* schema */due_payload_partitions(keep_days) d loop
      -- from here on nobody reads these days; all of them before the parent, which inserts need
      execute format('lock table %s in access exclusive mode', due.part);
      parts := parts || due.part;
      days := days || due.day;
    end loop;
    if cardinality(parts) = 0 then return 0; end if;
    for i in 1 .. cardinality(parts) loop
      -- what has become unfinished since it was looked at stands in one of these
      execute format('insert into /* schema */payloads_held (event_key, body)
        select p.event_key, p.body from %s p where p.event_key in (
          select event_key from /* schema */inbox_ready where received_on = $1
          union all select event_key from /* schema */inbox_delayed where received_on = $1
          union all select event_key from /* schema */inbox_suspects where received_on = $1
          union all select event_key from /* schema */inbox_deferred where received_on = $1
          union all select event_key from /* schema */inbox_gathers where received_on = $1
          union all select event_key from /* schema */inbox_dead where received_on = $1)
        order by p.event_key on conflict (event_key) do nothing', parts[i]) using days[i];
    end loop;
    lock table only /* schema */payloads in access exclusive mode;
    for i in 1 .. cardinality(parts) loop
      execute format('drop table %s', parts[i]);
    end loop;
  exception when lock_not_available or deadlock_detected or undefined_table then
    return 0; -- a report reads one of them: stalling every insert behind us would be worse
  end;
  return cardinality(parts);
end $$;

-- an event that waits for an answer is pending: nothing but the asking holds it up
create or replace view /* schema */webhook_inbox as
select
  e.event_key, s.provider, s.provider_account, s.environment, e.event_id, e.event_type, e.via,
  e.received_at, e.occurred_at, e.body_sha256,
  case
    when f.decision_id is not null then 'processed'
    when r.event_key is not null or y.event_key is not null or u.event_key is not null or g.event_key is not null then 'pending'
    when w.event_key is not null then 'deferred'
    when x.event_key is not null then 'dead'
    when i.event_key is not null then 'ignored'
    else 'pending'
  end as state,
  coalesce(f.attempts, r.attempts, y.attempts, u.attempts, g.attempts, w.attempts, x.attempts, 0)::integer as attempts,
  (select count(*) from /* schema */deliveries d where d.source_id = e.source_id and d.event_id = e.event_id) as deliveries,
  coalesce(y.last_error, x.reason, q.last_error) as last_error,
  case
    when f.decision_id is not null then f.order_id
    else coalesce(g.order_id, (select d.order_id from /* schema */ledger_decisions d where d.event_key = e.event_key and not d.final
          order by d.decision_id desc limit 1))
  end as order_id,
  f.decision_id,
  (case when g.event_key is null then w.waits_for
    when g.kind = 'event' then 'what is gathered for it'
    else 'the answer about ' || g.kind || ' ' || g.object_id end) collate "default" as waits_for,
  w.deadline_at, coalesce(y.due_at, q.due_at) as next_attempt_at
from /* schema */inbox_events e
join /* schema */sources s on s.source_id = e.source_id
left join /* schema */ledger_decisions f on f.event_key = e.event_key and f.final
left join /* schema */inbox_ready r on r.event_key = e.event_key
left join /* schema */inbox_delayed y on y.event_key = e.event_key
left join /* schema */inbox_suspects u on u.event_key = e.event_key
left join /* schema */inbox_deferred w on w.event_key = e.event_key
left join /* schema */inbox_dead x on x.event_key = e.event_key
left join /* schema */inbox_ignored i on i.event_key = e.event_key
left join /* schema */inbox_gathers g on g.event_key = e.event_key and g.waiting
left join /* schema */fetches q on q.order_id = g.order_id and q.source_id = g.source_id and q.kind = g.kind
  and q.object_id = g.object_id;
