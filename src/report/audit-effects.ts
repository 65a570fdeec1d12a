/** P2: at most one effect; P3: what belongs together was committed together. */
import { promisedIndexes } from '../postgres/schema-checks.ts'
import type { AuditCheck } from './audit-check.ts'

function twice(
  name: string,
  holds: string,
  table: string,
  key: readonly string[],
  where = '',
): AuditCheck {
  return {
    promise: 'P2',
    name,
    holds,
    onHeap: true,
    sql: (s) => `select concat_ws('/', ${key.join(', ')}) as key, count(*) || ' rows' as detail
      from ${s}${table} ${where} group by ${key.join(', ')} having count(*) > 1`,
  }
}

/** The checks of P2, each on the heap. */
export const onceChecks: readonly AuditCheck[] = [
  twice('effect_twice', 'an effect of an order happened once', 'fulfillment_effects', [
    'order_id',
    'effect_type',
    'effect_reference',
  ]),
  twice('payment_twice', 'a payment is recorded for one order, once', 'ledger_payments', [
    'source_id',
    'payment_id',
  ]),
  twice(
    'decided_twice',
    'an event has one final decision',
    'ledger_decisions',
    ['event_key'],
    'where final and event_key is not null',
  ),
  twice('order_twice', 'an order id is one order', 'orders', ['order_id']),
  twice('name_twice', 'a name leads to one order', 'order_names', ['source_id', 'kind', 'name']),
  {
    promise: 'P2',
    name: 'unique_index_broken',
    holds: 'the unique indexes that prevent all this are there, valid and byte-wise',
    sql: () => `select w.name as key,
        case when c.oid is null then 'missing'
          when not (i.indisunique and i.indisvalid and i.indisready and i.indimmediate) then 'not unique, not valid or not ready'
          else 'another collation than "C"' end as detail
      from unnest($1::text[]) as w(name)
      left join pg_namespace n on n.nspname = $2
      left join pg_class c on c.relnamespace = n.oid and c.relname = w.name
      left join pg_index i on i.indexrelid = c.oid
      where i.indexrelid is null or not (i.indisunique and i.indisvalid and i.indisready and i.indimmediate)
        or exists (select 1 from unnest(i.indcollation) as o(oid) where o.oid <> 0 and o.oid <> 'pg_catalog."C"'::regcollation)`,
    values: (_, schemaName) => [promisedIndexes.map(([, , index]) => index), schemaName],
  },
]

/** Kinds of decisions that change something, and so may stand behind an effect. */
const changing = `('fulfilled', 'moved', 'reversed', 'adopted', 'repaired', 'redecided', 'opened')`

/** The checks of P3. Transaction ids are compared within one commit only, never with others. */
export const togetherChecks: readonly AuditCheck[] = [
  {
    promise: 'P3',
    name: 'effect_without_decision',
    holds: 'every effect was committed together with the decision of its order that made it',
    sql: (s) => `select concat_ws('/', e.order_id, e.effect_type, e.effect_reference) as key,
        case when d.decision_id is null then 'its decision ' || e.decision_id || ' is missing'
          when d.order_id is distinct from e.order_id then 'its decision ' || e.decision_id || ' is about another order'
          when d.xid <> e.xid then 'committed apart from its decision ' || e.decision_id
          else 'its decision ' || e.decision_id || ' (' || d.kind || ') makes no effects' end as detail
      from ${s}fulfillment_effects e
      left join ${s}ledger_decisions d on d.decision_id = e.decision_id
      where d.decision_id is null or d.order_id is distinct from e.order_id or d.xid <> e.xid or d.kind not in ${changing}`,
  },
  {
    promise: 'P3',
    name: 'decision_without_effect',
    holds: 'every effect that a decision made is there',
    sql: (s) => `select 'decision:' || d.decision_id as key,
        jsonb_array_length(d.evidence -> 'effects') || ' effects decided, ' || coalesce(e.effects, 0) || ' recorded' as detail
      from ${s}ledger_decisions d
      left join (select decision_id, count(*) as effects from ${s}fulfillment_effects group by decision_id) e
        on e.decision_id = d.decision_id
      where d.kind in ${changing} and jsonb_typeof(d.evidence -> 'effects') = 'array'
        and jsonb_array_length(d.evidence -> 'effects') <> coalesce(e.effects, 0)`,
  },
  {
    promise: 'P3',
    name: 'payment_without_decision',
    holds:
      'every payment was recorded by a decision about its order, applied ones by one that changed it',
    sql: (s) => `select p.source_id || '/' || p.payment_id as key,
        case when d.decision_id is null then 'its decision ' || p.decision_id || ' is missing'
          when d.order_id is distinct from p.order_id then 'its decision ' || p.decision_id || ' is about another order'
          when d.kind in ${changing} then 'applied by decision ' || p.decision_id || ', which names another payment'
          else 'applied by a decision of kind ' || d.kind end as detail
      from ${s}ledger_payments p
      left join ${s}ledger_decisions d on d.decision_id = p.decision_id
      where d.decision_id is null or d.order_id is distinct from p.order_id or (p.applied and d.kind not in ${changing})
        or (p.applied and d.kind in ('fulfilled', 'moved', 'reversed')
          and position('\\' in p.payment_id) = 0 and d.evidence ->> 'payment' is distinct from p.payment_id)`,
  },
  {
    promise: 'P3',
    name: 'order_missing',
    holds: 'whatever the ledger says of an order, that order exists',
    sql: (s) => `select m.order_id as key, m.what || ' of an order that does not exist' as detail
      from (
        select distinct e.order_id, 'an effect' as what from ${s}fulfillment_effects e
        where not exists (select 1 from ${s}orders o where o.order_id = e.order_id)
        union all
        select distinct p.order_id, 'a payment' from ${s}ledger_payments p
        where not exists (select 1 from ${s}orders o where o.order_id = p.order_id)
        union all
        select distinct t.order_id, 'an entitlement' from ${s}entitlements t
        where not exists (select 1 from ${s}orders o where o.order_id = t.order_id)
        union all
        select distinct n.order_id, 'a name' from ${s}order_names n
        where n.order_id is not null and not exists (select 1 from ${s}orders o where o.order_id = n.order_id)
      ) m`,
  },
  {
    promise: 'P3',
    name: 'finished_and_unfinished',
    holds: 'an event with a final decision is not waiting, dead, ignored or to be tried again',
    sql: (
      s,
    ) => `select 'event:' || f.event_key as key, 'has a final decision and is still ' || f.state as detail
      from (
        select event_key, 'deferred' as state from ${s}inbox_deferred
        union all select event_key, 'dead' from ${s}inbox_dead
        union all select event_key, 'ignored' from ${s}inbox_ignored
        union all select event_key, 'to be tried again' from ${s}inbox_delayed
        union all select event_key, 'a suspect' from ${s}inbox_suspects
        union all select event_key, 'waiting for an answer' from ${s}inbox_gathers where waiting
      ) f
      where exists (select 1 from ${s}ledger_decisions d where d.event_key = f.event_key and d.final)`,
  },
]
