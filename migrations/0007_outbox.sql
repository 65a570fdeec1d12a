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
-- What an operation is: an update that does not name these columns pays nothing for the guard.
create trigger outbox_operations_permanent before update of operation_id, destination, order_id, effect_type,
  effect_reference, name, decision_id, request_sha256, created_at on /* schema */outbox_operations
  for each row when ((old.operation_id, old.destination, old.order_id, old.effect_type, old.effect_reference,
    old.name, old.decision_id, old.request_sha256, old.created_at)
    is distinct from (new.operation_id, new.destination, new.order_id, new.effect_type, new.effect_reference,
    new.name, new.decision_id, new.request_sha256, new.created_at))
  execute function /* schema */refuse_change();
-- Where it stands only ever goes on.
create trigger outbox_operations_forward before update on /* schema */outbox_operations for each row
  when (old.finished_at is not null and old.state <> new.state or old.key_generation > new.key_generation
    or old.attempts > new.attempts)
  execute function /* schema */refuse_change();

create view /* schema */outbox as
select o.operation_id, o.destination, r.request, o.state, o.key_generation, o.attempts, o.next_attempt_at,
  o.order_id, o.decision_id, o.receipt, o.effect_type, o.effect_reference, o.name, o.promise, o.request_sha256,
  o.created_at, o.first_attempt_at, o.uncertain_since, o.last_error, o.finished_at
from /* schema */outbox_operations o left join /* schema */outbox_requests r on r.operation_id = o.operation_id;

-- The bytes that a dispatcher is about to send: only of attempts whose lease it still holds. Volatile, so
-- that it sees attempts of the very statement that calls it.
create function /* schema */leased_requests(attempts bigint[])
returns table (operation_id text, attempt_id bigint, lease bigint, request bytea)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
  return query
  select a.operation_id::text, a.attempt_id, a.lease,
    (select r.request from /* schema */outbox_requests r where r.operation_id = a.operation_id)
  from unnest(attempts) as k(attempt_id)
  cross join lateral (
    select a.operation_id, a.attempt_id, a.lease from /* schema */outbox_attempts a
    where a.attempt_id = k.attempt_id offset 0) a
  where exists (
    select from /* schema */outbox_operations o
    where o.operation_id = a.operation_id and o.lease = a.lease and o.state = 'sending' offset 0);
end $$;

-- On destinations that take the operations of an order one after the other: makes the next one of each
-- order due that waits behind one that ended. Under the destination's lock.
create function /* schema */unpark_orders(to_destination text, order_ids text[]) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan as $$
begin
  update /* schema */outbox_operations o set next_attempt_at = now()
  where o.operation_id = any (array(
      select n.operation_id from unnest(order_ids) as k(order_id)
      cross join lateral (
        select w.operation_id, w.state from /* schema */outbox_operations w
        where w.order_id = k.order_id and w.destination = to_destination
          and w.state not in ('sent', 'canceled', 'discarded')
        order by w.sequence limit 1) n
      where n.state = 'pending'))
    and o.attempts = 0 and o.next_attempt_at > now();
end $$;

-- The usual round of a dispatcher in one round trip: results of first calls that were sent go in, operations
-- that were never called go out. It answers `slow`, with nothing written, where the destination's row says
-- that there is more to think about (failures, a breaker); operations that are anything but new are left
-- where they are, and told. What it writes is what the longer way (round.ts) would write.
create function /* schema */dispatch_round(to_destination text, by_dispatcher text, lock_ms integer,
  lease_ms double precision, most_under_way integer, wanted integer, due_from timestamptz, in_sequence boolean,
  ended uuid[], leases bigint[], attempts bigint[], statuses integer[], receipts text[], answers text[], order_ids text[])
returns table (kind text, operation_id text, attempt_id text, lease text, order_id text, age_ms text, request bytea)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off
set max_parallel_workers_per_gather = 0 set jit = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
  figures record;
  settled integer := 0;
  free integer;
  chosen uuid[];
  seen integer := 0;
  others boolean := false;
  last_due text;
  leased integer := 0;
