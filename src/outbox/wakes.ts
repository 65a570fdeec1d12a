/**
 * Wake-ups of events that wait for an operation of their order. The row was committed with the end of the
 * operation; here the order is locked, so that a batch that decides about it at this moment is either seen
 * or sees the end, and what waits becomes ready in the commit that removes the row.
 */
import type { Database, Executor } from '../postgres/executor.ts'
import { keyedPlans } from '../postgres/keyed-plans.ts'
import { runParts } from '../postgres/write-parts.ts'
import type { WakePort } from './ports.ts'

/** Wakes of one transaction at most. */
const atOnce = 200

interface WakeRow {
  readonly wake_id: string
  readonly order_id: string
}

/** What a step came to. */
export interface WakeReport {
  /** Wakes that are done. */
  readonly done: number
  /** Whether there are more that nobody holds. */
  readonly more: boolean
}

/** Wakes what waits for orders whose operations ended. Orders that somebody else holds stay for later. */
export async function wakeOrders(
  db: Database,
  port: WakePort,
  lockTimeoutMs: number,
): Promise<WakeReport> {
  let woken = 0
  const report = await db.transaction(
    async (tx): Promise<WakeReport> => {
      const wakes = await tx.query<WakeRow>({
        text: `select wake_id::text as wake_id, order_id from ${db.schema}outbox_wakes
          order by wake_id limit ${atOnce} for update skip locked`,
        repeated: true,
      })
      if (wakes.length === 0) return { done: 0, more: false }
      const free = await freeOrders(db.schema, tx, wakes)
      const done = wakes.filter((wake) => free.has(wake.order_id))
      if (done.length === 0) return { done: 0, more: false }
      const counts = await runParts(tx, port.parts([...new Set(done.map((each) => each.order_id))]))
      woken = counts.get('woken') ?? 0
      await tx.query({
        text: `delete from ${db.schema}outbox_wakes where wake_id = any ($1::bigint[])`,
        repeated: true,
        values: [done.map((each) => each.wake_id)],
      })
      return { done: done.length, more: wakes.length === atOnce }
    },
    {
      // a process that is stopped in here keeps the orders for so long, and no longer
      setup: `set local idle_in_transaction_session_timeout = 3000; set local lock_timeout = ${Math.ceil(lockTimeoutMs)}; ${keyedPlans}`,
    },
  )
  if (woken > 0) port.woken(woken)
  return report
}

/** Orders that are locked now, and those that do not exist: nothing can wait for an operation of these. */
async function freeOrders(
  s: string,
  tx: Executor,
  wakes: readonly WakeRow[],
): Promise<ReadonlySet<string>> {
  const ids = [...new Set(wakes.map((each) => each.order_id))]
  const rows = await tx.query<{ order_id: string }>({
    text: `with locked as materialized (
        select order_id from ${s}orders where order_id = any ($1::text[]) order by order_id for no key update skip locked)
      select order_id from locked
      union all
      select k.order_id from unnest($1::text[]) as k(order_id)
      where not exists (select 1 from ${s}orders o where o.order_id = k.order_id)`,
    repeated: true,
    values: [ids],
  })
  return new Set(rows.map((row) => row.order_id))
}
