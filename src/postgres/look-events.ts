/**
 * Events that say "look again" because somebody saw something of an object: a list of the provider's, a success
 * page. Their ids name what is known at that moment, so that whoever sees the same makes the same event, and an
 * object that is again as it was once is looked at again.
 */
import { Buffer } from 'node:buffer'
import { hash } from 'node:crypto'
import { toJson } from '../core/json.ts'
import type { Name } from '../workflow/order.ts'
import type { MadeEvent } from '../workflow/records.ts'
import type { Executor } from './executor.ts'

/** An object of an order that a mirror looks at. */
export interface LookedObject {
  readonly orderId: string
  readonly sourceId: number
  readonly object: Name
}

/** What is known of an object. */
export interface Knowledge {
  /** The number of the newest answer; 0 where there was none. */
  readonly answered: bigint
  /** The number of the newest answer that a decision was made from. */
  readonly applied: bigint
  /** Whether an event waits for an answer about it now. */
  readonly isWaiting: boolean
  /** The bytes of the event that asked for the newest answer, hashed (hex); null where there is none. */
  readonly askedBy: string | null
}

const unknown: Knowledge = { answered: 0n, applied: 0n, isWaiting: false, askedBy: null }

/** The statement of {@link readKnowledge}, exported so that its plan can be asserted. */
export function knowledgeStatement(s: string): string {
  return `select k.position::integer as position, l.answered, l.applied, encode(i.body_sha256, 'hex') as asked_by,
      exists (select 1 from ${s}inbox_gathers g where g.order_id = l.order_id and g.source_id = l.source_id
        and g.kind = l.kind and g.object_id = l.object_id and g.waiting offset 0) as waiting
    from unnest($1::text[], $2::integer[], $3::text[], $4::text[]) with ordinality
      as k(order_id, source_id, kind, object_id, position)
    cross join lateral (select l.* from ${s}looked_at l where l.order_id = k.order_id collate "C" and l.source_id = k.source_id
      and l.kind = k.kind collate "C" and l.object_id = k.object_id collate "C" offset 0) l
    left join lateral (select v.event_key from ${s}evidence v where v.evidence_id = l.evidence_id offset 0) v on true
    left join lateral (select e.body_sha256 from ${s}inbox_events e where e.event_key = v.event_key offset 0) i on true`
}

/** What is known of each, in the order in which they were asked about. No statement where nothing is. */
export async function readKnowledge(
  tx: Pick<Executor, 'query'>,
  schema: string,
  looked: readonly LookedObject[],
): Promise<readonly Knowledge[]> {
  const known: Knowledge[] = looked.map(() => unknown)
  if (looked.length === 0) return known
  const rows = await tx.query<{
    position: number
    answered: string
    applied: string
    asked_by: string | null
    waiting: boolean
  }>({
    text: knowledgeStatement(schema),
    repeated: true,
    values: [
      looked.map(({ orderId }) => orderId),
      looked.map(({ sourceId }) => sourceId),
      looked.map(({ object }) => object.kind),
      looked.map(({ object }) => object.value),
    ],
  })
  for (const row of rows) {
    known[row.position - 1] = {
      answered: BigInt(row.answered),
      applied: BigInt(row.applied),
      isWaiting: row.waiting,
      askedBy: row.asked_by,
    }
  }
  return known
}

/** The longest id that is stored, in bytes of UTF-8. */
const longestIdBytes = 255

/** The event under the id of a look that would add to what is known. */
export function lookEvent(
  made: MadeEvent,
  { orderId, object }: Omit<LookedObject, 'sourceId'>,
  { answered }: Pick<Knowledge, 'answered'>,
): MadeEvent {
  const look = `look-${answered + 1n}`
  const plain = `object:${object.kind}:${object.value}:${look}`
  const eventId = orderId === object.value ? plain : `${plain}:${orderId}`
  if (Buffer.byteLength(eventId, 'utf8') <= longestIdBytes) return { ...made, eventId }
  return { ...made, eventId: `object:${hash('sha256', eventId)}:${look}` }
}

/** Whether the newest answer came because of the very same event: looking once more because of it adds nothing. */
export function isToldAlready({ body }: MadeEvent, { askedBy }: Knowledge): boolean {
  return askedBy !== null && hash('sha256', Buffer.from(toJson(body), 'utf8')) === askedBy
}
