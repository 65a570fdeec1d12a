/** Dead events: what they are, why they died, and what may bring them back. Never a body. */
import type { Database } from '../postgres/executor.ts'
import { counted, isoTime, requiredTime, type Count, type IsoTime } from './row-values.ts'

/** A dead event; the keys are what `--json` prints. */
export interface DeadEvent {
  readonly event_key: string
  readonly source: string
  readonly event_id: string
  readonly event_type: string
  readonly reason: string
  readonly attempts: Count
  /** Who can bring it back: a redelivery by the provider, or an operator only. */
  readonly rearmed_by: string
  /** When a redelivery last gave it new attempts: that is done at most once an hour. */
  readonly rearmed_at: IsoTime | null
  readonly received_at: IsoTime
  readonly died_at: IsoTime
  readonly deliveries: Count
  /** Whether its body is still kept: without one it cannot be replayed. */
  readonly has_body: boolean
}

/** Which dead events to list. */
export interface DeadFilter {
  readonly types?: readonly string[]
  readonly eventId?: string | undefined
  readonly limit: number
}

interface DeadRow {
  event_key: string
  source: string
  event_id: string
  event_type: string
  reason: string
  attempts: number
  rearmed_by: string
  rearmed_at: Date | string | null
  received_at: Date | string
  died_at: Date | string
  deliveries: string
  has_body: boolean
}

/** Dead events, the last to die first. */
export async function listDead(db: Database, filter: DeadFilter): Promise<DeadEvent[]> {
  const s = db.schema
  const rows = await db.query<DeadRow>({
    text: `select x.event_key, concat_ws(':', n.provider, n.provider_account, n.environment) as source,
        e.event_id, e.event_type, x.reason, x.attempts, x.rearmed_by, r.rearmed_at, e.received_at, x.died_at,
        (select count(*) from ${s}deliveries d where d.source_id = e.source_id and d.event_id = e.event_id) as deliveries,
        exists (select 1 from ${s}payloads p where p.event_key = x.event_key and p.received_on = x.received_on)
          or exists (select 1 from ${s}payloads_held h where h.event_key = x.event_key) as has_body
      from ${s}inbox_dead x
      join ${s}inbox_events e on e.event_key = x.event_key
      join ${s}sources n on n.source_id = e.source_id
      left join ${s}inbox_rearmed r on r.event_key = x.event_key
      where (cardinality($1::text[]) = 0 or e.event_type = any ($1::text[])) and ($2::text is null or e.event_id = $2)
      order by x.died_at desc, x.event_key desc limit $3`,
    values: [filter.types ?? [], filter.eventId ?? null, filter.limit],
  })
  return rows.map((row) => ({
    ...row,
    attempts: counted(row.attempts),
    deliveries: counted(row.deliveries),
    rearmed_at: isoTime(row.rearmed_at),
    received_at: requiredTime(row.received_at),
    died_at: requiredTime(row.died_at),
  }))
}
