/** Whether an id is an order's, and which events tell of one that was never opened. By index. */
import type { Database } from '../postgres/executor.ts'

/** An order that something is known of. */
export interface FoundOrder {
  /** False for one that was never opened: only events that were refused, or a look at the provider, name it. */
  readonly is_open: boolean
  /** Events that named it and were refused. */
  readonly event_keys: readonly string[]
}

/** Finds an order; null when nothing knows it. */
export async function findOrder(db: Database, orderId: string): Promise<FoundOrder | null> {
  const s = db.schema
  const [row] = await db.query<{ is_open: boolean; is_looked: boolean }>({
    text: `select exists (select from ${s}orders where order_id = $1) as is_open,
        exists (select from ${s}looked_at where order_id = $1) as is_looked`,
    values: [orderId],
  })
  if (row?.is_open === true) return { is_open: true, event_keys: [] }
  // findings about orders that were never opened are few
  const refused = await db.query<{ event_key: string }>({
    text: `select distinct event_key from ${s}findings
      where event_key is not null and order_id is null
        and (evidence ->> 'order' = $1 or $1 = any (string_to_array(evidence ->> 'orders', ', ')))
      order by event_key limit 100`,
    values: [orderId],
  })
  if (row?.is_looked !== true && refused.length === 0) return null
  return { is_open: false, event_keys: refused.map((each) => each.event_key) }
}
