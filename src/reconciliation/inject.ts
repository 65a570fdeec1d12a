/**
 * Puts events that never arrived into the inbox, beside receivers that may be putting in the same ones:
 * whoever is first has stored it, and no event is stored twice. They take the same way from there on.
 */
import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { toJson } from '../core/json.ts'
import type { Executor } from '../postgres/executor.ts'
import type { MadeEvent } from '../workflow/records.ts'

/** An event to be put into the inbox. */
export interface InjectedEvent {
  /** The number of the source's row. */
  readonly sourceId: number
  readonly event: MadeEvent
}

/** One that was not there before. */
export interface NewEvent {
  readonly eventKey: bigint
  readonly eventId: string
  readonly eventType: string
}

/** Which door it came through. */
export type InjectionDoor = 'reconciliation' | 'confirm'

interface NewRow {
  readonly event_key: string
  readonly event_id: string
  readonly event_type: string
}

/**
 * Stores identities, bodies and ready rows of those that are new, in one statement inside the caller's
 * transaction, and answers with them. No delivery is recorded: there was none.
 *
 * Identities are inserted sorted by their whole key, as receivers do: whoever comes second waits for the
 * first and cannot deadlock with it.
 */
export async function injectEvents(
  tx: Executor,
  schema: string,
  events: readonly InjectedEvent[],
  door: InjectionDoor,
): Promise<NewEvent[]> {
  if (events.length === 0) return []
  const bodies = events.map(({ event }) => Buffer.from(toJson(event.body), 'utf8'))
  const rows = await tx.query<NewRow>({
    text: injectSql(schema),
    values: [
      Buffer.concat(bodies),
      Buffer.concat(bodies.map((body) => createHash('sha256').update(body).digest())),
      events.map(({ sourceId }) => sourceId),
      events.map(({ event }) => event.eventId),
      events.map(({ event }) => event.eventType),
      events.map(({ event }) => event.occurredAt?.toISOString() ?? null),
      events.map(({ event }) => event.apiVersion),
      bodies.map(({ byteLength }) => byteLength),
      door,
    ],
  })
  return rows.map((row) => ({
    eventKey: BigInt(row.event_key),
    eventId: row.event_id,
    eventType: row.event_type,
  }))
}

/** Bodies travel as one binary value with their lengths beside it. */
function injectSql(schema: string): string {
  return `with input as materialized (
  select i.position, i.source_id, i.event_id collate "C" as event_id, i.event_type, i.occurred_at, i.api_version,
    i.body_bytes, coalesce(sum(i.body_bytes) over (order by i.position rows between unbounded preceding and 1 preceding), 0)::integer + 1 as body_start
  from unnest($3::integer[], $4::text[], $5::text[], $6::timestamptz[], $7::text[], $8::integer[])
    with ordinality i(source_id, event_id, event_type, occurred_at, api_version, body_bytes, position)
), stored as (
  insert into ${schema}inbox_events (source_id, event_id, event_type, via, occurred_at, api_version, body_sha256, body_bytes)
  select distinct on (source_id, event_id) source_id, event_id, event_type, $9::text, occurred_at, api_version,
    substring($2::bytea from (position::integer - 1) * 32 + 1 for 32), body_bytes
  from input
  order by source_id, event_id, position
  on conflict (source_id, event_id) do nothing
  returning event_key, source_id, event_id, event_type
), bodies as (
  insert into ${schema}payloads (event_key, received_on, body)
  select distinct on (s.event_key) s.event_key, (now() at time zone 'UTC')::date, substring($1::bytea from i.body_start for i.body_bytes)
  from stored s
  join input i on i.source_id = s.source_id and i.event_id = s.event_id
  order by s.event_key, i.position
), ready as (
  insert into ${schema}inbox_ready (event_key, received_on)
  select event_key, (now() at time zone 'UTC')::date
  from stored
)
select event_key::text as event_key, event_id, event_type from stored order by stored.event_key`
}

/** Which of these events are in the inbox, through whichever door they came. */
export async function knownEvents(
  tx: Pick<Executor, 'query'>,
  schema: string,
  sourceId: number,
  eventIds: readonly string[],
): Promise<ReadonlySet<string>> {
  if (eventIds.length === 0) return new Set()
  const rows = await tx.query<{ event_id: string }>({
    text: `select e.event_id from unnest($2::text[]) n(event_id)
      cross join lateral (
        select i.event_id from ${schema}inbox_events i
        where i.source_id = $1 and i.event_id = n.event_id collate "C" offset 0) e`,
    values: [sourceId, eventIds],
  })
  return new Set(rows.map((row) => row.event_id))
}
