/** The events that something is gathered for, with their bodies: theirs alone, and only while they wait. */
import type { Executor } from '../../postgres/executor.ts'
import { anyEvent, freezeJson } from '../../workflow/any-event.ts'
import type { AnyEvent } from '../../workflow/workflow.ts'
import { eventOf } from '../read-claimed.ts'
import type { GatherContext } from './gather-context.ts'

interface EventRow {
  readonly event_key: string
  readonly source_id: number
  readonly provider: string
  readonly provider_account: string
  readonly environment: string
  readonly event_id: string
  readonly event_type: string
  readonly via: string
  readonly received_ms: string
  readonly occurred_ms: string | null
  readonly body: Uint8Array | null
}

/** The statement that reads them, exported so that its plan can be asserted. */
export function gatheredEventsStatement(s: string): string {
  return `select e.event_key::text as event_key, e.source_id, s.provider, s.provider_account, s.environment, e.event_id,
      e.event_type, e.via, floor(extract(epoch from e.received_at) * 1000)::bigint::text as received_ms,
      floor(extract(epoch from e.occurred_at) * 1000)::bigint::text as occurred_ms, p.body
    from ${s}inbox_events e join ${s}sources s on s.source_id = e.source_id
    left join ${s}gathered_payloads($1::bigint[]) p on p.event_key = e.event_key
    where e.event_key = any ($1::bigint[])`
}

/** By key; an event whose body is gone, or cannot be read, is left out. */
export async function readEvents(
  { db, reading }: GatherContext,
  tx: Executor,
  keys: readonly string[],
): Promise<ReadonlyMap<string, AnyEvent>> {
  const events = new Map<string, AnyEvent>()
  if (keys.length === 0) return events
  const rows = await tx.query<EventRow>({
    text: gatheredEventsStatement(db.schema),
    repeated: true,
    values: [[...keys]],
  })
  for (const row of rows) {
    if (row.body === null) continue
    const content = reading.parse(row.body)
    if (!content.readable) continue
    const { provider, provider_account: account, environment } = row
    const known = reading.sources.identify({ provider, account, environment })
    const event = eventOf(BigInt(row.event_key), row, known, content)
    events.set(row.event_key, anyEvent(event, freezeJson(content.value)))
  }
  return events
}
