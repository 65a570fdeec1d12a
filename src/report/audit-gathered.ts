/** What was asked of providers: nothing waits for an answer that nobody asks for, and every answer stands as it came. */
import type { AuditCheck } from './audit-check.ts'

const milliseconds = (parameter: string): string =>
  `${parameter}::bigint * interval '1 millisecond'`

/** The checks of P5. */
export const gatheringChecks: readonly AuditCheck[] = [
  {
    promise: 'P5',
    name: 'waits_for_no_request',
    holds: 'whatever waits for an answer has a request that will bring it',
    sql: (
      s,
    ) => `select 'event:' || g.event_key as key, 'waits for answer ' || g.wanted || ' about ' || g.kind || ' ' || g.object_id || ', and nobody asks' as detail
      from ${s}inbox_gathers g
      where g.waiting and not exists (
        select 1 from ${s}fetches f where f.order_id = g.order_id and f.source_id = g.source_id and f.kind = g.kind
          and f.object_id = g.object_id and f.wanted >= g.wanted)`,
  },
  {
    promise: 'P5',
    name: 'request_without_finding',
    holds: 'a request that is open past its time has a finding',
    sql: (
      s,
    ) => `select concat_ws('/', f.order_id, f.kind, f.object_id) as key, 'open since ' || f.asked_at || ', no finding' as detail
      from ${s}fetches f
      where f.asked_at < now() - ${milliseconds('$1')}
        and not exists (select 1 from ${s}findings x
          where x.order_id = f.order_id and x.kind = 'fetch_overdue' and x.state in ('open', 'repairing', 'dismissed'))`,
    values: (limits) => [String(limits.pendingMs)],
  },
]

/** The checks of P8. */
export const evidenceChecks: readonly AuditCheck[] = [
  {
    promise: 'P8',
    name: 'decision_without_evidence',
    holds: 'a decision that was made from an answer names one that is recorded, by its hash',
    sql: (
      s,
    ) => `select 'decision:' || d.decision_id as key, 'was made from evidence ' || coalesce(d.evidence #>> '{fetch,evidence}', '(none)') || ', which is not recorded so' as detail
      from ${s}ledger_decisions d
      where d.evidence ? 'fetch' and not exists (
        select 1 from ${s}evidence e where e.evidence_id::text = d.evidence #>> '{fetch,evidence}'
          and e.number::text = d.evidence #>> '{fetch,number}' and encode(e.body_sha256, 'hex') = d.evidence #>> '{fetch,sha256}'
          and e.order_id = d.order_id)`,
  },
  {
    promise: 'P8',
    name: 'look_unexplained',
    holds: 'an answer that counts as decided from is named by that decision, or by a later one',
    sql: (
      s,
    ) => `select concat_ws('/', l.order_id, l.kind, l.object_id) as key, 'answer ' || l.applied || ' was decided from, says no decision' as detail
      from ${s}looked_at l
      where l.applied > 0 and not exists (
        select 1 from ${s}ledger_decisions d where d.decision_id = l.applied_by and d.order_id = l.order_id and d.evidence ? 'fetch')`,
  },
  {
    promise: 'P8',
    name: 'evidence_altered',
    holds: 'stored answers have the hash that was taken when they came (the newest)',
    sql: (
      s,
    ) => `select 'evidence:' || e.evidence_id as key, 'has another hash or length than when it came' as detail
      from (select evidence_id from ${s}evidence order by evidence_id desc limit $1::integer) e
      where ${s}is_evidence_intact(e.evidence_id) is false`,
    values: (limits) => [limits.bodies],
  },
]
