/**
 * Events that findings are about: those that never arrived are over once they are decided, and those that wait
 * past their deadline are told where no worker came by to tell.
 */
import type { Database } from '../../postgres/executor.ts'
import { toldAgainSql } from '../../postgres/mended-event.ts'
import { finding } from '../../workflow/finding-kinds.ts'
import type { CompareContext } from '../compare-context.ts'
import type { Discrepancy } from '../ports.ts'

/** What is taken at once. */
const atOnce = 500

/** A worker tells of a wait within a minute of its deadline; after this many there was none. */
const graceMinutes = 5

/**
 * Closes what is decided by now of findings that an event is missing, waits too long or is dead, and tells of
 * the first kind which order it came to. A missing one that waits now, or is dead, is missing no more: its wait
 * has a deadline, its death a finding of its own. A dead one whose fact was told again, and decided, is over. Answers how many.
 */
export async function closeDecidedEvents({
  db,
  lockTimeoutMs,
}: Pick<CompareContext, 'db' | 'lockTimeoutMs'>): Promise<number> {
  const setup = `set local lock_timeout = ${lockTimeoutMs}`
  for (let closed = 0; ;) {
    const rows = await db.transaction(
      (tx) => tx.query({ text: decidedSql(db.schema), values: [atOnce] }),
      { setup },
    )
    closed += rows.length
    if (rows.length < atOnce) return closed
  }
}

function decidedSql(s: string): string {
  return `with over as materialized (
      select f.finding_id, e.event_key, d.order_id, case when d.kind is not null then 'it was decided: ' || d.kind
          when w.event_key is not null then 'it is here and waits' when x.event_key is not null then 'it is here and dead'
          when a.event_key is not null then 'the same was told again, and decided'
          else 'it was ignored' end as because
      from ${s}findings f
      cross join lateral (
        select coalesce(f.event_key, (select i.event_key from ${s}inbox_events i
          where i.source_id = f.source_id and i.event_id = (f.reference ->> 'id') collate "C")) as event_key) e
      left join lateral (select d.order_id, d.kind from ${s}ledger_decisions d
        where d.event_key = e.event_key and d.final limit 1) d on true
      left join ${s}inbox_deferred w on f.kind = 'event_missing' and w.event_key = e.event_key
      left join ${s}inbox_dead x on f.kind = 'event_missing' and x.event_key = e.event_key
      left join lateral (select i.event_key from ${s}inbox_events i
        where f.kind = 'dead_event' and i.event_key = e.event_key and ${toldAgainSql(s, 'i', decidedTwin(s))}) a on true
      where f.kind in ('event_missing', 'wait_overdue', 'dead_event') and f.state in ('open', 'repairing')
        and (d.kind is not null or w.event_key is not null or x.event_key is not null or a.event_key is not null
          or exists (select 1 from ${s}inbox_ignored i where i.event_key = e.event_key))
      order by f.finding_id limit $1 for update of f),
    verified as (
      update ${s}repairs r set verified_at = now() from over where r.finding_id = over.finding_id and r.verified_at is null)
    update ${s}findings f set state = 'closed', closed_at = now(), closed_because = over.because,
      event_key = over.event_key, order_id = coalesce(f.order_id, over.order_id)
    from over where f.finding_id = over.finding_id returning 1`
}

function decidedTwin(s: string): string {
  return `(exists (select 1 from ${s}ledger_decisions g where g.event_key = t.event_key and g.final)
          or exists (select 1 from ${s}inbox_ignored g where g.event_key = t.event_key))`
}

interface OverdueRow {
  readonly event_key: string
  readonly event_id: string
  readonly event_type: string
  readonly source: string
  readonly waits_for: string
}

/** Waits past their deadline that nobody told of, under the finding that a worker would have made. */
export async function overdueWaits(db: Pick<Database, 'query' | 'schema'>): Promise<Discrepancy[]> {
  const s = db.schema
  const rows = await db.query<OverdueRow>({
    text: `select w.event_key::text as event_key, e.event_id, e.event_type, w.waits_for,
        n.provider || ':' || n.provider_account || ':' || n.environment as source
      from ${s}inbox_deferred w
      join ${s}inbox_events e on e.event_key = w.event_key
      join ${s}sources n on n.source_id = e.source_id
      where not w.overdue and w.at_deadline = 'finding' and w.deadline_at < now() - interval '${graceMinutes} minutes'
      order by w.deadline_at limit ${atOnce}`,
  })
  return rows.map((row) => {
    const figures = { event: row.event_id, type: row.event_type, waits_for: row.waits_for }
    return {
      draft: finding('wait_overdue', `event:${row.event_key}`, figures),
      source: row.source,
      orderId: null,
      eventKey: BigInt(row.event_key),
      sourceId: null,
      reference: null,
    }
  })
}
