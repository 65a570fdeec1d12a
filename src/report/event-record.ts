/**
 * Everything about one event: what arrived and how often, what was decided and why, what it made, what it waits
 * for. Never a body: that is read with `read_payload`, and the reading is recorded.
 */
import type { Database } from '../postgres/executor.ts'
import type { Sequenced } from './operation-blocked.ts'
import { operationsAbout } from './operations.ts'
import { readEffectsOf, readRecord, type OrderRecord } from './order-record.ts'
import type { EffectView, EventView, OperationRecord } from './record-views.ts'
import type { Reference } from './reference.ts'
import { counted, isoTime, requiredTime, type Count, type IsoTime } from './row-values.ts'

/** What else is known of an event. */
export interface EventHead {
  readonly order_id: string | null
  readonly api_version: string | null
  readonly body_sha256: string
  readonly body_bytes: Count
  /** Whether its body is still kept: without one it cannot be replayed. */
  readonly has_body: boolean
  /** Of a dead one: `redelivery` or `operator`; null for others. */
  readonly rearmed_by: string | null
  readonly rearmed_at: IsoTime | null
  /** A worker has it in a batch at this moment. */
  readonly in_work: boolean
}

/** A request that brought it. */
export interface DeliveryView {
  readonly delivery_id: string
  readonly received_at: IsoTime
  readonly body_sha256: string
  /** Whether the bytes were those of the body that counts. */
  readonly same_body: boolean
}

/** What wakes it. */
export interface WaitView {
  /** `order`: a change of that order; anything else: a name. */
  readonly kind: string
  readonly name: string
  readonly source: string | null
  readonly about: Reference | null
}

/** All of it. */
export interface EventRecord {
  readonly event: EventView
  readonly head: EventHead
  readonly deliveries: readonly DeliveryView[]
  readonly waits: readonly WaitView[]
  readonly effects: readonly EffectView[]
  readonly operations: readonly OperationRecord[]
  /** The operation of ours that caused it at the provider. */
  readonly caused_by: Reference | null
  /** What tells its story: its own rows, nothing else of its order. */
  readonly record: OrderRecord
}

/** How many deliveries are told, the first of them. */
export const shownDeliveries = 200

/** Reads an event; null when there is none with this key. */
export async function eventRecord(
  db: Database,
  key: string,
  sequenced: Sequenced,
): Promise<EventRecord | null> {
  const s = db.schema
  const own = await readRecord(db, null, [key])
  const event = own.events.find((each) => each.event_key === key)
  if (event === undefined) return null
  const decisions = own.decisions.map((each) => each.decision_id)
  const [head, deliveries, waits, effects, asked] = await Promise.all([
    readHead(db, key),
    readDeliveries(db, key),
    readWaits(db, key),
    readEffectsOf(db, own.decisions),
    db.query<{ operation_id: string }>({
      text: `select operation_id::text as operation_id from ${s}outbox_operations
        where decision_id = any ($1::bigint[]) order by sequence limit 200`,
      values: [decisions],
    }),
  ])
  const ids = asked.map((each) => each.operation_id)
  const operations = await operationsAbout(db, { orderId: null, ids }, sequenced)
  const causes = own.decisions.flatMap(({ evidence, kind }) => {
    const id = textIn(evidence, 'operation')
    return id === null || kind === 'canceled' ? [] : [id]
  })
  return {
    event,
    head,
    deliveries,
    waits,
    effects,
    operations,
    caused_by: causes[0] === undefined ? null : { kind: 'operation', id: causes[0] },
    record: { ...own, effects, operations },
  }
}

async function readHead(db: Database, key: string): Promise<EventHead> {
  const s = db.schema
  const [row] = await db.query<
    Omit<EventHead, 'rearmed_at' | 'body_bytes'> & {
      body_bytes: number
      rearmed_at: Date | string | null
    }
  >({
    text: `select v.order_id, e.api_version, encode(e.body_sha256, 'hex') as body_sha256, e.body_bytes,
        exists (select from ${s}payloads p where p.event_key = e.event_key and p.received_on = (e.received_at at time zone 'UTC')::date)
          or exists (select from ${s}payloads_held h where h.event_key = e.event_key) as has_body,
        x.rearmed_by, r.rearmed_at,
        exists (select from ${s}inbox_batches b where e.event_key = any (b.event_keys)) as in_work
      from ${s}inbox_events e
      join ${s}webhook_inbox v on v.event_key = e.event_key
      left join ${s}inbox_dead x on x.event_key = e.event_key
      left join ${s}inbox_rearmed r on r.event_key = e.event_key
      where e.event_key = $1::bigint`,
    values: [key],
  })
  if (row === undefined) throw new Error('an event that was there a moment ago is not there')
  return { ...row, body_bytes: counted(row.body_bytes), rearmed_at: isoTime(row.rearmed_at) }
}

async function readDeliveries(db: Database, key: string): Promise<DeliveryView[]> {
  const s = db.schema
  const rows = await db.query<Omit<DeliveryView, 'received_at'> & { received_at: Date | string }>({
    text: `select d.delivery_id, d.received_at, encode(d.body_sha256, 'hex') as body_sha256,
        d.body_sha256 = e.body_sha256 as same_body
      from ${s}inbox_events e
      join ${s}deliveries d on d.source_id = e.source_id and d.event_id = e.event_id
      where e.event_key = $1::bigint order by d.delivery_id limit ${shownDeliveries}`,
    values: [key],
  })
  return rows.map((row) => ({ ...row, received_at: requiredTime(row.received_at) }))
}

async function readWaits(db: Database, key: string): Promise<WaitView[]> {
  const s = db.schema
  const rows = await db.query<Omit<WaitView, 'about'>>({
    text: `select w.kind, w.name,
        case when n.source_id is not null then concat_ws(':', n.provider, n.provider_account, n.environment) end as source
      from ${s}inbox_waits w left join ${s}sources n on n.source_id = w.source_id
      where w.event_key = $1::bigint order by w.kind, w.name limit 100`,
    values: [key],
  })
  return rows.map((row) => ({
    ...row,
    about: row.kind === 'order' ? { kind: 'order', id: row.name } : null,
  }))
}

/** What became of it, as a sentence. */
export function verdictOf({ event, record }: Pick<EventRecord, 'event' | 'record'>): string {
  const last = record.decisions.findLast((each) => each.event_key === event.event_key)
  const why = last === undefined ? '' : `${last.kind}: ${last.reason}`
  switch (event.state) {
    case 'processed':
    case 'ignored':
      return why === '' ? event.state : why
    case 'deferred':
      return `waits for ${event.waits_for}`
    case 'dead':
      return `could not be decided: ${event.last_error}`
    default: {
      const after = event.last_error === null ? '' : ` after ${event.last_error}`
      return event.waits_for === null
        ? `not decided yet${after}`
        : `waits for ${event.waits_for}${after}`
    }
  }
}

function textIn(value: unknown, key: string): string | null {
  if (typeof value !== 'object' || value === null || !(key in value)) return null
  const found = (value as Record<string, unknown>)[key]
  return typeof found === 'string' ? found : null
}
