/**
 * What a dry run reads of history, page by page and never all of it. Decisions are history's order: an
 * event that none was made about yet is not history. Nothing here writes or locks.
 */
import type { Database, Executor } from '../postgres/executor.ts'
import type { InboxEvent } from '../workflow/event.ts'
import { ownSource } from './own-event.ts'
import { eventOf, type EventReading, type StoredEvent } from './read-claimed.ts'

/** The decisions that were made since a moment, as they stood when the dry run began. */
export interface HistoryWindow {
  readonly since: string
  readonly first: string
  readonly last: string
}

/** The window since a moment; null where nothing was decided. */
export async function windowSince(
  db: Database,
  tx: Executor,
  since: Date,
): Promise<HistoryWindow | null> {
  const [row] = await tx.query<{ first: string | null; last: string | null }>({
    text: `select min(decision_id)::text as first, max(decision_id)::text as last
      from ${db.schema}ledger_decisions where decided_at >= $1::timestamptz`,
    values: [since.toISOString()],
  })
  if (row === undefined || row.first === null || row.last === null) return null
  return { since: since.toISOString(), first: row.first, last: row.last }
}

/** A decision, and what it is the window's first about. */
export interface FirstDecision {
  readonly decision_id: string
  readonly about: string
}

/**
 * The next events (or orders) in the order of the window's first decision about each: every one comes
 * once, and nobody has to remember which came.
 */
export async function nextFirst(
  db: Database,
  tx: Executor,
  what: 'event_key' | 'order_id',
  window: HistoryWindow,
  after: string,
  limit: number,
): Promise<readonly FirstDecision[]> {
  const s = db.schema
  const earlier = (final: string): string =>
    `not exists (select 1 from ${s}ledger_decisions e where e.${what} = d.${what} ${final}
        and e.decision_id >= $1::bigint and e.decision_id < d.decision_id and e.decided_at >= $2::timestamptz)`
  // the two indexes of decisions by event each hold one half of them
  const isFirst =
    what === 'event_key'
      ? `${earlier('and e.final')} and ${earlier('and not e.final')}`
      : earlier('')
  return tx.query<FirstDecision>({
    text: `select d.decision_id::text as decision_id, d.${what}::text as about
      from ${s}ledger_decisions d
      where d.decision_id > $4::bigint and d.decision_id between $1::bigint and $3::bigint
        and d.decided_at >= $2::timestamptz and d.${what} is not null and ${isFirst}
      order by d.decision_id limit $5::integer`,
    values: [window.first, window.since, window.last, after, limit],
  })
}

/** An event as history has it, without its body. */
export interface HistoricEvent {
  readonly event: InboxEvent
  /** `provider:account`. */
  readonly source: string
  readonly receivedMs: number
  /** Made by an act of a person: not decided by a workflow. */
  readonly isOwn: boolean
  /** The order of the last word about it. */
  readonly orderId: string | null
  /** The kind of the last word about it. */
  readonly kind: string
  readonly bodyBytes: number
}

interface HistoricRow extends StoredEvent {
  readonly event_key: string
  readonly provider: string
  readonly account: string
  readonly environment: string
  readonly body_bytes: number
  readonly kind: string | null
  readonly order_id: string | null
}

const unread = Object.freeze({ readable: false, reason: 'payload expired' } as const)

