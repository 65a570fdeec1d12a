/** What came in without an event: somebody answers for it, and what is in shadow grants nothing. */
import type { AuditCheck } from './audit-check.ts'

/** The check of P4. */
export const shadowChecks: readonly AuditCheck[] = [
  {
    promise: 'P4',
    name: 'entitled_in_shadow',
    holds: 'no order of a workflow in shadow entitles',
    sql: (s) => `select concat_ws('/', t.order_id, t.subject, t.entitlement) as key,
        'active while workflow ' || o.workflow || ' is in shadow' as detail
      from ${s}entitlements t
      join ${s}orders o on o.order_id = t.order_id
      join ${s}shadow_workflows h on h.workflow = o.workflow and h.ended_at is null
      where t.active`,
  },
]

/** The check of P8. */
export const doorChecks: readonly AuditCheck[] = [
  {
    promise: 'P8',
    name: 'grant_unrecorded',
    holds: 'what was given away, ended or adopted has the record of who did it, and why',
    sql: (s) => `select 'decision:' || d.decision_id as key,
        d.kind || ' order ' || d.order_id || ' by ' || d.actor || ', who is recorded with no such act' as detail
      from ${s}ledger_decisions d
      where d.event_key is null and (
        (d.kind = 'adopted' and not exists (
          select from ${s}operator_acts a
          where a.act in ('adopt', 'shadow end') and a.actor = d.actor and a.reason = d.reason))
        or (d.workflow = 'grant' and d.kind in ('opened', 'moved') and not exists (
          select from ${s}operator_acts a
          where a.target = 'order:' || d.order_id and a.act = case d.kind when 'opened' then 'grant' else 'grant end' end
            and a.actor = d.actor and a.reason = d.reason)))`,
  },
  {
    promise: 'P8',
    name: 'redecision_unrecorded',
    holds:
      'what was decided anew names what it supersedes, and was committed with the act of who did it',
    sql: (s) => `select 'decision:' || d.decision_id as key,
        case when d.supersedes is null then 'supersedes nothing'
          when o.decision_id is null then 'supersedes decision ' || d.supersedes || ', which is missing'
          when o.kind not in ('skipped', 'contradicted', 'redecided') then 'supersedes decision ' || d.supersedes || ', which was ' || o.kind
          else 'no act of ' || d.actor || ' says so' end as detail
      from ${s}ledger_decisions d left join ${s}ledger_decisions o on o.decision_id = d.supersedes
      where d.kind = 'redecided' and (o.decision_id is null or o.kind not in ('skipped', 'contradicted', 'redecided')
        or not exists (select 1 from ${s}operator_acts p
          where p.act = 'redecide' and p.actor = d.actor and p.reason = d.reason and p.acted_at = d.decided_at
            and p.details ->> 'decision' = d.decision_id::text))`,
  },
]
