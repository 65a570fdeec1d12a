import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  checkoutSessionCompleted,
  paymentIntentSucceeded,
  refundCreated,
} from '../../src/testing/stripe-events.ts'
import { createShop, type Shop } from '../support/shop.ts'

let shop: Shop
beforeAll(async () => {
  shop = await createShop()
})
afterAll(() => shop.close())

/** The ledger's payments of an order, with the decision that each row names. */
async function paymentsOf(order: string): Promise<Record<string, unknown>[]> {
  return shop.rows(
    `select p.applied, d.kind as decided, o.state from payments p join decisions d using (decision_id)
     join orders o on o.order_id = p.order_id where p.order_id = $1`,
    [order],
  )
}

describe('a payment that was kept as not applied', () => {
  it('is applied in the ledger by the decision that accepts it in a later batch', async () => {
    await shop.deliver(checkoutSessionCompleted({ order: '2001', amount: 2900 }))
    await shop.work()
    expect(await paymentsOf('2001')).toEqual([
      { applied: false, decided: 'contradicted', state: 'pending' },
    ])
    await shop.deliver(paymentIntentSucceeded({ order: '2001' }))
    await shop.work()
    expect(await paymentsOf('2001')).toEqual([
      { applied: true, decided: 'fulfilled', state: 'paid' },
    ])
  })

  it('is applied in the ledger when both come in one batch', async () => {
    await shop.deliver(checkoutSessionCompleted({ order: '2002', amount: 2900 }))
    await shop.deliver(paymentIntentSucceeded({ order: '2002' }))
    await shop.work()
    expect(await paymentsOf('2002')).toEqual([
      { applied: true, decided: 'fulfilled', state: 'paid' },
    ])
  })

  it('counts for the refund that comes after all of it', async () => {
    await shop.deliver(refundCreated({ order: '2001', id: 're_2001', amount: 2900 }))
    await shop.work()
    expect(await shop.rows(`select state from orders where order_id = '2001'`)).toEqual([
      { state: 'refunded' },
    ])
  })
})
