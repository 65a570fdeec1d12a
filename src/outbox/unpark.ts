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
    text: `select ${s}unpark_orders($1, $2::text[])`,
    repeated: true,
    values: [destination, [...new Set(orderIds)]],
  })
}
