/**
 * P7 and P8 for reconciliation: a checkpoint is only where a pass has looked (I13), every repair is one commit with the
 * decision that it names (I12), and what people ended has a recorded act.
 */
import type { AuditCheck } from './audit-check.ts'

/** I13: the checks of P7. */
export const reconciledChecks: readonly AuditCheck[] = [
  {
    promise: 'P7',
    name: 'checkpoint_ahead',
    holds: 'no checkpoint is past what could be looked at when it moved',
    sql: (s) => `select n.provider || ':' || n.provider_account || ' ' || c.kind as key,
        case when c.through > c.moved_at then 'is at ' || c.through || ', and moved there at ' || c.moved_at
          else 'has a window to ' || c.window_to || ', opened at ' || c.moved_at end as detail
      from ${s}reconciliation_checkpoints c join ${s}sources n on n.source_id = c.source_id
      where c.through > c.moved_at or c.window_to > c.moved_at`,
  },
  {
    promise: 'P7',
    name: 'checkpoint_unexplained',
    holds: 'a checkpoint that moved names the pass that moved it, and a window by hand moves none',
    sql: (s) => `select n.provider || ':' || n.provider_account || ' ' || c.kind as key,
        case when r.run_id is null then 'no pass moved it to ' || c.through
          when r.how = 'range' then 'a window given by hand moved it'
          else 'moved at ' || c.moved_at || ', before its pass ' || r.run_id || ' began' end as detail
      from ${s}reconciliation_checkpoints c
      join ${s}sources n on n.source_id = c.source_id
      cross join ${s}installation i
      left join ${s}reconciliation_runs r on r.run_id = c.run_id
      where r.how = 'range' or c.moved_at < r.started_at
        or (r.run_id is null and (c.through > i.created_at or c.window_from is not null))`,
  },
]

/** I12: the checks of P8. */
export const repairedChecks: readonly AuditCheck[] = [
  {
    promise: 'P8',
    name: 'repair_unrecorded',
    holds:
      'every repairing decision was committed with the record of its repair, by the same actor',
    sql: (s) => `select 'decision:' || d.decision_id as key,
        case when r.repair_id is null then 'no repair says why'
          when r.xid <> d.xid then 'committed apart from repair ' || r.repair_id
          when r.actor <> d.actor then 'by ' || d.actor || ', its repair ' || r.repair_id || ' by ' || r.actor
          else 'about another order than repair ' || r.repair_id end as detail
      from ${s}ledger_decisions d left join ${s}repairs r on r.decision_id = d.decision_id
      where d.kind = 'repaired' and (r.repair_id is null or r.xid <> d.xid or r.actor <> d.actor
        or r.order_id is distinct from d.order_id)`,
  },
  {
    promise: 'P8',
    name: 'repair_unexplained',
    holds:
      'every repair has a reason, an actor, and the decision and the act that it was committed with',
    sql: (s) => `select r.repair_id::text as key,
        case when btrim(r.reason) = '' or btrim(r.actor) = '' then 'no reason, or no actor'
          when r.decision_id is not null and d.decision_id is null then 'its decision ' || r.decision_id || ' is missing'
          when d.kind <> 'repaired' then 'its decision ' || r.decision_id || ' is ' || d.kind
          else 'no act of ' || r.actor || ' says so' end as detail
      from ${s}repairs r left join ${s}ledger_decisions d on d.decision_id = r.decision_id
      where btrim(r.reason) = '' or btrim(r.actor) = '' or (r.decision_id is not null and d.decision_id is null)
        or d.kind <> 'repaired'
        or not exists (select 1 from ${s}operator_acts p
          where p.target = 'finding:' || r.finding_id and p.actor = r.actor and p.acted_at = r.applied_at)`,
  },
  {
    promise: 'P8',
    name: 'repair_closed_unverified',
    holds: 'a repaired finding closes only once both sides were seen to agree',
    sql: (
      s,
    ) => `select r.repair_id::text as key, 'its finding ' || r.finding_id || ' closed at ' || f.closed_at ||
        ', and nobody asked the provider again' as detail
      from ${s}repairs r join ${s}findings f on f.finding_id = r.finding_id
      where r.verified_at is null and f.state = 'closed' and f.closed_at > r.applied_at
        and f.closed_at < now() - $1::bigint * interval '1 millisecond'`,
    values: (limits) => [String(limits.graceMs)],
  },
  {
    promise: 'P8',
    name: 'dismissal_unexplained',
    holds: 'whatever was dismissed has an act that says why, and a day on which it counts again',
    sql: (
      s,
    ) => `select f.finding_id::text as key, f.kind || ' dismissed, and nobody says why' as detail
      from ${s}findings f
      where f.state = 'dismissed' and not exists (select 1 from ${s}operator_acts p
        where p.target = 'finding:' || f.finding_id and btrim(p.reason) <> '')`,
  },
]
