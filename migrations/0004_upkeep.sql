-- Upkeep and the reading of payloads, as functions that run with the owner's rights: a receiver or a
-- worker keeps the inbox healthy without owning it, and nobody reads a body in passing.
--
-- Locks: whoever makes or drops a day waits at most 200 ms for one, so that a reader in the way costs
-- an insert no more than that; what could not be done now is done by the next round.

-- how long things are kept; whoever may not change this row cannot have less kept either
create table /* schema */retention (
  one_row boolean not null default true,
  payload_days integer not null default 30,
  identity_days integer not null default 400,
  changed_at timestamptz not null default now(),
  constraint retention_pkey primary key (one_row),
  constraint retention_one_row_check check (one_row),
  constraint retention_days_check check (payload_days >= 1 and identity_days >= payload_days)
);
insert into /* schema */retention default values;

-- The days asked for, but for a caller without rights on the retention never fewer than it says.
create function /* schema */kept_days(asked integer, kept integer) returns integer
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
  if asked is null or asked < 0 then
    raise exception 'days to keep must be a number that is not negative' using errcode = '22023';
  end if;
  if has_column_privilege(session_user, '/* schema */retention', 'payload_days', 'update') then return asked; end if;
  return greatest(asked, kept);
end $$;

-- Day partitions ahead. Bodies that went to the default partition meanwhile are moved into theirs.
create function /* schema */make_payload_partitions(days integer) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '200ms' as $$
declare
  today date := (now() at time zone 'UTC')::date;
  day date;
  part text;
  made integer := 0;
