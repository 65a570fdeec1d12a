/** P5: whatever is not finished has an age, a deadline, and past it a finding with an owner. */
import type { AuditCheck } from './audit-check.ts'

const milliseconds = (parameter: string): string =>
  `${parameter}::bigint * interval '1 millisecond'`

/** The checks of P5. */
export const stuckChecks: readonly AuditCheck[] = [
  {
    promise: 'P5',
    name: 'event_in_no_state',
    holds: 'every event is finished, or somewhere that something looks at',
    sql: (
      s,
    ) => `select 'event:' || e.event_key as key, e.event_type || ' ' || e.event_id || ' has no state and no decision' as detail
      from ${s}inbox_events e
      where not exists (select 1 from ${s}ledger_decisions d where d.event_key = e.event_key and d.final)
        and not exists (select 1 from ${s}inbox_ready t where t.event_key = e.event_key)
        and not exists (select 1 from ${s}inbox_delayed t where t.event_key = e.event_key)
        and not exists (select 1 from ${s}inbox_suspects t where t.event_key = e.event_key)
        and not exists (select 1 from ${s}inbox_gathers t where t.event_key = e.event_key and t.waiting)
        and not exists (select 1 from ${s}inbox_deferred t where t.event_key = e.event_key)
        and not exists (select 1 from ${s}inbox_ignored t where t.event_key = e.event_key)
        and not exists (select 1 from ${s}inbox_dead t where t.event_key = e.event_key)`,
  },
  {
    promise: 'P5',
    name: 'pending_too_long',
    holds: 'no event has been pending past its time without a finding',
    // one that an operator put back starts its time again
    sql: (
      s,
    ) => `select 'event:' || e.event_key as key, e.event_type || ' ' || e.event_id || ' pending since ' || e.received_at as detail
      from (
        select event_key from ${s}inbox_ready
        union all select event_key from ${s}inbox_delayed
        union all select event_key from ${s}inbox_suspects
        union all select event_key from ${s}inbox_gathers where waiting
      ) p
      join ${s}inbox_events e on e.event_key = p.event_key
      where e.received_at < now() - ${milliseconds('$1')}
        and not exists (select 1 from ${s}ledger_decisions d
          where d.event_key = e.event_key and (d.final or d.decided_at > now() - ${milliseconds('$1')}))
        and not exists (select 1 from ${s}findings f where f.event_key = e.event_key)
        -- the request that it waits for has the finding
        and not exists (select 1 from ${s}inbox_gathers g join ${s}findings f on f.order_id = g.order_id and f.kind = 'fetch_overdue'
          where g.event_key = e.event_key and g.waiting and f.state in ('open', 'repairing'))
        and not exists (select 1 from ${s}operator_acts a
          where a.target = 'event:' || e.event_key and a.acted_at > now() - ${milliseconds('$1')})`,
    values: (limits) => [String(limits.pendingMs)],
  },
  {
    promise: 'P5',
    name: 'deadline_passed_unseen',
    holds: 'a wait past its deadline is known to be overdue',
    sql: (
      s,
    ) => `select 'event:' || w.event_key as key, 'waits for ' || w.waits_for || ' since ' || w.deferred_at || ', due ' || w.deadline_at as detail
      from ${s}inbox_deferred w
      where not w.overdue and w.deadline_at < now() - ${milliseconds('$1')}`,
    values: (limits) => [String(limits.graceMs)],
  },
  {
    promise: 'P5',
    name: 'overdue_without_finding',
    holds: 'an overdue wait has a finding',
    sql: (
      s,
    ) => `select 'event:' || w.event_key as key, 'overdue, waits for ' || w.waits_for || ', no finding' as detail
      from ${s}inbox_deferred w
      where w.overdue and w.deadline_at < now() - ${milliseconds('$1')}
        and not exists (select 1 from ${s}findings f where f.event_key = w.event_key)`,
    values: (limits) => [String(limits.graceMs)],
  },
  {
    promise: 'P5',
    name: 'dead_without_finding',
    holds: 'a dead event has a finding',
    sql: (s) => `select 'event:' || x.event_key as key, 'dead, no finding: ' || x.reason as detail
      from ${s}inbox_dead x
      where x.died_at < now() - ${milliseconds('$1')}
        and not exists (select 1 from ${s}findings f where f.event_key = x.event_key)`,
    values: (limits) => [String(limits.graceMs)],
  },
  {
    promise: 'P5',
    name: 'waits_for_nothing',
    holds: 'whatever waits has something that can wake it',
    sql: (
      s,
    ) => `select 'event:' || w.event_key as key, 'waits for ' || w.waits_for || ', and nothing wakes it' as detail
      from ${s}inbox_deferred w
      where not exists (select 1 from ${s}inbox_waits k where k.event_key = w.event_key)`,
  },
  {
    promise: 'P5',
    name: 'wake_up_lost',
    holds: 'nothing waits for names that are all known, or for an order that has changed since',
    sql: (
      s,
    ) => `select 'event:' || w.event_key as key, 'what it waits for has come: ' || w.waits_for as detail
      from ${s}inbox_deferred w
      where w.deferred_at < now() - ${milliseconds('$1')}
        and (exists (
          select 1 from ${s}inbox_waits k
          join ${s}orders o on o.order_id = k.name
          where k.event_key = w.event_key and k.source_id = 0 and k.kind = 'order'
            and o.updated_at > w.deferred_at and o.updated_at < now() - ${milliseconds('$1')})
        or exists (
          select 1 from ${s}inbox_waits k
          join ${s}customer_links l on l.source_id = k.source_id and l.customer_id = k.name
          where k.event_key = w.event_key and k.kind = 'customer'
            and l.subject is not null and l.linked_at < now() - ${milliseconds('$1')})
        or (exists (select 1 from ${s}inbox_waits k where k.event_key = w.event_key)
          and not exists (
            select 1 from ${s}inbox_waits k
            left join ${s}order_names n on n.source_id = k.source_id and n.kind = k.kind and n.name = k.name
            where k.event_key = w.event_key and (k.source_id = 0 or n.order_id is null))))`,
    values: (limits) => [String(limits.graceMs)],
  },
  {
    promise: 'P5',
    name: 'finding_overdue',
    holds: 'every open finding has an owner and is not past its due date',
    sql: (s) => `select f.finding_id::text as key,
        f.kind || case when btrim(f.owner) = '' then ' has no owner' else ' of ' || f.owner || ' was due ' || f.due_at end as detail
      from ${s}findings f
      where f.state in ('open', 'repairing') and (f.due_at < now() or btrim(f.owner) = '')`,
  },
]
