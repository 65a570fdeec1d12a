/**
 * Reads claimed events again under their locks, with their bodies: what was locked may have been
 * finished by another worker in the meantime, and only this second reading knows.
 */
import type { Database, Executor } from '../postgres/executor.ts'
import { operationOfKey } from '../workflow/caused-by.ts'
import type { EventContent, InboxEvent, SourceIdentity } from '../workflow/event.ts'
import type { ClaimedRow } from './claim.ts'

/** A claimed event, re-read under its lock. */
export interface ClaimedEvent {
  readonly row: ClaimedRow
  readonly event: InboxEvent
  /** True when a final decision exists: the ready row is dropped without another one. */
  readonly finished: boolean
  readonly decisionId: bigint
}

/** What a source row is to the configuration. */
export interface KnownSource {
  readonly identity: SourceIdentity
  readonly accountAllowed: boolean
  /** The key of the request that caused an event, where the provider says so. Never throws. */
  readonly requestKey?: ((body: Readonly<Record<string, unknown>>) => string | null) | undefined
}

/** Reads a source row; names the configured source that it belongs to. */
export interface SourceLookup {
  identify(row: {
    readonly provider: string
    readonly account: string
    readonly environment: string
  }): KnownSource
}

/** What reading events needs besides the database. */
export interface EventReading {
  readonly sources: SourceLookup
  /** Parses stored bytes; never throws. */
  readonly parse: (bytes: Uint8Array) => EventContent
}

/** As the database's function answers: text, times in milliseconds since 1970, and the bytes. */
interface EventRow {
  readonly event_key: string
  readonly source_id: string
  readonly event_id: string
  readonly event_type: string
  readonly via: string
  readonly received_ms: string
  readonly occurred_ms: string | null
  readonly finished: string
  readonly decision_id: string
  /** Null where there is none, or where the driver may not have carried it exactly. */
  readonly body: Uint8Array | null
}

/** The statement that re-reads events and their bodies, exported so that its plan can be asserted. */
export function claimedStatement(schema: string): string {
  return `select * from ${schema}claimed_events($1::bigint[])`
}

/**
 * Events in the order of their keys, with their bodies and an id for each one's decision. `rows` must
 * come in that order.
 */
export async function readClaimed(
  db: Database,
  tx: Executor,
  rows: readonly ClaimedRow[],
  reading: EventReading,
): Promise<ClaimedEvent[]> {
  const keys = rows.map((row) => row.key.toString())
  const found = await tx.query<EventRow>({
    text: claimedStatement(db.schema),
    repeated: true,
    values: [keys],
    binary: true,
  })
  const sources = await knownSources(db, tx, found, reading.sources)
  const bodies = await inexactBodies(db, tx, found)
  const byKey = new Map(found.map((event) => [event.event_key, event]))
  const claimed: ClaimedEvent[] = []
  rows.forEach((row, index) => {
    const key = keys[index] ?? ''
    const event = byKey.get(key)
    const source = event === undefined ? undefined : sources.get(Number(event.source_id))
    if (event === undefined || source === undefined) return
    const body = event.body ?? bodies.get(key)
    const content = body === undefined ? expired : reading.parse(body)
    claimed.push({
      row,
      event: eventOf(row.key, event, source, content),
      finished: event.finished === 'true',
      decisionId: BigInt(event.decision_id),
    })
  })
  return claimed
}

const expired: EventContent = Object.freeze({ readable: false, reason: 'payload expired' })

const sourceRows = new WeakMap<SourceLookup, Map<number, KnownSource>>()

/** Source rows never change and never go: each is read once for a configuration. */
async function knownSources(
  db: Database,
  tx: Executor,
  events: readonly EventRow[],
  lookup: SourceLookup,
): Promise<ReadonlyMap<number, KnownSource>> {
  const known = sourceRows.get(lookup) ?? new Map<number, KnownSource>()
  sourceRows.set(lookup, known)
  const missing = new Set<number>()
  for (const { source_id: id } of events) if (!known.has(Number(id))) missing.add(Number(id))
  if (missing.size === 0) return known
  const rows = await tx.query<{
    source_id: number
    provider: string
    provider_account: string
    environment: string
  }>({
    text: `select source_id, provider, provider_account, environment from ${db.schema}sources
      where source_id = any ($1::integer[])`,
    values: [[...missing]],
  })
  for (const { source_id: id, provider, provider_account: account, environment } of rows) {
    known.set(id, lookup.identify({ provider, account, environment }))
  }
  return known
}

interface BodyRow {
  readonly event_key: string
  readonly body: Uint8Array | null
}

/** Bodies that are not plain UTF-8, or not there: the few that the binary form left null, read as text. */
async function inexactBodies(
  db: Database,
  tx: Executor,
  events: readonly EventRow[],
): Promise<ReadonlyMap<string, Uint8Array>> {
  const bodies = new Map<string, Uint8Array>()
  const missing = events.filter(({ body, finished }) => body === null && finished === 'false')
  if (missing.length === 0) return bodies
  for (const { event_key: key, body } of await tx.query<BodyRow>({
    text: `select event_key::text as event_key, body from ${db.schema}claimed_payloads($1::bigint[])`,
    values: [missing.map((event) => event.event_key)],
  })) {
    if (body !== null) bodies.set(key, body)
  }
  return bodies
}

/** An event's row, whoever reads it: times in milliseconds since 1970, as text. */
export interface StoredEvent {
  readonly source_id: number | string
  readonly event_id: string
  readonly event_type: string
  readonly via: string
  readonly received_ms: string
  readonly occurred_ms: string | null
}

/** The event of a row as deciding takes it: the one place that says what is synthetic and what caused it. */
export function eventOf(
  key: bigint,
  row: StoredEvent,
  { identity, accountAllowed, requestKey }: KnownSource,
  content: EventContent,
): InboxEvent {
  return {
    key,
    sourceId: Number(row.source_id),
    source: identity,
    accountAllowed,
    eventId: row.event_id,
    eventType: row.event_type,
    receivedAt: new Date(Number(row.received_ms)),
    occurredAt: row.occurred_ms === null ? null : new Date(Number(row.occurred_ms)),
    synthetic: row.via !== 'webhook' && row.via !== 'app',
    causedBy:
      requestKey !== undefined && content.readable
        ? operationOfKey(requestKey(content.value))
        : null,
    content,
  }
}
