-- What a worker reads of the events that it has locked, with their bodies, in one answer: all columns as
-- text beside the bytes, since they come in binary form. In a language that keeps its plan for as long
-- as the connection lives: the partitions that the future holds are not planned for at every call. A
-- body is given for unfinished events only.
create function /* schema */claimed_events(keys bigint[])
returns table (event_key text, source_id text, event_id text, event_type text, via text, received_ms text,
  occurred_ms text, finished text, decision_id text, body bytea)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set plan_cache_mode = force_generic_plan rows 500 as $$
#variable_conflict use_column
begin
  return query
  select e.event_key::text, e.source_id::text, e.event_id, e.event_type, e.via,
    floor(extract(epoch from e.received_at) * 1000)::bigint::text,
    floor(extract(epoch from e.occurred_at) * 1000)::bigint::text,
    e.finished::text, nextval('/* schema */ledger_decisions_decision_id_seq'::regclass)::text,
    case when e.finished or e.received_on is null then null else coalesce(
      (select p.body from /* schema */payloads p where p.event_key = e.event_key and p.received_on = e.received_on),
      (select h.body from /* schema */payloads_held h where h.event_key = e.event_key)) end
  from unnest(keys) as k(event_key)
  cross join lateral (
    select i.event_key, i.source_id, i.event_id, i.event_type, i.via, i.received_at, i.occurred_at,
      coalesce((select true from /* schema */ledger_decisions d where d.event_key = k.event_key and d.final), false) as finished,
      coalesce(
        (select r.received_on from /* schema */inbox_ready r where r.event_key = k.event_key),
        (select u.received_on from /* schema */inbox_suspects u where u.event_key = k.event_key)) as received_on
    from /* schema */inbox_events i
    where i.event_key = k.event_key
    offset 0) e;
end $$;
revoke execute on function /* schema */claimed_events(bigint[]) from public;