/** Events by key, in that order, with the last word about each; their bodies are not read yet. */
export async function readEvents(
  db: Database,
  tx: Executor,
  keys: readonly string[],
  reading: EventReading,
): Promise<readonly HistoricEvent[]> {
  if (keys.length === 0) return []
  const s = db.schema
  const rows = await tx.query<HistoricRow>({
    text: `select e.event_key::text as event_key, e.source_id, n.provider, n.provider_account as account, n.environment,
        e.event_id, e.event_type, e.via, e.body_bytes,
        floor(extract(epoch from e.received_at) * 1000)::bigint::text as received_ms,
        floor(extract(epoch from e.occurred_at) * 1000)::bigint::text as occurred_ms,
        coalesce(a.kind, f.kind, o.kind) as kind,
        case when a.kind is not null then a.order_id when f.kind is not null then f.order_id else o.order_id end as order_id
      from unnest($1::bigint[]) as k(event_key)
      join ${s}inbox_events e on e.event_key = k.event_key
      join ${s}sources n on n.source_id = e.source_id
      left join ${s}ledger_decisions f on f.event_key = k.event_key and f.final
      left join lateral (select d.kind, d.order_id from ${s}ledger_decisions d
        where d.event_key = k.event_key and not d.final order by d.decision_id desc limit 1) o on f.decision_id is null
      left join lateral (select d.evidence -> 'redecided' ->> 'as' as kind, d.order_id
        from ${s}sources w
        join ${s}inbox_events r on r.source_id = w.source_id and r.event_id = 'redecide:' || f.decision_id
        join ${s}ledger_decisions d on d.event_key = r.event_key and d.final
        where w.provider = $2) a on true
      order by e.event_key`,
    values: [keys, ownSource],
  })
  return rows.map((row) => historic(row, reading))
}

function historic(row: HistoricRow, reading: EventReading): HistoricEvent {
  return {
    event: eventOf(BigInt(row.event_key), row, reading.sources.identify(row), unread),
    source: `${row.provider}:${row.account}`,
    receivedMs: Number(row.received_ms),
    isOwn: row.provider === ownSource,
    orderId: row.order_id,
    kind: row.kind ?? 'pending',
    bodyBytes: row.body_bytes,
  }
}

/** How much of bodies is held at once, in bytes. */
const bodiesAtOnce = 8 * 1024 * 1024

/**
 * The same events with their bodies, in slices whose bodies are no more than can be held at once. Where
 * a body is gone, `event.content` says so.
 */
export async function* withBodies(
  db: Database,
  tx: Executor,
  events: readonly HistoricEvent[],
  reading: EventReading,
): AsyncGenerator<readonly HistoricEvent[]> {
  let slice: HistoricEvent[] = []
  let bytes = 0
  for (const each of events) {
    if (slice.length > 0 && bytes + each.bodyBytes > bodiesAtOnce) {
      yield await readBodies(db, tx, slice, reading)
      slice = []
      bytes = 0
    }
    slice.push(each)
    bytes += each.bodyBytes
  }
  if (slice.length > 0) yield readBodies(db, tx, slice, reading)
}

async function readBodies(
  db: Database,
  tx: Executor,
  events: readonly HistoricEvent[],
  reading: EventReading,
): Promise<readonly HistoricEvent[]> {
  const s = db.schema
  const rows = await tx.query<{ event_key: string; body: Uint8Array | null }>({
    text: `select k.event_key::text as event_key, coalesce(
        (select p.body from ${s}payloads p where p.event_key = k.event_key
          and p.received_on = (to_timestamp(k.received_ms / 1000.0) at time zone 'UTC')::date),
        (select h.body from ${s}payloads_held h where h.event_key = k.event_key)) as body
      from unnest($1::bigint[], $2::bigint[]) as k(event_key, received_ms)`,
    values: [
      events.map(({ event }) => event.key.toString()),
      events.map(({ receivedMs }) => receivedMs),
    ],
  })
  const bodies = new Map(rows.map((row) => [row.event_key, row.body]))
  return events.map((each) => {
    const body = bodies.get(each.event.key.toString()) ?? null
    return body === null
      ? each
      : { ...each, event: { ...each.event, content: reading.parse(body) } }
  })
}

/** Whether a body is no longer kept. */
export function isExpired({ event }: HistoricEvent): boolean {
  return event.content === unread
}

