/** P5 and P8 for subjects: whoever is to be told of a change is, and every link and merge has an act. */
import type { AuditCheck } from './audit-check.ts'

/** The checks of P5. */
export const toldChecks: readonly AuditCheck[] = [
  {
    promise: 'P5',
    name: 'entitlement_end_untold',
    holds: 'whoever is to be told that access ended by its date is told in time',
    sql: (
      s,
    ) => `select concat_ws('/', e.order_id, e.subject, e.entitlement) as key, 'ended at ' || e.valid_until || ', and nobody was told' as detail
      from ${s}entitlements e
      join ${s}ledger_decisions d on d.decision_id = e.changed_by and d.decided_at < e.valid_until
      where e.active and e.valid_until < now() - $1::bigint * interval '1 millisecond'
        -- what is remembered, and what a watcher has not come to yet
        and e.valid_until > now() - interval '1 day'
        and e.valid_until > (select m.applied_at from ${s}migrations m where m.migration_id = 12)
        and not exists (select 1 from ${s}entitlement_ends x where x.valid_until = e.valid_until
          and x.order_id = e.order_id and x.subject = e.subject and x.entitlement = e.entitlement)`,
    values: (limits) => [String(limits.graceMs)],
  },
  {
    promise: 'P5',
    name: 'entitlement_change_untold',
    holds: 'no noted change of what a subject may use has waited past its time to be told',
    sql: (
      s,
    ) => `select 'change:' || c.change_id as key, c.subject || ' changed by ' || c.because || ' at ' || c.changed_at || ', and nobody was told' as detail
      from ${s}entitlement_changes c where c.changed_at < now() - $1::bigint * interval '1 millisecond'`,
    values: (limits) => [String(limits.graceMs)],
  },
]

/** The checks of P8. */
export const subjectChecks: readonly AuditCheck[] = [
  {
    promise: 'P8',
    name: 'link_unexplained',
    holds: 'every link of a customer has the act that says why, for that subject',
    sql: (
      s,
    ) => `select 'customer:' || l.customer_id as key, 'linked with ' || l.subject || ', and no act says so' as detail
      from ${s}customer_links l
      where l.subject is not null and not exists (
        select 1 from ${s}operator_acts a where a.act_id = l.act_id and a.act = 'customer link'
          and a.target = 'customer:' || l.customer_id and a.details ->> 'subject' = l.subject)`,
  },
  {
    promise: 'P8',
    name: 'merge_unexplained',
    holds:
      'every merge of subjects has the act that says why, and leads to a subject that is none itself',
    sql: (s) => `select 'subject:' || m.from_subject as key,
        case when a.act_id is null then 'merged into ' || m.into_subject || ', and no act says so'
          else 'merged into ' || m.into_subject || ', which was merged itself' end as detail
      from ${s}subject_merges m
      left join ${s}operator_acts a on a.act_id = m.act_id and a.act = 'subject merge' and a.target = 'subject:' || m.from_subject
      where a.act_id is null or exists (select 1 from ${s}subject_merges n where n.from_subject = m.into_subject)`,
  },
]
