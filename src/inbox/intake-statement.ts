/**
 * The one statement behind every 2xx. For all requests that wait it writes identities, bodies and
 * ready rows of what is new, and a delivery row for every input: also a duplicate is answered only
 * after a flushed write of its own, because the first delivery may have been committed without one.
 */
import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import type { TraceContext } from '../core/tracing.ts'
import type { Statement } from '../postgres/executor.ts'
import type { SourceNamespace } from './source.ts'
import { namespaceKey } from './source.ts'

/** One event of one delivery, ready to be stored. */
export interface IncomingEvent {
  readonly namespace: SourceNamespace
  /** At most 255 bytes of text without NUL. */
  readonly eventId: string
  readonly eventType: string
  /** ISO text. */
  readonly occurredAt: string | null
  readonly apiVersion: string | null
}

/** One verified delivery: its events share one body. */
export interface IncomingDelivery {
  readonly events: readonly IncomingEvent[]
  readonly rawBody: Uint8Array
  /** 32 bytes. */
  readonly bodySha256: Uint8Array
  /** Of the span that stores it; absent where traces are off. */
  readonly trace?: TraceContext | null
}

/** The one row that the statement answers: arrays as text, an element for each event of the batch. */
export interface IntakeRow {
  readonly source_ids: string
  readonly event_keys: string
}

/** What the statement did with one event. */
export interface IntakeEntry {
  /** Null when its namespace is not registered: nothing was written for it. */
  readonly sourceId: number | null
  /** Set when the identity is new; the first event with it is the one that was stored. */
  readonly eventKey: bigint | null
}

/** A statement that the driver may prepare under its name, once for each connection. */
export interface NamedStatement extends Statement {
  readonly name?: string
}

/** Reads the answer, in the order of the batch's events. */
export function readIntakeRow(row: IntakeRow | undefined): IntakeEntry[] {
  if (row === undefined) return []
  const eventKeys = elementsOf(row.event_keys)
  return elementsOf(row.source_ids).map((sourceId, index) => ({
    sourceId: sourceId === 'NULL' ? null : Number(sourceId),
    eventKey: readKey(eventKeys[index]),
  }))
}

function elementsOf(array: string): string[] {
  return array.slice(1, -1).split(',')
}

function readKey(text: string | undefined): bigint | null {
  return text === undefined || text === 'NULL' ? null : BigInt(text)
}

/** How a batch is written. */
export interface IntakeStatementOptions {
  /** The quoted schema with a trailing dot. */
  readonly schema: string
  /** How long to wait for another transaction that is inserting one of the identities. */
  readonly lockTimeoutMs: number
  /** The bodies of the batch, joined in its order. */
  readonly bodies: Buffer
  /** Whether to name the statement, so that it is parsed and planned once for each connection. */
  readonly prepared: boolean
}

/**
 * Builds the statement for a batch. Bodies and hashes travel as one binary value each with positions
 * beside them: an array of bytea would be sent as hexadecimal text, twice the size.
 */
export function intakeStatement(
  batch: readonly IncomingDelivery[],
  { schema, lockTimeoutMs, bodies, prepared }: IntakeStatementOptions,
): NamedStatement {
  const { namespaces, columns } = layOut(batch)
  // a column more only where there is something to write into it
  const isTraced = batch.some(({ trace }) => trace != null)
  const { text, name } = intakeSql(schema, isTraced)
  return {
    text,
    ...(prepared && { name }),
    values: [
      bodies,
      Buffer.concat(batch.map(({ bodySha256 }) => bodySha256)),
      namespaces.map(({ provider }) => provider),
      namespaces.map(({ account }) => account),
      namespaces.map(({ environment }) => environment),
      columns.namespace,
      columns.eventId,
      columns.eventType,
      columns.occurredAt,
      columns.apiVersion,
      columns.delivery,
      columns.bodyStart,
      columns.bodyBytes,
      String(lockTimeoutMs),
      ...(isTraced ? [columns.delivery.map((index) => batch[index]?.trace ?? null)] : []),
    ],
  }
}

interface Columns {
  readonly namespace: number[]
  readonly eventId: string[]
  readonly eventType: string[]
  readonly occurredAt: (string | null)[]
  readonly apiVersion: (string | null)[]
  readonly delivery: number[]
  readonly bodyStart: number[]
  readonly bodyBytes: number[]
}