/** A decision about an order, with the event that it decided. */
export interface HistoricStep {
  readonly order_id: string
  readonly decision_id: string
  /** What it said of its event; of a new decision what that one said. */
  readonly kind: string
  readonly from_state: string | null
  readonly to_state: string | null
  readonly evidence: Readonly<Record<string, unknown>> | null
  readonly at_ms: string
  /** Null: an act of a person, or of the app. */
  readonly event_key: string | null
  /** Whether the app made the order by it: any other opening came to an order that an event had opened. */
  readonly creates: boolean
}

/**
 * The next decisions about orders within the window, at most `limit` of each after a decision. Left out is
 * what was not the last word about its event.
 */
export async function readSteps(
  db: Database,
  tx: Executor,
  ids: readonly string[],
  window: HistoryWindow,
  after: string,
  limit: number,
): Promise<{
  readonly steps: readonly HistoricStep[]
  readonly read: ReadonlyMap<string, string>
}> {
  const s = db.schema
  const rows = await tx.query<
    HistoricStep & { readonly isDropped: boolean; readonly place: number }
  >({
    text: `select d.order_id, d.decision_id::text as decision_id, d.from_state, d.to_state, d.evidence, d.place::integer as place,
        coalesce(d.evidence -> 'redecided' ->> 'as', d.kind) as kind,
        coalesce(d.kind = 'opened' and d.decided_at = o.opened_at, false) as creates,
        floor(extract(epoch from d.decided_at) * 1000)::bigint::text as at_ms,
        case when n.provider = $6 then d.evidence -> 'redecided' ->> 'event_key' else d.event_key::text end as event_key,
        case when d.event_key is null then false
          when d.final then exists (select 1 from ${s}sources w
            join ${s}inbox_events r on r.source_id = w.source_id and r.event_id = 'redecide:' || d.decision_id
            where w.provider = $6)
          else exists (select 1 from ${s}ledger_decisions f where f.event_key = d.event_key and f.final)
            or exists (select 1 from ${s}ledger_decisions l where l.event_key = d.event_key and not l.final
              and l.decision_id > d.decision_id) end as "isDropped"
      from unnest($1::text[]) as k(order_id)
      cross join lateral (
        select d.*, row_number() over (order by d.decision_id) as place from ${s}ledger_decisions d
        where d.order_id = k.order_id and d.decision_id > $4::bigint and d.decision_id between $2::bigint and $3::bigint
          and d.decided_at >= $5::timestamptz
        order by d.decision_id limit $7::integer) d
      left join ${s}orders o on o.order_id = d.order_id
      left join ${s}inbox_events e on e.event_key = d.event_key
      left join ${s}sources n on n.source_id = e.source_id
      order by d.order_id, d.decision_id`,
    values: [ids, window.first, window.last, after, window.since, ownSource, limit],
  })
  const read = new Map<string, string>()
  for (const row of rows) if (row.place >= limit) read.set(row.order_id, row.decision_id)
  return { steps: rows.filter(({ isDropped }) => !isDropped), read }
}

/** The orders that payments are recorded for, and the events by which: `source\npayment` → them. */
export async function payersOf(
  db: Database,
  tx: Executor,
  payments: readonly { readonly sourceId: number; readonly id: string }[],
): Promise<ReadonlyMap<string, { readonly orderId: string; readonly eventKey: string | null }>> {
  const rows = await tx.query<{
    source_id: number
    payment_id: string
    order_id: string
    event_key: string | null
  }>({
    text: `select p.source_id, p.payment_id, p.order_id, d.event_key::text as event_key
      from unnest($1::integer[], $2::text[]) as k(source_id, payment_id)
      join ${db.schema}ledger_payments p on p.source_id = k.source_id and p.payment_id = k.payment_id
      left join ${db.schema}ledger_decisions d on d.decision_id = p.decision_id`,
    values: [payments.map(({ sourceId }) => sourceId), payments.map(({ id }) => id)],
  })
  return new Map(
    rows.map((row) => [
      `${row.source_id}\n${row.payment_id}`,
      { orderId: row.order_id, eventKey: row.event_key },
    ]),
  )
}
