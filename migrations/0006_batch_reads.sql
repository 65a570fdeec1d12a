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

-- Locks the orders of a batch that nobody else holds, and reads them with all that hangs on them: rows of
-- four tables in columns that they share. One round trip, and still two readings: inside a function each
-- statement sees what was committed before it began, so that nothing is read from before the locks.
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
    r.valid_until, r.decision_id, r.at, null::text, null::text, null::text, null::text, null::bigint
  from (
    select 'payment' as kind, p.order_id, p.payment_id as name, null::text as other, p.source_id,
      p.amount, p.currency, p.applied as active, true as stated, null::jsonb as data,
      null::timestamptz as valid_until, p.recorded_at as at, p.decision_id
    from /* schema */ledger_payments p where p.order_id = any (locked)
    union all
    select 'effect ' || f.effect_type, f.order_id, f.effect_reference, f.payment_id, null,
      f.amount, f.currency, true, true, f.data, null, null, f.decision_id
    from /* schema */fulfillment_effects f where f.order_id = any (locked)
    union all
    select 'entitlement', e.order_id, e.subject, e.entitlement, null,
      e.quantity, null, e.active, e.stated, null, e.valid_until, null, e.granted_by
    from /* schema */entitlements e where e.order_id = any (locked)) r
  order by r.at, r.decision_id, r.kind, r.name, r.other;
end $$;
revoke execute on function /* schema */locked_orders(text[]) from public;
