/** P5 and P8 for operations: what is not finished is due or in somebody's hands, and every end has a reason. */
import type { AuditCheck } from './audit-check.ts'

/** The checks of P5. */
export const openOperationChecks: readonly AuditCheck[] = [
  {
    promise: 'P5',
    name: 'operation_overdue',
    holds: 'no operation has been due, or in the hands of one dispatcher, past its time',
    sql: (
      s,
    ) => `select o.operation_id::text as key, o.name || ' to ' || o.destination || ' is ' || o.state || ', due since ' ||
        coalesce(o.next_attempt_at, o.leased_until) as detail
      from ${s}outbox_operations o
      where (o.next_attempt_at < now() - $1::bigint * interval '1 millisecond'
          or (o.state = 'sending' and o.leased_until < now() - $1::bigint * interval '1 millisecond'))
        and not exists (select 1 from ${s}findings f
          where f.evidence ->> 'operation' = o.operation_id::text and f.state <> 'closed')`,
    values: (limits) => [String(limits.pendingMs)],
  },
  {
    promise: 'P5',
    name: 'operation_unscheduled',
    holds: 'whatever is to be sent has a time at which it is',
    sql: (s) => `select o.operation_id::text as key, 'pending, and never due' as detail
      from ${s}outbox_operations o where o.state = 'pending' and o.next_attempt_at is null`,
  },
  {
    promise: 'P5',
    name: 'operation_without_finding',
    holds: 'what cannot go on without a person has a finding',
    sql: (
      s,
    ) => `select o.operation_id::text as key, o.name || ' to ' || o.destination || ' is ' || o.state || ', no finding' as detail
      from ${s}outbox_operations o
      where o.state in ('dead', 'uncertain') and o.next_attempt_at is null
        and not exists (select 1 from ${s}findings f
          where f.evidence ->> 'operation' = o.operation_id::text and f.state <> 'closed')`,
  },
]

/** The checks of P8. */
export const endedOperationChecks: readonly AuditCheck[] = [
  {
    promise: 'P8',
    name: 'operation_end_unexplained',
    holds: 'what was canceled has a decision that says so, what was discarded an act',
    sql: (s) => `select o.operation_id::text as key,
        case o.state when 'canceled' then 'canceled, and no decision says why' else 'discarded, and nobody says so' end as detail
      from ${s}outbox_operations o
      where (o.state = 'canceled' and not exists (select 1 from ${s}ledger_decisions d
          where d.order_id = o.order_id and d.kind = 'canceled' and d.evidence ->> 'operation' = o.operation_id::text))
        or (o.state = 'discarded' and not exists (select 1 from ${s}operator_acts p
          where p.target = 'operation:' || o.operation_id and p.act = 'outbox discard'))`,
  },
]
