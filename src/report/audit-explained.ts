/** P8: everything is explained, and explanations are only ever added. */
import { appendOnlyTables } from '../postgres/schema-checks.ts'
import type { AuditCheck } from './audit-check.ts'

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
    // Decisions of one order have no total order by id (ids are given out before locks are taken), so
    // the moves are read as edges of a walk: every state is entered as often as it is left, but for
    // the walk's two ends, and it ends where the order is. Opening an order names a state, moves nothing.
    sql: (s) => `with moves as (
        select order_id, from_state, to_state from ${s}ledger_decisions where order_id is not null and to_state is not null
      ), balances as (
        select m.order_id, v.state, sum(v.step) as balance
        from moves m cross join lateral (
          values (m.from_state, -1), (m.to_state, case when m.from_state is null then 0 else 1 end)) as v(state, step)
        where v.state is not null
        group by m.order_id, v.state
      ), walks as (
        select b.order_id, sum(abs(b.balance)) as loose, bool_or(b.state = o.state) as passes,
          coalesce(sum(b.balance) filter (where b.state = o.state), 0) as arrives
        from balances b join ${s}orders o on o.order_id = b.order_id group by b.order_id
      )
      select o.order_id as key, 'is ' || o.state || ', which its decisions do not lead to' as detail
      from walks w join ${s}orders o on o.order_id = w.order_id
      where not w.passes or not (w.loose = 0 or (w.loose = 2 and w.arrives = 1))
      union all
      select o.order_id, 'is ' || o.state || ', and nothing says why'
      from ${s}orders o
      where not exists (select 1 from ${s}ledger_decisions d where d.order_id = o.order_id)`,
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
    holds: 'decisions, effects and acts cannot be changed or removed',
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
    values: (_, schemaName) => [appendOnlyTables, schemaName],
  },
]
