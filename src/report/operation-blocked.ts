/**
 * On a destination that takes the operations of an order one after the other, whatever comes after an
 * unfinished one waits for it. Who waits says so, and for what.
 */
import type { Database } from '../postgres/executor.ts'
import type { BlockingOperation } from './record-views.ts'

/** The destinations that take the operations of an order in sequence, by name. */
export type Sequenced = ReadonlySet<string>

/** No destination does. */
export const noneInSequence: Sequenced = new Set()

/** An operation as far as being blocked is concerned. */
interface Blockable {
  readonly operation_id: string
  readonly destination: string
  readonly order_id: string | null
  readonly state: string
  readonly next_attempt_at: unknown
}

/** What blocks these operations, by their id: the first unfinished one of their order and destination. */
export async function blockedBy(
  db: Database,
  operations: readonly Blockable[],
  sequenced: Sequenced,
): Promise<ReadonlyMap<string, BlockingOperation>> {
  // what is under way was let through, and what a person decides about does not wait for another
  const waiting = operations.filter(
    (each) =>
      each.order_id !== null && each.next_attempt_at !== null && sequenced.has(each.destination),
  )
  if (waiting.length === 0) return new Map()
  const s = db.schema
  const rows = await db.query<BlockingOperation & { blocked: string }>({
    text: `select o.operation_id::text as blocked, e.operation_id::text as operation_id, e.name, e.destination,
        e.effect_reference, e.state, (e.state in ('dead', 'uncertain') and e.next_attempt_at is null) as asks
      from unnest($1::uuid[]) as k(id)
      join ${s}outbox_operations o on o.operation_id = k.id
      cross join lateral (
        select * from ${s}outbox_operations f
        where f.order_id = o.order_id and f.destination = o.destination and f.sequence < o.sequence
          and f.state not in ('sent', 'canceled', 'discarded')
        order by f.sequence limit 1) e`,
    values: [waiting.map((each) => each.operation_id)],
  })
  return new Map(rows.map(({ blocked, ...operation }) => [blocked, operation]))
}
