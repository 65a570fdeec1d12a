/**
 * On destinations that take the operations of an order one after the other: the next one is due as soon as
 * the one before it ended.
 */
import type { Executor } from '../postgres/executor.ts'

/** Makes the next operation of each order due that waits behind one that ended. Under the destination's lock. */
export async function unparkOrders(
  s: string,
  tx: Executor,
  destination: string,
  orderIds: readonly string[],
): Promise<void> {
  if (orderIds.length === 0) return
  await tx.query({
    text: `with next as materialized (
        select n.operation_id from unnest($2::text[]) as k(order_id)
        cross join lateral (
          select operation_id, state from ${s}outbox_operations o
          where o.order_id = k.order_id and o.destination = $1 and o.state not in ('sent', 'canceled', 'discarded')
          order by o.sequence limit 1) n
        where n.state = 'pending')
      update ${s}outbox_operations o set next_attempt_at = now()
      where o.operation_id = any (array(select operation_id from next)) and o.attempts = 0
        and o.next_attempt_at > now()`,
    repeated: true,
    values: [destination, [...new Set(orderIds)]],
  })
}
