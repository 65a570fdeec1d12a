/**
 * What somebody with a SQL prompt does to a few orders behind the ledger's back: a state set by hand, access
 * switched off, access given away. Each leaves the decisions as they are, so that they no longer explain the order.
 */
import type { Database } from '../../postgres/executor.ts'
import type { Random } from '../stripe-double/random.ts'
import type { SimulationResult } from './simulation-report.ts'

/** How an order was tampered with. */
export type Trick =
  /** A paid order was written down as refunded; its customer keeps the access. */
  | 'state_changed'
  /** The customer of a paid order lost the access. */
  | 'access_withheld'
  /** The customer of a refunded order has access again. */
  | 'access_given'

/** One order that was tampered with. */
export interface Tampering {
  readonly orderId: string
  readonly trick: Trick
}

/** What each trick begins with, and what it does. */
const tricks: Readonly<Record<Trick, { readonly from: string; sql(s: string): string }>> = {
  state_changed: {
    from: 'paid',
    sql: (s) => `update ${s}orders set state = 'refunded' where order_id = $1 and state = 'paid'
      returning order_id`,
  },
  access_withheld: {
    from: 'paid',
    sql: (s) => `update ${s}entitlements t set active = false
      where t.order_id = $1 and t.active and exists (
        select 1 from ${s}orders o where o.order_id = t.order_id and o.state = 'paid')
      returning t.order_id`,
  },
  access_given: {
    from: 'refunded',
    sql: (s) => `update ${s}entitlements t set active = true
      where t.order_id = $1 and not t.active and t.stated and t.granted_by is not null and exists (
        select 1 from ${s}orders o where o.order_id = t.order_id and o.state = 'refunded')
      returning t.order_id`,
  },
}

/**
 * Orders of a run that nothing more will happen to: everything about them was sent, and they ended where these
 * tricks begin. What was lost of an order arrives later, and would be decided over what was tampered with.
 */
function untouched({ orders, lost, outcomes }: SimulationResult, state: string): string[] {
  const incomplete = new Set(lost.map((event) => event.orderId))
  return orders
    .filter((order) => !incomplete.has(order.id) && outcomes.get(order.id)?.state === state)
    .map((order) => order.id)
}

/** Tampers with so many orders of a run, the tricks by turns; those that it finds changed are left out. */
export async function tamperWith(
  db: Database,
  result: SimulationResult,
  count: number,
  random: Random,
): Promise<Tampering[]> {
  const done: Tampering[] = []
  const names = Object.keys(tricks) as Trick[]
  const left = new Map(
    ['paid', 'refunded'].map((state) => [state, random.shuffle(untouched(result, state))]),
  )
  for (let turn = 0; done.length < count && turn < count * 3; turn++) {
    const trick = names[turn % names.length]!
    const { from, sql } = tricks[trick]
    const orderId = left.get(from)?.pop()
    if (orderId === undefined) continue
    const changed = await db.query({ text: sql(db.schema), values: [orderId] })
    if (changed.length > 0) done.push({ orderId, trick })
  }
  return done
}
