import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  chargeDisputeClosed,
  chargeDisputeCreated,
  checkoutSessionCompleted,
  customerUpdated,
  invoicePaid,
  paymentIntentSucceeded,
  refundCreated,
} from '../../src/testing/stripe-events.ts'
import { createShop, type Shop } from '../support/shop.ts'

let shop: Shop
beforeAll(async () => {
  shop = await createShop()
})
afterAll(() => shop.close())

describe('the shop on a database', () => {
  it('grants one license, whichever events come and however often', async () => {
    const events = [
      checkoutSessionCompleted({ order: '1001' }),
      paymentIntentSucceeded({ order: '1001' }),
    ]
    for (const event of [...events, ...events]) expect(await shop.deliver(event)).toBe(200)
    await shop.work()
    expect(await shop.rows(`select state from orders where order_id = '1001'`)).toEqual([
      { state: 'paid' },
    ])
    expect(
      await shop.rows(
        `select effect_type from fulfillment_effects where order_id = '1001' and effect_type = 'license'`,
      ),
    ).toHaveLength(1)
    expect(await shop.hookledger.entitlements('email:ada@example.com')).toEqual([
      { entitlement: 'pro', quantity: 1, validUntil: null },
    ])
    const inbox = await shop.rows(
      `select event_type, state, deliveries::int, attempts, order_id from webhook_inbox order by event_key`,
    )
    expect(inbox.map((row) => row['state'])).toEqual(['processed', 'processed'])
    expect(inbox.map((row) => row['deliveries'])).toEqual([2, 2])
  })

  it('waits for the payment of a refund that came first, and a dispute for its opening', async () => {
    const key = { order: '1002', email: 'bob@example.com' }
    await shop.deliver(refundCreated({ ...key, amount: 1900, id: 're_1' }))
    await shop.deliver(chargeDisputeClosed({ ...key, id: 'du_1', status: 'won' }))
    await shop.work()
    expect(
      await shop.rows(`select state, waits_for from webhook_inbox where state = 'deferred'`),
    ).toHaveLength(2)
    await shop.deliver(checkoutSessionCompleted(key))
    await shop.work()
    await shop.deliver(paymentIntentSucceeded(key))
    await shop.work()
    await shop.deliver(chargeDisputeCreated({ ...key, id: 'du_1' }))
    await shop.work()
    expect(
      await shop.rows(
        `select state, event_type, waits_for, last_error from webhook_inbox where state <> 'processed'`,
      ),
    ).toEqual([])
    expect(await shop.rows(`select state from orders where order_id = '1002'`)).toEqual([
      { state: 'paid' },
    ])
  })

  it('adds credits once for an invoice, in its own table', async () => {
    const invoice = invoicePaid({ metadata: { account_id: 'acc_1' }, amount: 2550 } as never)
    await shop.deliver(invoice)
    await shop.deliver(invoice)
    await shop.work()
    expect(await shop.rows(`select account_id, credits::int from shop.accounts`)).toEqual([
      { account_id: 'acc_1', credits: 25 },
    ])
  })

  it('runs a plain handler once', async () => {
    await shop.deliver(customerUpdated({}))
    await shop.work()
    expect(
      await shop.rows(`select kind from decisions where event_type = 'customer.updated'`),
    ).toEqual([{ kind: 'handled' }])
    expect(await shop.rows(`select 1 from shop.customers`)).toHaveLength(1)
  })
})
