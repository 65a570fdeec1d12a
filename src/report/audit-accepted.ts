/** P1: what was answered 2xx is in the inbox, with the bytes that came. */
import type { AuditCheck } from './audit-check.ts'

/** Every event that is not finished, with the day under which its body is kept. */
export function unfinishedSql(s: string): string {
  return ['inbox_ready', 'inbox_delayed', 'inbox_suspects', 'inbox_deferred', 'inbox_dead']
    .map((table) => `select event_key, received_on from ${s}${table}`)
    .concat(`select event_key, received_on from ${s}inbox_gathers where waiting`)
    .join(' union all ')
}

/** The checks of P1. */
export const acceptedChecks: readonly AuditCheck[] = [
  {
    promise: 'P1',
    name: 'accepted_event_missing',
    holds: 'every delivery that was answered 2xx has its event in the inbox',
    sql: (
      s,
    ) => `select d.source_id || '/' || d.event_id as key, count(*) || ' deliveries, no event' as detail
      from ${s}deliveries d
      where not exists (select 1 from ${s}inbox_events e where e.source_id = d.source_id and e.event_id = d.event_id)
      group by d.source_id, d.event_id`,
  },
  {
    promise: 'P1',
    name: 'event_stored_twice',
    holds: 'one identity is one event',
    onHeap: true,
    sql: (s) => `select source_id || '/' || event_id as key, count(*) || ' rows' as detail
      from ${s}inbox_events group by source_id, event_id having count(*) > 1`,
  },
  {
    promise: 'P1',
    name: 'unfinished_without_body',
    holds: 'the body of whatever is not finished is kept',
    sql: (
      s,
    ) => `select 'event:' || u.event_key as key, 'not finished, and its body is gone' as detail
      from (${unfinishedSql(s)}) u
      where not exists (select 1 from ${s}payloads p where p.event_key = u.event_key and p.received_on = u.received_on)
        and not exists (select 1 from ${s}payloads_held h where h.event_key = u.event_key)
        and not exists (select 1 from ${s}ledger_decisions d where d.event_key = u.event_key and d.final)`,
  },
  {
    promise: 'P1',
    name: 'body_altered',
    holds:
      'stored bodies have the hash that was taken on arrival (the newest, and those not finished for longest)',
    sql: (
      s,
    ) => `select 'event:' || e.event_key as key, 'the body has another hash or length than on arrival' as detail
      from (
        (select event_key from ${s}inbox_events order by event_key desc limit $1::integer)
        union (select event_key from (${unfinishedSql(s)}) u order by event_key limit $1::integer)
      ) e
      where ${s}is_payload_intact(e.event_key) is false`,
    values: (limits) => [limits.bodies],
  },
]
