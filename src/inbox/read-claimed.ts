/**
 * Reads claimed events again under their locks, with their bodies: what was locked may have been
 * finished by another worker in the meantime, and only this second reading knows.
 */
import type { Database, Executor } from '../postgres/executor.ts'
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

interface EventRow {
  event_key: string
  source_id: number
  event_id: string
  event_type: string
  via: string
  received_at: Date | string
  occurred_at: Date | string | null
  finished: boolean
  decision_id: string
}

/** The statement that re-reads events, exported so that its plan can be asserted. */
export function eventsStatement(schema: string): string {
  // a join and not EXISTS, which could be answered by reading all final decisions once; the sequence as
  // a constant, since it would be looked up by its table for every row
  return `select e.event_key, e.source_id, e.event_id, e.event_type, e.via, e.received_at, e.occurred_at,
      d.event_key is not null as finished, nextval('${schema}ledger_decisions_decision_id_seq'::regclass) as decision_id
    from unnest($1::bigint[]) as k(event_key)
    join ${schema}inbox_events e on e.event_key = k.event_key
    left join ${schema}ledger_decisions d on d.event_key = k.event_key and d.final`
}

/** The statement that reads bodies, exported so that its plan can be asserted. */
export function bodiesStatement(schema: string): string {
  return `select event_key::text as event_key, body from ${schema}claimed_payloads($1::bigint[])`
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
  const found = await tx.query<EventRow>({ text: eventsStatement(db.schema), values: [keys] })
  const sources = await knownSources(db, tx, found, reading.sources)
  const bodies = await readBodies(db, tx, keys)
  const byKey = new Map(found.map((event) => [event.event_key, event]))
  const claimed: ClaimedEvent[] = []
  rows.forEach((row, index) => {
    const key = keys[index] ?? ''
    const event = byKey.get(key)
    const source = event === undefined ? undefined : sources.get(event.source_id)
    if (event === undefined || source === undefined) return
    const body = bodies.get(key)
    const content = body === undefined ? expired : reading.parse(body)
    claimed.push({
      row,
      event: eventOf(row.key, event, source, content),
      finished: event.finished,
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
  for (const { source_id: id } of events) if (!known.has(id)) missing.add(id)
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
  event_key: string
  body: Uint8Array | null
}

/** Bodies by event, in binary form; the few that are not plain UTF-8 are read again as text. */
async function readBodies(
  db: Database,
  tx: Executor,
  keys: readonly string[],
): Promise<ReadonlyMap<string, Uint8Array>> {
  const text = bodiesStatement(db.schema)
  const bodies = new Map<string, Uint8Array>()
  const inexact: string[] = []
  for (const { event_key: key, body } of await tx.query<BodyRow>({
    text,
    values: [keys],
    binary: true,
  })) {
    if (body === null) inexact.push(key)
    else bodies.set(key, body)
  }
  if (inexact.length === 0) return bodies
  for (const { event_key: key, body } of await tx.query<BodyRow>({
    text,
    values: [inexact],
  })) {
    if (body !== null) bodies.set(key, body)
  }
  return bodies
}

function eventOf(
  key: bigint,
  row: EventRow,
  { identity, accountAllowed }: KnownSource,
  content: EventContent,
): InboxEvent {
  return {
    key,
    sourceId: row.source_id,
    source: identity,
    accountAllowed,
    eventId: row.event_id,
    eventType: row.event_type,
    receivedAt: new Date(row.received_at),
    occurredAt: row.occurred_at === null ? null : new Date(row.occurred_at),
    synthetic: row.via !== 'webhook' && row.via !== 'app',
    content,
  }
}
