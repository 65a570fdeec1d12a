/** P4: nobody is entitled by an order that does not entitle, and nobody goes without who is. */
import { promisedConstraints } from '../postgres/schema-checks.ts'
import type { AuditCheck } from './audit-check.ts'

/** Whether the evidence of decision `d` names this as granted; what evidence can hold only changed is not compared. */
const namesGrant = `(jsonb_typeof(d.evidence -> 'granted') = 'array'
          and d.evidence -> 'granted' ? (t.subject || ' ' || t.entitlement))
        or position('\\' in t.subject || t.entitlement) > 0`

/** The checks of P4. */
export const entitledChecks: readonly AuditCheck[] = [
  {
    promise: 'P4',
    name: 'entitled_without_state',
    holds: 'an entitlement is active only while the state of its order entitles',
    knownByFinding: true,
    sql: (s) => `select t.order_id, concat_ws('/', t.order_id, t.subject, t.entitlement) as key,
        'active while the order is ' || coalesce(o.state, 'missing') as detail
      from ${s}entitlements t
      left join ${s}orders o on o.order_id = t.order_id
      left join ${s}workflow_states w on w.workflow = o.workflow and w.state = o.state
      where t.active and w.entitles is not true`,
  },
  {
    promise: 'P4',
    name: 'entitled_without_decision',
    holds:
      'an active entitlement names the decision of its own order that granted it, and that entitles',
    knownByFinding: true,
    sql: (s) => `select t.order_id, concat_ws('/', t.order_id, t.subject, t.entitlement) as key,
        case when t.granted_by is null then 'granted by nothing'
          when d.decision_id is null then 'granted by decision ' || t.granted_by || ', which is missing'
          when d.order_id is distinct from t.order_id then 'granted by decision ' || t.granted_by || ' about another order'
          when d.entitles is not true then 'granted by decision ' || t.granted_by || ', which does not entitle'
          else 'granted by decision ' || t.granted_by || ', which granted something else' end as detail
      from ${s}entitlements t
      left join ${s}ledger_decisions d on d.decision_id = t.granted_by
      where t.active and (d.decision_id is null or d.order_id is distinct from t.order_id or d.entitles is not true
        or (${namesGrant}) is not true)`,
  },
  {
    promise: 'P4',
    name: 'grant_missing',
    holds: 'whatever a decision granted is there, active or not',
    sql: (
      s,
    ) => `select 'decision:' || d.decision_id as key, 'granted ' || g.pair || ' of order ' || d.order_id || ', which is gone' as detail
      from ${s}ledger_decisions d
      cross join lateral jsonb_array_elements_text(
        case when jsonb_typeof(d.evidence -> 'granted') = 'array' then d.evidence -> 'granted' else '[]' end) as g(pair)
      where position('\\' in g.pair) = 0 and not exists (
        select 1 from ${s}entitlements t where t.order_id = d.order_id and t.subject || ' ' || t.entitlement = g.pair)`,
  },
  {
    promise: 'P4',
    name: 'entitlement_withheld',
    holds: 'what an order states is active while its state entitles, but in shadow',
    knownByFinding: true,
    sql: (s) => `select t.order_id, concat_ws('/', t.order_id, t.subject, t.entitlement) as key,
        'not active although the order is ' || o.state as detail
      from ${s}entitlements t
      join ${s}orders o on o.order_id = t.order_id
      join ${s}workflow_states w on w.workflow = o.workflow and w.state = o.state
      where w.entitles and t.stated and not t.active
        and not exists (select from ${s}shadow_workflows h where h.workflow = o.workflow and h.ended_at is null)`,
  },
  {
    promise: 'P4',
    name: 'entitlement_change_unexplained',
    holds: 'the last change of every entitlement names a decision of its order',
    knownByFinding: true,
    sql: (s) => `select t.order_id, concat_ws('/', t.order_id, t.subject, t.entitlement) as key,
        'changed by decision ' || t.changed_by || case when d.decision_id is null then ', which is missing' else ' about another order' end as detail
      from ${s}entitlements t
      left join ${s}ledger_decisions d on d.decision_id = t.changed_by
      where d.decision_id is null or d.order_id is distinct from t.order_id`,
  },
  {
    promise: 'P4',
    name: 'constraint_broken',
    holds:
      'the foreign keys and conditions that let the database refuse anything else are there and validated',
    sql: () => `select w.name as key, case when c.oid is null then 'missing' else 'not validated' end as detail
      from unnest($1::text[], $2::text[]) as w(relation, name)
      left join pg_namespace n on n.nspname = $3
      left join pg_class r on r.relnamespace = n.oid and r.relname = w.relation
      left join pg_constraint c on c.conrelid = r.oid and c.conname = w.name
      where c.oid is null or not c.convalidated`,
    values: (_, schemaName) => [
      promisedConstraints.map(([table]) => table),
      promisedConstraints.map(([, name]) => name),
      schemaName,
    ],
  },
]
