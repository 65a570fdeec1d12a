-- The outbox: calls to the outside, recorded in the commit of the effect that asks for them. What an
-- operation is (its id, destination, request, effect) never changes; where it stands moves, under a fenced
-- lease: a number from one sequence, so that whoever lost a lease can never write its result.

create sequence /* schema */outbox_lease_seq;

create table /* schema */outbox_operations (
  operation_id uuid not null,
  sequence bigint generated always as identity,
  destination text collate "C" not null,
  order_id text collate "C",
  effect_type text collate "C",
  effect_reference text collate "C",
  name text collate "C" not null,
  decision_id bigint,
  request_sha256 bytea not null,
  request_bytes integer not null,
  while_states text[],
  -- what the destination's contract was when the operation was recorded
  promise text not null,
  window_ms bigint not null,
  created_at timestamptz not null default now(),
  xid xid8 not null default pg_current_xact_id(),
  state text collate "C" not null default 'pending',
  key_generation integer not null default 1,
  attempts integer not null default 0,
  -- calls under which nothing came to an end, and lookups in a row without an answer, since the operation
  -- was recorded or a person said to go on: what a destination's most attempts are counted in
  calls integer not null default 0,
  lookups integer not null default 0,
  -- a finding about it may be open
  flagged boolean not null default false,
  next_attempt_at timestamptz default now(),
  -- start of the first call under the present key: the destination's retention counts from here
  first_attempt_at timestamptz,
  uncertain_since timestamptz,
  lease bigint,
  leased_until timestamptz,
  leased_by text,
  receipt jsonb,
  last_error text,
  finished_at timestamptz,
  constraint outbox_operations_pkey primary key (operation_id),
  constraint outbox_operations_sequence_key unique (sequence),
  constraint outbox_operations_state_check
    check (state in ('pending', 'sending', 'sent', 'uncertain', 'dead', 'canceled', 'discarded')),
  constraint outbox_operations_promise_check check (promise in ('once', 'at_least_once')),
  constraint outbox_operations_lease_check
    check ((state = 'sending') = (lease is not null and leased_until is not null)),
  constraint outbox_operations_finished_check
    check ((state in ('sent', 'canceled', 'discarded')) = (finished_at is not null)),
  constraint outbox_operations_due_check
    check (next_attempt_at is null or state in ('pending', 'uncertain')),
  constraint outbox_operations_effect_check
    check ((effect_type is null) = (effect_reference is null) and (effect_type is null or order_id is not null))
) with (
  fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000
);
create index outbox_operations_due_idx on /* schema */outbox_operations (destination, next_attempt_at, sequence)
  where next_attempt_at is not null;
create index outbox_operations_leased_idx on /* schema */outbox_operations (destination, leased_until)
  where state = 'sending';
create index outbox_operations_order_idx on /* schema */outbox_operations (order_id, destination, sequence)
  where order_id is not null;
create index outbox_operations_decision_idx on /* schema */outbox_operations (decision_id)
  where decision_id is not null;
-- what needs a person
create index outbox_operations_open_idx on /* schema */outbox_operations (state, sequence)
  where state in ('dead', 'uncertain');

-- what retention looks through
create index outbox_operations_finished_idx on /* schema */outbox_operations (destination, finished_at)
  where finished_at is not null;

-- the exact bytes, kept until sent plus the destination's window; then only their hash
create table /* schema */outbox_requests (
  operation_id uuid not null,
  request bytea not null,
  constraint outbox_requests_pkey primary key (operation_id)
);

-- one row a call or lookup, committed before anything is sent
create table /* schema */outbox_attempts (
  attempt_id bigint generated always as identity,
  operation_id uuid not null,
  number integer not null,
  kind text not null,
  key_generation integer not null,
  lease bigint not null,
  dispatcher text not null,
  started_at timestamptz not null default clock_timestamp(),
  constraint outbox_attempts_pkey primary key (attempt_id),
  constraint outbox_attempts_number_key unique (operation_id, number),
  constraint outbox_attempts_lease_key unique (lease),
  constraint outbox_attempts_kind_check check (kind in ('call', 'lookup'))
);

-- what came of an attempt; `late` means that its lease was lost before the answer came. A second row of the
-- same attempt is impossible; an attempt without a row is one whose dispatcher died, or still waits.
create table /* schema */outbox_answers (
  attempt_id bigint not null,
  outcome text not null,
  status integer,
  error text,
  answer bytea,
  -- of a late answer only: otherwise it is the operation's
  receipt jsonb,
  late boolean not null default false,
  answered_at timestamptz not null default clock_timestamp(),
  constraint outbox_answers_pkey primary key (attempt_id),
  constraint outbox_answers_outcome_check
    check (outcome in ('sent', 'retry', 'refused', 'uncertain', 'present', 'absent', 'no_answer')),
  constraint outbox_answers_answer_check check (octet_length(answer) <= 4096)
);

