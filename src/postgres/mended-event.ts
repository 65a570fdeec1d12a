/**
 * Events made from a provider's objects, whose id says which fact they tell: where one of that id is dead and
 * its body was another one, a second body is told under an id of its own, so that garbage poisons no fact.
 */
import { Buffer } from 'node:buffer'
import { hash } from 'node:crypto'
import { toJson } from '../core/json.ts'
import type { MadeEvent } from '../workflow/records.ts'
import type { Executor } from './executor.ts'

/** Only ids that Hookledger gives: a provider's own id is one event for ever. */
const ownPrefix = 'object:'

/** The longest id that is stored, in bytes of UTF-8. */
const longestIdBytes = 255

/** The id under which a body is told again: the first one's, and what tells the body. */
function mendedId(eventId: string, sha256: string): string {
  return `${eventId}~${sha256.slice(0, 12)}`
}

/**
 * SQL of whether an event of this row's source (`source_id`, `event_id`) was told again, and what `also` holds
 * of that one, `t`. A range of the index of identities: `~` sorts behind every hexadecimal digit.
 */
export function toldAgainSql(schema: string, row: string, also: string): string {
  return `(${row}.event_id like '${ownPrefix}%' and exists (select 1 from ${schema}inbox_events t
    where t.source_id = ${row}.source_id and t.event_id > ${row}.event_id || '~' and t.event_id < ${row}.event_id || '~~'
      and octet_length(t.event_id) = octet_length(${row}.event_id) + 13 and ${also}))`
}

/**
 * The events in their order, those under another id whose own is dead with another body. Reads only; the same
 * body always gets the same id.
 */
export async function mendedEvents(
  db: Pick<Executor, 'query'>,
  schema: string,
  sourceId: number,
  events: readonly MadeEvent[],
): Promise<readonly MadeEvent[]> {
  const ids = events.map(({ eventId }) => eventId).filter((id) => id.startsWith(ownPrefix))
  if (ids.length === 0) return events
  const rows = await db.query<{ event_id: string; body: string }>({
    text: `select e.event_id, encode(e.body_sha256, 'hex') as body from unnest($2::text[]) as k(id)
      cross join lateral (select i.event_id, i.event_key, i.body_sha256 from ${schema}inbox_events i
        where i.source_id = $1 and i.event_id = k.id collate "C" offset 0) e
      where exists (select 1 from ${schema}inbox_dead x where x.event_key = e.event_key offset 0)`,
    repeated: true,
    values: [sourceId, [...new Set(ids)]],
  })
  if (rows.length === 0) return events
  const dead = new Map(rows.map((row) => [row.event_id, row.body]))
  return events.map((event) => {
    const known = dead.get(event.eventId)
    if (known === undefined) return event
    const sha256 = hash('sha256', Buffer.from(toJson(event.body), 'utf8'))
    const eventId = mendedId(event.eventId, sha256)
    const isSame = sha256 === known || Buffer.byteLength(eventId, 'utf8') > longestIdBytes
    return isSame ? event : { ...event, eventId }
  })
}
