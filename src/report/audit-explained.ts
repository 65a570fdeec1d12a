/** P8: everything is explained, and explanations are only ever added. */
import { appendOnlyTables } from '../postgres/schema-checks.ts'
import type { AuditCheck } from './audit-check.ts'

/**
 * Decisions of one order have no total order by id (ids are given out before locks are taken), so the
 * moves are read as edges of a walk: every state is entered as often as it is left, but for the walk's
 * two ends, and it ends where the order is. Opening an order names a state and moves nothing.
 *
 * Most orders pass by one sum: entered less left, in hashes, is where it is less where it began. Only
 * the rest is counted state by state.
 */
function unexplainedOrders(s: string): string {
  const hash = (state: string): string => `hashtext(${state})::bigint`
  return `with moves as not materialized (
      select order_id, from_state, to_state from ${s}ledger_decisions where order_id is not null and to_state is not null
    ), travelled as (
      select order_id, min(coalesce(from_state, to_state)) as low, max(coalesce(from_state, to_state)) as high,
        sum(case when from_state is null then 0 else ${hash('to_state')} - ${hash('from_state')} end) as way
      from moves group by order_id
    ), looked_at as materialized (
      select o.order_id, o.state from travelled t join ${s}orders o on o.order_id = t.order_id
      where t.way not in (${hash('o.state')} - ${hash('t.low')}, ${hash('o.state')} - ${hash('t.high')})
    ), balances as (
      select l.order_id, l.state as present, v.state, sum(v.step) as balance
      from looked_at l
      join moves m on m.order_id = l.order_id
      cross join lateral (
        values (m.from_state, -1), (m.to_state, case when m.from_state is null then 0 else 1 end)) as v(state, step)
      where v.state is not null
      group by l.order_id, l.state, v.state
    ), walks as (
      select order_id, present, sum(abs(balance)) as loose, bool_or(state = present) as passes,
        coalesce(sum(balance) filter (where state = present), 0) as arrives
      from balances group by order_id, present
    )
    select order_id, order_id as key, 'is ' || present || ', which its decisions do not lead to' as detail
    from walks where not passes or not (loose = 0 or (loose = 2 and arrives = 1))
    union all
    select o.order_id, o.order_id, 'is ' || o.state || ', and nothing says why'
    from ${s}orders o
    where not exists (select 1 from ${s}ledger_decisions d where d.order_id = o.order_id)`
}

/** The checks of P8. */
export const explainedChecks: readonly AuditCheck[] = [
  {
    promise: 'P8',
    name: 'decision_without_reason',
    holds: 'every decision says why, by whom, and under which version of its workflow',
    sql: (s) => `select 'decision:' || decision_id as key,
        case when btrim(reason) = '' then 'no reason' when btrim(actor) = '' then 'no actor' else 'no workflow version' end as detail
      from ${s}ledger_decisions
      where btrim(reason) = '' or btrim(actor) = ''
        or (workflow is not null and event_key is not null and coalesce(btrim(workflow_version), '') = '')`,
  },
  {
    promise: 'P8',
    name: 'order_unexplained',
    holds: 'the transitions recorded for an order lead, without a gap, to the state that it is in',
    knownByFinding: true,
    sql: unexplainedOrders,
  },
  {
    promise: 'P8',
    name: 'state_unexplained',
    holds: 'what is ignored, dead or waiting has a decision that says why',
    sql: (
      s,
    ) => `select 'event:' || n.event_key as key, n.kind || ' without a decision that says so' as detail
      from (
        select event_key, 'ignored' as kind from ${s}inbox_ignored
        union all select event_key, 'dead' from ${s}inbox_dead
        union all select event_key, 'deferred' from ${s}inbox_deferred
      ) n
      where not exists (select 1 from ${s}ledger_decisions d
        where d.event_key = n.event_key and not d.final and d.kind = n.kind)`,
  },
  {
    promise: 'P8',
    name: 'append_only_disabled',
    holds: 'decisions, effects, evidence, acts and repairs cannot be changed or removed',
    sql: () => `select w.relation as key, 'the trigger that refuses changes is missing or disabled' as detail
      from unnest($1::text[]) as w(relation)
      left join pg_namespace n on n.nspname = $2
      left join pg_class r on r.relnamespace = n.oid and r.relname = w.relation
      left join pg_trigger t on t.tgrelid = r.oid and t.tgname = w.relation || '_append_only'
      where t.oid is null or t.tgenabled not in ('O', 'A')
      union all
      select r.relname || ' ' || coalesce(g.rolname, 'public'), 'may ' || lower(a.privilege_type) || ' rows'
      from pg_class r
      join pg_namespace n on n.oid = r.relnamespace and n.nspname = $2
      cross join lateral aclexplode(r.relacl) a
      left join pg_roles g on g.oid = a.grantee
      where r.relname = any ($1::text[]) and a.privilege_type in ('UPDATE', 'DELETE', 'TRUNCATE') and a.grantee <> r.relowner`,
    values: (_, schemaName) => [[...appendOnlyTables, 'repairs', 'evidence'], schemaName],
  },
]
