-- Upkeep and the reading of payloads, as functions that run with the owner's rights: a receiver or a
-- worker can keep the inbox healthy without owning it, and nobody reads a body in passing.

-- Day partitions ahead. Bodies that went to the default partition meanwhile are moved into theirs.
create function /* schema */make_payload_partitions(days integer) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  day date;
  part text;
  made integer := 0;
begin
  perform set_config('lock_timeout', '200ms', true);
  for day in select generate_series((now() at time zone 'UTC')::date, (now() at time zone 'UTC')::date + days, '1 day')::date loop
    part := 'payloads_' || to_char(day, 'YYYYMMDD');
    if to_regclass('/* schema */' || quote_ident(part)) is not null then continue; end if;
    begin
      execute format('create table /* schema */%I (like /* schema */payloads including constraints) with (toast_tuple_target = 8160)', part);
      execute format('with moved as (delete from /* schema */payloads_default where received_on = %L returning event_key, received_on, body)
        insert into /* schema */%I select event_key, received_on, body from moved', day, part);
      execute format('alter table /* schema */payloads attach partition /* schema */%I for values from (%L) to (%L)', part, day, day + 1);
      made := made + 1;
    exception when lock_not_available or deadlock_detected or duplicate_table then
      null; -- somebody else makes it, or a reader is in the way: the next run tries again
    end;
  end loop;
  return made;
end $$;

-- Drops the days before `keep_days`; bodies of unfinished events are moved aside first.
create function /* schema */drop_payload_partitions(keep_days integer) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  part record;
  dropped integer := 0;
begin
  perform set_config('lock_timeout', '200ms', true);
  for part in
    select c.relname, to_date(right(c.relname, 8), 'YYYYMMDD') as day
    from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = '/* schema */payloads'::regclass and c.relname ~ '^payloads_\d{8}$'
    order by c.relname
  loop
    exit when part.day >= (now() at time zone 'UTC')::date - keep_days;
    begin
      -- the lock comes first: nothing can become unfinished between the copy and the drop
      execute format('lock table /* schema */%I in access exclusive mode', part.relname);
      execute format('insert into /* schema */payloads_held (event_key, body)
        select p.event_key, p.body from /* schema */%I p
        where not exists (select 1 from /* schema */ledger_decisions d where d.event_key = p.event_key and d.final)
          and not exists (select 1 from /* schema */inbox_ignored i where i.event_key = p.event_key)
        order by p.event_key on conflict (event_key) do nothing', part.relname);
      execute format('drop table /* schema */%I', part.relname);
      dropped := dropped + 1;
    exception when lock_not_available or deadlock_detected then
      exit; -- a report reads it: stalling every insert behind us would be worse
    end;
  end loop;
  delete from /* schema */payloads_default
  where received_on < (now() at time zone 'UTC')::date - keep_days
    and exists (select 1 from /* schema */ledger_decisions d where d.event_key = payloads_default.event_key and d.final);
  -- what was moved aside and has been finished since
  delete from /* schema */payloads_held h
  where exists (select 1 from /* schema */ledger_decisions d where d.event_key = h.event_key and d.final);
  return dropped;
end $$;

-- The bodies of events that are in work: the engine's own way, for unfinished events only.
create function /* schema */claimed_payloads(keys bigint[], days date[])
returns table (event_key bigint, body bytea)
language sql stable security definer set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off rows 500 as $$
  select p.event_key, p.body
  from /* schema */payloads p
  where p.received_on = any (days) and p.event_key = any (keys)
    and (exists (select 1 from /* schema */inbox_ready r where r.event_key = p.event_key)
      or exists (select 1 from /* schema */inbox_suspects u where u.event_key = p.event_key))
  union all
  select h.event_key, h.body
  from /* schema */payloads_held h
  where h.event_key = any (keys)
    and (exists (select 1 from /* schema */inbox_ready r where r.event_key = h.event_key)
      or exists (select 1 from /* schema */inbox_suspects u where u.event_key = h.event_key))
$$;

-- One body, for a person: the reading is recorded with its reason before the body is returned.
create function /* schema */read_payload(key bigint, reason text, actor text) returns bytea
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  found_body bytea;
begin
  if coalesce(btrim(reason), '') = '' or coalesce(btrim(actor), '') = '' then
    raise exception 'reading a payload needs a reason and an actor' using errcode = '22023';
  end if;
  insert into /* schema */payload_reads (event_key, reason, actor) values (key, reason, actor);
  select p.body into found_body
  from /* schema */inbox_events e
  join /* schema */payloads p on p.event_key = e.event_key and p.received_on = (e.received_at at time zone 'UTC')::date
  where e.event_key = key;
  if found_body is null then
    select h.body into found_body from /* schema */payloads_held h where h.event_key = key;
  end if;
  return found_body;
end $$;

-- Identities and their traces, long after any provider resends. Unfinished ones are never touched.
create function /* schema */drop_identities(keep_days integer, at_most integer) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  gone integer;
begin
  with old as (
    select e.event_key, e.source_id, e.event_id from /* schema */inbox_events e
    where e.event_key in (select o.event_key from /* schema */inbox_events o order by o.event_key limit at_most)
      and e.received_at < now() - make_interval(days => keep_days)
      and (exists (select 1 from /* schema */ledger_decisions d where d.event_key = e.event_key and d.final)
        or exists (select 1 from /* schema */inbox_ignored i where i.event_key = e.event_key))
    order by e.event_key for update skip locked
  ), traces as (
    delete from /* schema */deliveries d using old where d.source_id = old.source_id and d.event_id = old.event_id
  ), waits as (
    delete from /* schema */inbox_waits w using old where w.event_key = old.event_key
  ), ignored as (
    delete from /* schema */inbox_ignored i using old where i.event_key = old.event_key
  ), events as (
    delete from /* schema */inbox_events e using old where e.event_key = old.event_key returning e.event_key
  )
  select count(*) into gone from events;
  return gone;
end $$;