-- one row a destination: locked while its operations are leased, so that limits hold over all dispatchers
create table /* schema */outbox_destinations (
  destination text collate "C" not null,
  promise text not null,
  window_ms bigint not null,
  -- operations in state `sending`, counted under this row's lock
  under_way integer not null default 0,
  -- failures in a row; past the most, nothing is sent before this moment, and then one call alone
  failures integer not null default 0,
  closed_until timestamptz,
  tokens double precision not null default 0,
  refilled_at timestamptz not null default clock_timestamp(),
  -- requests of what finished before are gone
  dropped_until timestamptz not null default '-infinity',
  registered_at timestamptz not null default now(),
  constraint outbox_destinations_pkey primary key (destination),
  constraint outbox_destinations_promise_check check (promise in ('once', 'at_least_once'))
);

-- Orders whose waiting events are to be looked at again, since an operation of theirs ended. One row an
-- end: an insert that never meets another one can neither wait nor be lost.
create table /* schema */outbox_wakes (
  wake_id bigint generated always as identity,
  order_id text collate "C" not null,
  constraint outbox_wakes_pkey primary key (wake_id)
);

create table /* schema */operation_reads (
  read_id bigint generated always as identity,
  operation_id uuid not null,
  reason text not null,
  actor text not null,
  database_role text not null default session_user,
  read_at timestamptz not null default now(),
  constraint operation_reads_pkey primary key (read_id),
  constraint operation_reads_reason_check check (reason <> ''),
  constraint operation_reads_actor_check check (actor <> '')
);

create trigger outbox_attempts_append_only before update or delete or truncate on /* schema */outbox_attempts
  for each statement execute function /* schema */refuse_change();
create trigger outbox_answers_append_only before update or delete or truncate on /* schema */outbox_answers
  for each statement execute function /* schema */refuse_change();
create trigger operation_reads_append_only before update or delete or truncate on /* schema */operation_reads
  for each statement execute function /* schema */refuse_change();
create trigger outbox_operations_kept before delete or truncate on /* schema */outbox_operations
  for each statement execute function /* schema */refuse_change();
create trigger outbox_operations_permanent before update on /* schema */outbox_operations for each row
  when (old.operation_id is distinct from new.operation_id or old.destination is distinct from new.destination
    or old.order_id is distinct from new.order_id or old.effect_type is distinct from new.effect_type
    or old.effect_reference is distinct from new.effect_reference or old.name is distinct from new.name
    or old.decision_id is distinct from new.decision_id or old.request_sha256 is distinct from new.request_sha256
    or old.key_generation > new.key_generation or old.attempts > new.attempts
    or (old.state in ('sent', 'canceled', 'discarded') and old.state is distinct from new.state))
  execute function /* schema */refuse_change();

create view /* schema */outbox as
select o.operation_id, o.destination, r.request, o.state, o.key_generation, o.attempts, o.next_attempt_at,
  o.order_id, o.decision_id, o.receipt, o.effect_type, o.effect_reference, o.name, o.promise, o.request_sha256,
  o.created_at, o.first_attempt_at, o.uncertain_since, o.last_error, o.finished_at
from /* schema */outbox_operations o left join /* schema */outbox_requests r on r.operation_id = o.operation_id;

-- The bytes that a dispatcher is about to send: only under the lease that it holds. Volatile, so that it sees
-- leases of the very statement that calls it.
create function /* schema */leased_requests(leases bigint[])
returns table (operation_id text, attempt_id bigint, lease bigint, request bytea)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
  return query
  select a.operation_id::text, a.attempt_id, k.lease,
    (select r.request from /* schema */outbox_requests r where r.operation_id = a.operation_id)
  from unnest(leases) as k(lease)
  cross join lateral (
    select a.operation_id, a.attempt_id from /* schema */outbox_attempts a where a.lease = k.lease offset 0) a
  where exists (
    select from /* schema */outbox_operations o
    where o.operation_id = a.operation_id and o.lease = k.lease and o.state = 'sending' offset 0);
end $$;

-- For a person: the request and what was answered, after the reading was recorded.
create function /* schema */read_operation(operation uuid, reason text, actor text)
returns table (part text, number integer, bytes bytea)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  read_number bigint;
begin
  if coalesce(btrim(reason), '') = '' or coalesce(btrim(actor), '') = '' then
    raise exception 'reading a request needs a reason and an actor' using errcode = '22023';
  end if;
  if not exists (select 1 from /* schema */outbox_operations o where o.operation_id = operation) then
    raise exception 'there is no operation with this id' using errcode = 'P0002';
  end if;
  insert into /* schema */operation_reads (operation_id, reason, actor) values (operation, reason, actor)
    returning read_id into read_number;
  raise log 'hookledger: operation % read by % (%), record %', operation, session_user, actor, read_number;
  return query
  select 'request'::text, 0, r.request from /* schema */outbox_requests r where r.operation_id = operation
  union all
  select 'answer', a.number, w.answer from /* schema */outbox_attempts a
  join /* schema */outbox_answers w on w.attempt_id = a.attempt_id
  where a.operation_id = operation and w.answer is not null
  order by 1 desc, 2;
end $$;

create function /* schema */is_request_intact(operation uuid) returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select sha256(r.request) = o.request_sha256
  from /* schema */outbox_operations o join /* schema */outbox_requests r on r.operation_id = o.operation_id
  where o.operation_id = operation
