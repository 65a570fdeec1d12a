import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import {
  invoicePaid,
  invoicePaymentPaid,
  refundCreated,
  refundFailed,
  refundUpdated,
} from '../../src/testing/stripe-events.ts'
import { createShop, type Shop } from '../support/shop.ts'
import { emptyTables } from '../support/probe.ts'

let shop: Shop
beforeAll(async () => {
  shop = await createShop()
})
afterAll(() => shop.close())
beforeEach(() => emptyTables(shop.pool))

const months = { january: 2000, february: 2000, march: 2050 }
type Month = keyof typeof months

const invoice = (month: Month): object =>
  invoicePaid({
    id: `in_${month}`,
    subscription: 'sub_1',
    metadata: { account_id: 'acc_1' },
    amount: months[month],
  })
const payment = (month: Month): object =>
  invoicePaymentPaid({
    invoice: `in_${month}`,
    paymentIntent: `pi_${month}`,
    amount: months[month],
  })
const refunding = (month: Month, amount: number = months[month], id = `re_${month}`) =>
  ({ id, paymentIntent: `pi_${month}`, charge: null, amount }) as const

async function deliver(...events: object[]): Promise<void> {
  for (const event of events) {
    await shop.deliver(event)
    await shop.work()
  }
}

const credits = async (): Promise<number | undefined> =>
  (await shop.rows<{ credits: number }>('select credits::int from shop.accounts'))[0]?.credits
const refunded = (): Promise<unknown[]> =>
  shop.rows(`select effect_reference as refund, data ->> 'invoice' as invoice
    from fulfillment_effects where effect_type = 'refund' order by 1`)
const unfinished = (): Promise<unknown[]> =>
  shop.rows(`select event_type from webhook_inbox where state not in ('processed', 'ignored')`)

describe('the credits of an invoice', () => {
  it("a refund of January's takes back January's, and February's stay", async () => {
    await deliver(invoice('january'), payment('january'), invoice('february'), payment('february'))
    expect(await credits()).toBe(40)
    await deliver(refundCreated(refunding('january')))
    expect(await credits()).toBe(20)
    expect(await refunded()).toEqual([{ refund: 're_january', invoice: 'in_january' }])
    await deliver(refundCreated(refunding('january')), refundUpdated(refunding('january')))
    expect(await credits()).toBe(20)
  })

  it('a refund that comes before all that explains it waits, and ends the same', async () => {
    await deliver(refundCreated(refunding('january')))
    expect(await credits()).toBeUndefined()
    expect(await unfinished()).toEqual([{ event_type: 'refund.created' }])
    await deliver(payment('january'), invoice('february'), invoice('january'))
    expect(await credits()).toBe(20)
    expect(await unfinished()).toEqual([])
  })

  it('invoices of older versions name what paid them', async () => {
    const paid = invoice('january') as { data: { object: object } }
    const object = {
      ...paid.data.object,
      parent: null,
      subscription: 'sub_1',
      payment_intent: 'pi_january',
    }
    await deliver({ ...paid, data: { object } }, refundCreated(refunding('january')))
    expect(await credits()).toBe(0)
    expect(await unfinished()).toEqual([])
  })

  it('refunds in parts take back what was credited, and not one more or less', async () => {
    await deliver(invoice('march'), payment('march'))
    expect(await credits()).toBe(20)
    await deliver(refundCreated(refunding('march', 25, 're_1')))
    expect(await credits()).toBe(20)
    await deliver(refundCreated(refunding('march', 1035, 're_2')))
    expect(await credits()).toBe(9)
    await deliver(refundCreated(refunding('march', 990, 're_3')))
    expect(await credits()).toBe(0)
  })

  it('a refund that fails in the end takes nothing, whichever of the two is known first', async () => {
    await deliver(invoice('january'), payment('january'))
    await deliver(refundCreated(refunding('january')))
    expect(await credits()).toBe(0)
    await deliver(refundFailed(refunding('january')))
    expect(await credits()).toBe(20)
    await deliver(refundFailed(refunding('january', 500, 're_other')))
    await deliver(refundCreated(refunding('january', 500, 're_other')))
    expect(await credits()).toBe(20)
  })

  it('an invoice that earned nothing has nothing to give back', async () => {
    const paid = invoicePaid({
      id: 'in_free',
      subscription: 'sub_1',
      metadata: { account_id: 'acc_1' },
      amount: 99,
    })
    await deliver(
      paid,
      invoicePaymentPaid({ invoice: 'in_free', paymentIntent: 'pi_free', amount: 99 }),
    )
    await deliver(
      invoice('january'),
      refundCreated({ ...refunding('january', 99), paymentIntent: 'pi_free' }),
    )
    expect(await credits()).toBe(20)
    expect(await unfinished()).toEqual([])
  })

  it('two subscriptions of one account, worked on at once, lose no credit', async () => {
    const ids = Array.from({ length: 20 }, (_, index) => `${index}`)
    const events = ids.flatMap((id) => {
      const paid = { id: `in_${id}`, subscription: `sub_${id}`, metadata: { account_id: 'acc_1' } }
      const by = { invoice: `in_${id}`, paymentIntent: `pi_${id}`, amount: 2000 }
      return [
        invoicePaid({ ...paid, amount: 2000 }),
        invoicePaymentPaid(by),
        refundCreated({ id: `re_${id}`, paymentIntent: `pi_${id}`, amount: 500 }),
      ]
    })
    await Promise.all(events.map((event) => shop.deliver(event)))
    await Promise.all([shop.work(), shop.work(), shop.work()])
    await shop.work()
    expect(await credits()).toBe(20 * 15)
    expect(await unfinished()).toEqual([])
  })
})