function layOut(batch: readonly IncomingDelivery[]): {
  namespaces: SourceNamespace[]
  columns: Columns
} {
  const namespaces: SourceNamespace[] = []
  const numbers = new Map<string, number>()
  const columns: Columns = {
    namespace: [],
    eventId: [],
    eventType: [],
    occurredAt: [],
    apiVersion: [],
    delivery: [],
    bodyStart: [],
    bodyBytes: [],
  }
  let start = 1
  batch.forEach(({ events, rawBody }, index) => {
    for (const event of events) {
      const key = namespaceKey(event.namespace)
      let number = numbers.get(key)
      if (number === undefined) {
        number = namespaces.push(event.namespace)
        numbers.set(key, number)
      }
      columns.namespace.push(number)
      columns.eventId.push(event.eventId)
      columns.eventType.push(event.eventType)
      columns.occurredAt.push(event.occurredAt)
      columns.apiVersion.push(event.apiVersion)
      columns.delivery.push(index)
      columns.bodyStart.push(start)
      columns.bodyBytes.push(rawBody.byteLength)
    }
    start += rawBody.byteLength
  })
  return { namespaces, columns }
}

interface NamedSql {
  readonly text: string
  readonly name: string
}

const known = new Map<string, NamedSql>()

/** The name has the text's hash in it: behind a pooler, one name must never mean two texts. */
function intakeSql(schema: string, isTraced: boolean): NamedSql {
  const key = isTraced ? `${schema} traced` : schema
  let sql = known.get(key)
  if (sql === undefined) {
    const text = buildIntakeSql(schema, isTraced)
    const hash = createHash('sha256').update(text).digest('hex').slice(0, 16)
    sql = { text, name: `hookledger_intake_${hash}` }
    known.set(key, sql)
  }
  return sql
}

/**
 * `settings` raises synchronous_commit for this transaction where a pooler, a role or an earlier user
 * of the connection lowered it; stronger levels stay. Every write reads `input`, which reads it.
 *
 * Identities are inserted sorted by the whole key: two receivers with the same ids wait for each
 * other in one order and cannot deadlock.
 */
function buildIntakeSql(schema: string, isTraced: boolean): string {
  const trace = isTraced ? ', trace' : ''
  return `with settings as materialized (
  select
    set_config('synchronous_commit', case when current_setting('synchronous_commit') in ('off', 'local')
      then 'on' else current_setting('synchronous_commit') end, true) as level,
    set_config('lock_timeout', $14::text, true) as lock_timeout,
    (select array_agg(s.source_id order by n.position)
     from unnest($3::text[], $4::text[], $5::text[]) with ordinality n(provider, account, environment, position)
     left join ${schema}sources s
       on s.provider = n.provider and s.provider_account = n.account and s.environment = n.environment) as source_ids
), input as materialized (
  select i.position, settings.source_ids[i.namespace] as source_id, i.event_id collate "C" as event_id, i.event_type,
    i.occurred_at, i.api_version, i.body_start, i.body_bytes${isTraced ? ', i.trace' : ''}, substring($2::bytea from i.delivery * 32 + 1 for 32) as body_sha256
  from settings
  cross join unnest($6::integer[], $7::text[], $8::text[], $9::timestamptz[], $10::text[], $11::integer[], $12::integer[], $13::integer[]${isTraced ? ', $15::text[]' : ''})
    with ordinality i(namespace, event_id, event_type, occurred_at, api_version, delivery, body_start, body_bytes${trace}, position)
), stored as (
  insert into ${schema}inbox_events (source_id, event_id, event_type, occurred_at, api_version, body_sha256, body_bytes${trace})
  select distinct on (source_id, event_id) source_id, event_id, event_type, occurred_at, api_version, body_sha256, body_bytes${trace}
  from input
  where source_id is not null
  order by source_id, event_id, position
  on conflict (source_id, event_id) do nothing
  returning event_key, source_id, event_id
), outcome as materialized (
  select i.position, i.source_id, i.event_id, i.body_start, i.body_bytes, s.event_key
  from input i
  left join stored s on s.source_id = i.source_id and s.event_id = i.event_id
), bodies as (
  insert into ${schema}payloads (event_key, received_on, body)
  select distinct on (event_key) event_key, (now() at time zone 'UTC')::date, substring($1::bytea from body_start for body_bytes)
  from outcome
  where event_key is not null
  order by event_key, position
), ready as (
  insert into ${schema}inbox_ready (event_key, received_on)
  select event_key, (now() at time zone 'UTC')::date
  from stored
), delivered as (
  insert into ${schema}deliveries (source_id, event_id, body_sha256)
  select source_id, event_id, body_sha256
  from input
  where source_id is not null
), known as (
  insert into ${schema}inbox_redeliveries (source_id, event_id)
  select source_id, event_id
  from outcome
  where event_key is null and source_id is not null
)
select array_agg(source_id order by position)::text as source_ids, array_agg(event_key order by position)::text as event_keys
from outcome`
}