$$;

-- Bytes of what is finished, past the window in which the destination would still know its key; at most so
-- many of each destination. What is dead or uncertain keeps them: a person may send it again. It goes on
-- where it stopped, a minute behind whatever may still be about to commit.
create function /* schema */drop_requests(most integer) returns integer
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off as $$
declare
  dropped integer := 0;
  of_one integer;
  place record;
  ids uuid[];
  reached timestamptz;
begin
  for place in
    select d.destination, d.dropped_until from /* schema */outbox_destinations d order by d.destination
    for no key update skip locked
  loop
    select array_agg(f.operation_id), max(f.finished_at) into ids, reached from (
      select o.operation_id, o.finished_at from /* schema */outbox_operations o
      where o.destination = place.destination and o.finished_at is not null and o.finished_at >= place.dropped_until
        and o.finished_at < now() - interval '1 minute'
        and o.finished_at < now() - o.window_ms * interval '1 millisecond'
        and exists (select 1 from /* schema */outbox_requests r where r.operation_id = o.operation_id)
      order by o.finished_at limit most) f;
    continue when ids is null;
    delete from /* schema */outbox_requests r where r.operation_id = any (ids);
    get diagnostics of_one = row_count;
    dropped := dropped + of_one;
    -- what finished earlier under a longer window is not passed over
    select least(reached, min(o.finished_at)) into reached from /* schema */outbox_operations o
    where o.destination = place.destination and o.finished_at is not null and o.finished_at >= place.dropped_until
      and o.finished_at <= reached and o.finished_at >= now() - o.window_ms * interval '1 millisecond';
    update /* schema */outbox_destinations d set dropped_until = reached where d.destination = place.destination;
  end loop;
  return dropped;
end $$;

revoke usage on sequence /* schema */outbox_lease_seq from public;
revoke execute on function /* schema */leased_requests(bigint[]) from public;
revoke execute on function /* schema */read_operation(uuid, text, text) from public;
revoke execute on function /* schema */is_request_intact(uuid) from public;
revoke execute on function /* schema */drop_requests(integer) from public;

-- Locks the orders of a batch that nobody else holds, and reads them with all that hangs on them: rows of
-- five tables in columns that they share. One round trip, and still two readings: inside a function each
-- statement sees what was committed before it began, so that nothing is read from before the locks.
-- Of an operation: name, destination (other), effect type and reference (workflow, provider), state and receipt.
create function /* schema */locked_orders(ids text[])
returns table (kind text, order_id text, name text, other text, source_id integer, amount bigint, currency text,
  active boolean, stated boolean, data jsonb, valid_until timestamptz, decision_id bigint, at timestamptz,
  workflow text, state text, provider text, provider_account text, version bigint)
language plpgsql volatile set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan rows 1000 as $$
#variable_conflict use_column
declare
  locked text[];
begin
  select array_agg(l.order_id) into locked from (
    select o.order_id from /* schema */orders o where o.order_id = any (ids) order by o.order_id
    for no key update skip locked) l;
  return query
  select 'order', o.order_id, o.subject, null::text, o.source_id, o.expected_amount, o.currency,
    true, true, null::jsonb, null::timestamptz, null::bigint, null::timestamptz,
    o.workflow, o.state, s.provider, o.provider_account, o.version
  from /* schema */orders o left join /* schema */sources s on s.source_id = o.source_id
  where o.order_id = any (locked);
  return query
  select r.kind, r.order_id, r.name, r.other, r.source_id, r.amount, r.currency, r.active, r.stated, r.data,
    r.valid_until, r.decision_id, r.at, r.workflow, r.state, r.provider, null::text, null::bigint
  from (
    select 'payment' as kind, p.order_id, p.payment_id as name, null::text as other, p.source_id,
      p.amount, p.currency, p.applied as active, true as stated, null::jsonb as data,
      null::timestamptz as valid_until, p.recorded_at as at, p.decision_id,
      null::text as workflow, null::text as state, null::text as provider
    from /* schema */ledger_payments p where p.order_id = any (locked)
    union all
    select 'effect ' || f.effect_type, f.order_id, f.effect_reference, f.payment_id, null,
      f.amount, f.currency, true, true, f.data, null, null, f.decision_id, null, null, null
    from /* schema */fulfillment_effects f where f.order_id = any (locked)
    union all
    select 'entitlement', e.order_id, e.subject, e.entitlement, null,
      e.quantity, null, e.active, e.stated, null, e.valid_until, null, e.granted_by, null, null, null
    from /* schema */entitlements e where e.order_id = any (locked)
    union all
    select 'operation', b.order_id, b.name, b.destination, null,
      null, null, true, true, b.receipt, null, b.created_at, b.decision_id,
      b.effect_type, b.state, b.effect_reference
    from /* schema */outbox_operations b where b.order_id = any (locked) and b.effect_type is not null) r
  order by r.at, r.decision_id, r.kind, r.name, r.other;
end $$;
revoke execute on function /* schema */locked_orders(text[]) from public;
