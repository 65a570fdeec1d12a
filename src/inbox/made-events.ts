/**
 * Events that were made from a provider's records, put into the inbox: under ids of their own, once, and
 * ready to be worked on. Identities are inserted sorted by their key, as receivers do it.
 */
import { hash } from 'node:crypto'
import { toJson } from '../core/json.ts'
import type { Database } from '../postgres/executor.ts'
import { mendedEvents } from '../postgres/mended-event.ts'
import type { MadeEvent } from '../workflow/records.ts'
import { NamespaceRegistry, type SourceNamespace } from './source.ts'

/** The bytes under which a made event is stored. */
export function bytesOf(event: MadeEvent): Buffer {
  return Buffer.from(toJson(event.body), 'utf8')
}

/** Milliseconds to wait for somebody who is storing the same event. */
const lockTimeoutMs = 500

/**
 * Stores what is not there yet and resolves with the keys of all of them, in the order given. The first
 * body under an id stays; where that one is dead, another body is stored under an id of its own.
 */
export async function storeMadeEvents(
  db: Database,
  via: 'confirm',
  namespace: SourceNamespace,
  made: readonly MadeEvent[],
): Promise<readonly bigint[]> {
  if (made.length === 0) return []
  const s = db.schema
  const { provider, account, environment } = namespace
  await new NamespaceRegistry(db).ensure([namespace])
  const [source] = await db.query<{ source_id: number }>({
    text: `select source_id from ${s}sources where provider = $1 and provider_account = $2 and environment = $3`,
    values: [provider, account, environment],
  })
  const events = await mendedEvents(db, s, source?.source_id ?? 0, made)
  const bodies = events.map(bytesOf)
  await db.transaction(
    async (tx) => {
      for (const at of sortedPlaces(events)) {
        const event = events[at]
        const body = bodies[at]
        if (event === undefined || body === undefined) continue
        await tx.query({
          text: `with stored as (
              insert into ${s}inbox_events (source_id, event_id, event_type, via, occurred_at, api_version, body_sha256, body_bytes)
              select n.source_id, $4, $5, $6, $7::timestamptz, $8, $9::bytea, $10::integer
              from ${s}sources n where n.provider = $1 and n.provider_account = $2 and n.environment = $3
              on conflict (source_id, event_id) do nothing returning event_key),
            kept as (
              insert into ${s}payloads (event_key, received_on, body)
              select event_key, (now() at time zone 'UTC')::date, $11::bytea from stored)
            insert into ${s}inbox_ready (event_key, received_on)
            select event_key, (now() at time zone 'UTC')::date from stored`,
          values: [
            provider,
            account,
            environment,
            event.eventId,
            event.eventType,
            via,
            event.occurredAt?.toISOString() ?? null,
            event.apiVersion,
            hash('sha256', body, 'buffer'),
            body.byteLength,
            body,
          ],
        })
      }
    },
    { setup: `set local lock_timeout = ${lockTimeoutMs}` },
  )
  const rows = await db.query<{ event_id: string; event_key: string }>({
    text: `select e.event_id, e.event_key::text as event_key
      from ${s}sources n
      join ${s}inbox_events e on e.source_id = n.source_id and e.event_id = any ($4::text[])
      where n.provider = $1 and n.provider_account = $2 and n.environment = $3`,
    values: [provider, account, environment, events.map(({ eventId }) => eventId)],
  })
  const keys = new Map(rows.map((row) => [row.event_id, BigInt(row.event_key)]))
  return events.flatMap(({ eventId }) => keys.get(eventId) ?? [])
}

/** By the bytes of their ids. */
function sortedPlaces(events: readonly MadeEvent[]): number[] {
  return events
    .map(({ eventId }, at) => ({ at, bytes: Buffer.from(eventId, 'utf8') }))
    .sort((a, b) => Buffer.compare(a.bytes, b.bytes))
    .map(({ at }) => at)
}