begin
  perform set_config('lock_timeout', lock_ms::text, true);
  select d.under_way, d.failures, d.closed_until into figures
  from /* schema */outbox_destinations d where d.destination = to_destination for no key update;
  if not found or figures.failures <> 0 or figures.closed_until is not null then
    return query select 'slow', null::text, null::text, null::text, null::text, null::text, null::bytea;
    return;
  end if;
  if cardinality(ended) > 0 then
    update /* schema */outbox_operations o set state = 'sent', next_attempt_at = null, receipt = k.receipt::jsonb,
      last_error = null, lookups = 0, finished_at = now(), uncertain_since = null, lease = null,
      leased_until = null, leased_by = null
    from unnest(ended, leases, receipts) as k(operation_id, lease, receipt)
    where o.operation_id = k.operation_id and o.lease = k.lease and o.state = 'sending' and o.attempts = 1;
    get diagnostics settled = row_count;
    if settled <> cardinality(ended) then
      raise exception 'a lease is lost' using errcode = 'HL001';
    end if;
    insert into /* schema */outbox_answers (attempt_id, outcome, status, answer)
    select k.attempt_id, 'sent', k.status, decode(k.answer, 'hex')
    from unnest(attempts, statuses, answers) as k(attempt_id, status, answer);
    insert into /* schema */outbox_wakes (order_id) select k.order_id from unnest(order_ids) as k(order_id) where k.order_id is not null;
    if in_sequence then
      perform /* schema */unpark_orders(to_destination, array_remove(order_ids, null));
    end if;
  end if;
  free := least(wanted, most_under_way - greatest(0, figures.under_way - settled));
  if free > 0 then
    select array_agg(c.operation_id) filter (where c.is_new), coalesce(bool_or(not c.is_new), false), count(*), max(c.next_attempt_at)::text
    into chosen, others, seen, last_due
    from (
      select o.operation_id, o.next_attempt_at,
        o.state = 'pending' and o.attempts = 0 and o.first_attempt_at is null and o.while_states is null and not o.flagged
          and not (in_sequence and o.order_id is not null and coalesce((
            select true from /* schema */outbox_operations e
            where e.order_id = o.order_id and e.destination = o.destination and e.sequence < o.sequence
              and e.state not in ('sent', 'canceled', 'discarded') limit 1), false)) as is_new
      from /* schema */outbox_operations o
      where o.destination = to_destination and o.next_attempt_at is not null
        and o.next_attempt_at <= statement_timestamp() and o.next_attempt_at >= due_from
      order by o.next_attempt_at, o.sequence limit free for no key update skip locked) c;
    if chosen is not null then
      return query
      with taken as (
        update /* schema */outbox_operations o set state = 'sending', next_attempt_at = null, attempts = 1, calls = o.calls + 1,
          first_attempt_at = clock_timestamp(), lease = nextval('/* schema */outbox_lease_seq'), leased_by = by_dispatcher,
          leased_until = clock_timestamp() + lease_ms * interval '1 millisecond'
        where o.operation_id = any (chosen)
        returning o.operation_id, o.key_generation, o.lease),
      made as (
        insert into /* schema */outbox_attempts (operation_id, number, kind, key_generation, lease, dispatcher)
        select t.operation_id, 1, 'call', t.key_generation, t.lease, by_dispatcher from taken t
        returning operation_id, attempt_id, lease)
      select 'leased', m.operation_id::text, m.attempt_id::text, m.lease::text, i.order_id,
        (extract(epoch from statement_timestamp() - i.created_at) * 1000)::text,
        (select r.request from /* schema */outbox_requests r where r.operation_id = m.operation_id)
      from made m cross join lateral (
        select o.order_id, o.created_at from /* schema */outbox_operations o where o.operation_id = m.operation_id offset 0) i;
      leased := cardinality(chosen);
    end if;
  end if;
  if leased <> settled then
    update /* schema */outbox_destinations d
    set under_way = greatest(0, figures.under_way - settled) + leased, refilled_at = clock_timestamp()
    where d.destination = to_destination;
  end if;
  return query select 'round', case when free > 0 and seen = free then last_due end,
    seen::text, others::text, null::text, null::text, null::bytea;
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
revoke execute on function /* schema */unpark_orders(text, text[]) from public;
revoke execute on function /* schema */dispatch_round(text, text, integer, double precision, integer, integer, timestamptz, boolean,
  uuid[], bigint[], bigint[], integer[], text[], text[], text[]) from public;
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
