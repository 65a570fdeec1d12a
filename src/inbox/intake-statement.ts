/**
 * The one statement behind every 2xx. For all requests that wait it writes identities, bodies and
 * ready rows of what is new, and a delivery row for every input: also a duplicate is answered only
 * after a flushed write of its own, because the first delivery may have been committed without one.
 */
import { Buffer } from 'node:buffer'
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
}

/** One row the statement answers, for each input whose namespace is registered. */
export interface IntakeRow {
  /** The input's position, from 1. */
  readonly position: string
  readonly source_id: number
  /** Set when the identity is new; the first input with it is the one that was stored. */
  readonly event_key: string | null
}

/**
 * Builds the statement for a batch. Bodies and hashes travel as one binary value each with positions
 * beside them: an array of bytea would be sent as hexadecimal text, twice the size.
 *
 * Waits at most `lockTimeoutMs` for another transaction that is inserting the same identity.
 */
export function intakeStatement(
  schema: string,
  batch: readonly IncomingDelivery[],
  lockTimeoutMs: number,
): Statement {
  const { namespaces, columns } = layOut(batch)
  return {
    text: intakeSql(schema),
    values: [
      joinBytes(batch.map(({ rawBody }) => rawBody)),
      joinBytes(batch.map(({ bodySha256 }) => bodySha256)),
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

function joinBytes(parts: readonly Uint8Array[]): Buffer {
  const [only] = parts
  if (parts.length === 1 && Buffer.isBuffer(only)) return only
  return Buffer.concat(parts)
}

const texts = new Map<string, string>()

function intakeSql(schema: string): string {
  let text = texts.get(schema)
  if (text === undefined) {
    text = buildIntakeSql(schema)
    texts.set(schema, text)
  }
  return text
}

/**
 * `settings` raises synchronous_commit for this transaction where a pooler, a role or an earlier user
 * of the connection lowered it; stronger levels stay. Every write reads `input`, which reads it.
 *
 * Identities are inserted sorted by the whole key: two receivers with the same ids wait for each
 * other in one order and cannot deadlock.
 */
function buildIntakeSql(schema: string): string {
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
    i.occurred_at, i.api_version, i.body_start, i.body_bytes, substring($2::bytea from i.delivery * 32 + 1 for 32) as body_sha256
  from settings
  cross join unnest($6::integer[], $7::text[], $8::text[], $9::timestamptz[], $10::text[], $11::integer[], $12::integer[], $13::integer[])
    with ordinality i(namespace, event_id, event_type, occurred_at, api_version, delivery, body_start, body_bytes, position)
  where settings.source_ids[i.namespace] is not null
), stored as (
  insert into ${schema}inbox_events (source_id, event_id, event_type, occurred_at, api_version, body_sha256, body_bytes)
  select distinct on (source_id, event_id) source_id, event_id, event_type, occurred_at, api_version, body_sha256, body_bytes
  from input
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
  from outcome where event_key is not null
  order by event_key, position
), ready as (
  insert into ${schema}inbox_ready (event_key, received_on)
  select event_key, (now() at time zone 'UTC')::date
  from stored
), delivered as (
  insert into ${schema}deliveries (source_id, event_id, body_sha256)
  select source_id, event_id, body_sha256
  from input
), known as (
  insert into ${schema}inbox_redeliveries (source_id, event_id)
  select source_id, event_id
  from outcome where event_key is null
)
select position, source_id, event_key from outcome`
}