begin
  begin
    lock table only /* schema */payloads in share update exclusive mode; -- one maker at a time
  exception when lock_not_available or deadlock_detected then
    return 0;
  end;
  -- today and what is past come last: only they can have bodies in the default partition
  for day in
    select days_ahead.day from (
      select today + n as day from generate_series(0, least(days, 400)) n
      union select received_on from /* schema */payloads_default where received_on < today
    ) days_ahead order by days_ahead.day desc
  loop
    part := 'payloads_' || to_char(day, 'YYYYMMDD');
    continue when to_regclass(format('/* schema */%I', part)) is not null;
    begin
      if day <= today then
        -- inserts wait here, before they choose a partition: behind the move they would be refused
        lock table only /* schema */payloads in access exclusive mode;
      end if;
      execute format('create table /* schema */%I (like /* schema */payloads including defaults including constraints including storage,
        constraint %I primary key (event_key, received_on)) with (toast_tuple_target = 8160)', part, part || '_pkey');
      execute format('with moved as (delete from /* schema */payloads_default where received_on = %L returning event_key, received_on, body)
        insert into /* schema */%I (event_key, received_on, body) select event_key, received_on, body from moved', day, part);
      execute format('alter table /* schema */payloads attach partition /* schema */%I for values from (%L) to (%L)', part, day, day + 1);
      made := made + 1;
    exception when lock_not_available or deadlock_detected or duplicate_table then
      null; -- a reader is in the way
    end;
  end loop;
  return made;
end $$;

-- The days that are past their time, oldest first.
create function /* schema */due_payload_partitions(keep_days integer) returns table (part regclass, day date)
language sql stable set search_path = pg_catalog, pg_temp as $$
  select c.oid::regclass, to_date(right(c.relname, 8), 'YYYYMMDD')
  from pg_inherits i join pg_class c on c.oid = i.inhrelid
  where i.inhparent = '/* schema */payloads'::regclass and c.relname ~ '^payloads_[0-9]{8}$'
    and to_date(right(c.relname, 8), 'YYYYMMDD') < (now() at time zone 'UTC')::date
      - coalesce((select /* schema */kept_days(keep_days, r.payload_days) from /* schema */retention r), 36500)
  order by c.relname
$$;

-- Moves bodies of unfinished events of due days aside, at most so many at once, and says how many.
-- Whatever has no final decision and is not ignored is unfinished, wherever it is.
create function /* schema */hold_payloads(keep_days integer, at_most integer) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '200ms' as $$
declare
  due record;
  held integer := 0;
  copied integer;
begin
  for due in select d.part from /* schema */due_payload_partitions(keep_days) d loop
    exit when held >= at_most;
    begin
      execute format('with unfinished as materialized (
          select p.event_key from %1$s p
          where not exists (select from /* schema */ledger_decisions d where d.event_key = p.event_key and d.final)
            and not exists (select from /* schema */inbox_ignored i where i.event_key = p.event_key)
            and not exists (select from /* schema */payloads_held h where h.event_key = p.event_key)
          order by p.event_key limit $1)
        insert into /* schema */payloads_held (event_key, body)
        select p.event_key, p.body from unfinished u join %1$s p on p.event_key = u.event_key
        order by p.event_key on conflict (event_key) do nothing', due.part) using at_most - held;
      get diagnostics copied = row_count;
      held := held + copied;
    exception when lock_not_available or deadlock_detected or undefined_table then
      exit;
    end;
  end loop;
  return held;
end $$;

-- Drops the days before `keep_days`, and says how many. A day of which bodies have still to be moved
-- aside stays until the next call.
create function /* schema */drop_payload_partitions(keep_days integer) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '200ms' as $$
declare
  due record;
  parts regclass[] := '{}';
  days date[] := '{}';
  at_once constant integer := 2000;
  kept integer := coalesce((select /* schema */kept_days(keep_days, r.payload_days) from /* schema */retention r), 36500);
begin
  -- what is finished by now needs no body: in the default partition, and among those held
  delete from /* schema */payloads_default p
  where p.received_on < (now() at time zone 'UTC')::date - kept
    and (exists (select from /* schema */ledger_decisions d where d.event_key = p.event_key and d.final)
      or exists (select from /* schema */inbox_ignored i where i.event_key = p.event_key));
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

-- The bodies of events that are in work: the engine's own way, for unfinished events only. Each one's
-- day leads to its partition; a list of days would be looked for in all of them.
create function /* schema */claimed_payloads(keys bigint[])
returns table (event_key bigint, body bytea)
language sql stable security definer set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off rows 500 as $$
  with unfinished as materialized (
    select w.event_key, w.received_on from (
      select r.event_key, r.received_on from /* schema */inbox_ready r where r.event_key = any (keys)
      union all select u.event_key, u.received_on from /* schema */inbox_suspects u where u.event_key = any (keys)) w
    where not exists (select 1 from /* schema */ledger_decisions d where d.event_key = w.event_key and d.final))
  select p.event_key, p.body
  from unfinished w join /* schema */payloads p on p.event_key = w.event_key and p.received_on = w.received_on
  union all
  select h.event_key, h.body
  from unfinished w join /* schema */payloads_held h on h.event_key = w.event_key
$$;

-- One body, for a person: the reading is recorded with its reason before the body is returned, and the
-- server's log has a line of it even where the record is rolled back. Null when it is no longer kept.
create function /* schema */read_payload(key bigint, reason text, actor text) returns bytea
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  found_body bytea;
  received date;
  number bigint;
begin
  if coalesce(btrim(reason), '') = '' or coalesce(btrim(actor), '') = '' then
    raise exception 'reading a payload needs a reason and an actor' using errcode = '22023';
  end if;
  select (e.received_at at time zone 'UTC')::date into received from /* schema */inbox_events e where e.event_key = key;
  if received is null then
    raise exception 'there is no event with this key' using errcode = 'P0002';
  end if;
  insert into /* schema */payload_reads (event_key, reason, actor) values (key, reason, actor) returning read_id into number;
  raise log 'hookledger: role % reads the payload of event % as %, reading %', session_user, key, to_json(left(actor, 100)), number;
  select p.body into found_body from /* schema */payloads p where p.event_key = key and p.received_on = received;
  if found_body is null then
    select h.body into found_body from /* schema */payloads_held h where h.event_key = key;
  end if;
  return found_body;
end $$;

-- Whether a stored body is the one that arrived, without showing it; null when it is no longer kept.
create function /* schema */is_payload_intact(key bigint) returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select bool_and(sha256(b.body) = e.body_sha256 and length(b.body) = e.body_bytes)
  from /* schema */inbox_events e
  join lateral (
    select p.body from /* schema */payloads p
    where p.event_key = e.event_key and p.received_on = (e.received_at at time zone 'UTC')::date
    union all select h.body from /* schema */payloads_held h where h.event_key = e.event_key
  ) b on true
  where e.event_key = key
$$;

-- What the start checks ask about partitions, for roles that may not look at the tables.
create function /* schema */payload_state() returns table (days_ahead integer, has_strays boolean, held bigint)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select
    (select count(*)::integer from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent = '/* schema */payloads'::regclass and c.relname ~ '^payloads_[0-9]{8}$'
       and to_date(right(c.relname, 8), 'YYYYMMDD') >= (now() at time zone 'UTC')::date),
    exists (select from /* schema */payloads_default),
    (select count(*) from /* schema */payloads_held)
$$;

-- Identities and their traces, long after any provider resends. Unfinished ones are never touched; the
-- walk ends at the first that is young enough, so that it costs what it drops.
create function /* schema */drop_identities(keep_days integer, at_most integer) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  cutoff timestamptz := now() - make_interval(days =>
    coalesce((select /* schema */kept_days(keep_days, r.identity_days) from /* schema */retention r), 36500));
  event record;
  keys bigint[] := '{}';
  gone integer;
begin
  for event in
    select e.event_key, e.received_at,
      exists (select from /* schema */ledger_decisions d where d.event_key = e.event_key and d.final)
        or exists (select from /* schema */inbox_ignored i where i.event_key = e.event_key) as finished
    from /* schema */inbox_events e order by e.event_key
  loop
    exit when event.received_at >= cutoff or cardinality(keys) >= least(at_most, 10000);
    if event.finished then keys := keys || event.event_key; end if;
  end loop;
  -- an ignored event may be waking up at this moment: its row is the token
  with ignored as (
    delete from /* schema */inbox_ignored i where i.event_key in (
      select n.event_key from /* schema */inbox_ignored n where n.event_key = any (keys) order by n.event_key for update skip locked)
    returning i.event_key
  ), old as materialized (
    select e.event_key, e.source_id, e.event_id from /* schema */inbox_events e
    where e.event_key = any (keys)
      and (exists (select from /* schema */ledger_decisions d where d.event_key = e.event_key and d.final)
        or e.event_key in (select i.event_key from ignored i))
    order by e.event_key for update skip locked
  ), traces as (
    delete from /* schema */deliveries d using old where d.source_id = old.source_id and d.event_id = old.event_id
  ), waits as (
    delete from /* schema */inbox_waits w using old where w.event_key = old.event_key
  ), rearmed as (
    delete from /* schema */inbox_rearmed r using old where r.event_key = old.event_key
  ), held as (
    delete from /* schema */payloads_held h using old where h.event_key = old.event_key
  )
  delete from /* schema */inbox_events e using old where e.event_key = old.event_key;
  get diagnostics gone = row_count;
  return gone;
end $$;

-- Counts of refused requests, when nobody asks any more.
create function /* schema */drop_rejections(keep_days integer) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  gone integer;
begin
  delete from /* schema */rejections where last_at < now() - make_interval(days => greatest(keep_days, 1));
  get diagnostics gone = row_count;
  return gone;
end $$;

-- Executable by nobody but the owner until somebody is named.
revoke execute on function /* schema */refuse_change() from public;
revoke execute on function /* schema */kept_days(integer, integer) from public;
revoke execute on function /* schema */make_payload_partitions(integer) from public;
revoke execute on function /* schema */due_payload_partitions(integer) from public;
revoke execute on function /* schema */hold_payloads(integer, integer) from public;
revoke execute on function /* schema */drop_payload_partitions(integer) from public;
revoke execute on function /* schema */claimed_payloads(bigint[]) from public;
revoke execute on function /* schema */read_payload(bigint, text, text) from public;
revoke execute on function /* schema */is_payload_intact(bigint) from public;
revoke execute on function /* schema */payload_state() from public;
revoke execute on function /* schema */drop_identities(integer, integer) from public;
revoke execute on function /* schema */drop_rejections(integer) from public;
