import type Stripe from 'stripe'
import { describe, expect, test } from 'vitest'
import type { CreateSubscriptionInput } from '../../../src/testing/stripe-double/billing-verbs.ts'
import {
  createStripeDouble,
  type StripeDouble,
} from '../../../src/testing/stripe-double/stripe-double.ts'
import { serveWithClient } from './stripe-client.ts'

const day = 86_400

interface Prices {
  readonly team: string
  readonly pro: string
}

function pricesOf(double: StripeDouble): Prices {
  const product = double.createProduct({ name: 'Plans' })
  const price = (lookupKey: string, unitAmount: number) =>
    double.createPrice({ product: product.id, interval: 'month', lookupKey, unitAmount }).id
  return { team: price('team_monthly', 1000), pro: price('pro_monthly', 3000) }
}

/** A double with one subscription, active unless asked otherwise. */
function subscribed(input: Partial<CreateSubscriptionInput> = {}) {
  const double = createStripeDouble({ signingSecret: 'whsec_test', seed: 'subscriptions' })
  const prices = pricesOf(double)
  const customer = double.createCustomer({ email: 'ada@example.com' })
  const { id } = double.createSubscription({
    customer: customer.id,
    price: prices.team,
    quantity: 2,
    metadata: { org: '7' },
    ...input,
  })
  const now = () => double.find('subscription', id)!
  const told = (run: () => unknown) =>
    double.hold(run).events.map((event) => {
      const { status } = event.data.object as { status?: string }
      return event.type.startsWith('customer.subscription') ? `${event.type} ${status}` : event.type
    })
  return { double, prices, customer, id, now, told }
}

describe('a trial', () => {
  test('costs nothing, and becomes active and paid at its end', () => {
    const { double, id, now, told } = subscribed({ trialDays: 14 })
    const trialEnd = now().trial_end!
    expect(now()).toMatchObject({ status: 'trialing', trial_end: trialEnd })
    expect(now().items.data[0]?.current_period_end).toBe(trialEnd)
    expect(double.all('payment_intent')).toEqual([])
    expect(told(() => double.announceTrialEnd(id))).toEqual([
      'customer.subscription.trial_will_end trialing',
    ])
    expect(told(() => double.renewSubscription(id)).at(-1)).toBe(
      'customer.subscription.updated active',
    )
    expect(now().items.data[0]?.current_period_start).toBe(trialEnd)
    expect(double.all('invoice').map((invoice) => invoice.amount_paid)).toEqual([0, 2000])
  })
})

describe('a payment that fails', () => {
  test('makes two updates in one second: the renewal, and that it is past due', () => {
    const { double, id, now } = subscribed()
    const { events } = double.hold(() => double.renewSubscription(id, { outcome: 'failed' }))
    const updates = events.filter((event) => event.type === 'customer.subscription.updated')
    expect(updates.map((event) => (event.data.object as Stripe.Subscription).status)).toEqual([
      'active',
      'past_due',
    ])
    expect(new Set(events.map((event) => event.created)).size).toBe(1)
    expect(now().status).toBe('past_due')
  })

  test.each([
    ['unpaid', 'customer.subscription.updated unpaid'],
    ['canceled', 'customer.subscription.deleted canceled'],
  ] as const)('ends as %s when it is given up', (becomes, event) => {
    const { double, id, now, told } = subscribed()
    expect(() => double.giveUpPayment(id, becomes)).toThrow('not past due')
    double.renewSubscription(id, { outcome: 'failed' })
    const invoice = now().latest_invoice as string
    double.payInvoice(invoice, { outcome: 'failed' })
    expect(double.find('invoice', invoice)).toMatchObject({ status: 'open', attempt_count: 2 })
    expect(told(() => double.giveUpPayment(id, becomes))).toEqual([event])
    expect(now().status).toBe(becomes)
  })

  test('of an unpaid one brings it back when it is paid after all, of a canceled one does not', () => {
    for (const [becomes, then] of [
      ['unpaid', 'active'],
      ['canceled', 'canceled'],
    ] as const) {
      const { double, id, now } = subscribed()
      double.renewSubscription(id, { outcome: 'failed' })
      double.giveUpPayment(id, becomes)
      double.payInvoice(now().latest_invoice as string)
      expect(now().status).toBe(then)
    }
  })

  test('of the first invoice leaves it incomplete until it expires', () => {
    const { double, id, now, told } = subscribed({ outcome: 'failed' })
    expect(now().status).toBe('incomplete')
    expect(told(() => double.expireSubscription(id))).toEqual([
      'invoice.voided',
      'customer.subscription.updated incomplete_expired',
    ])
    expect(double.find('invoice', now().latest_invoice as string)?.status).toBe('void')
    expect(() => double.renewSubscription(id)).toThrow('incomplete_expired')
  })
})

describe('a change', () => {
  test('to another plan bills what is left of the period, less what was paid for it', () => {
    const { double, id, prices, now, told } = subscribed()
    const types = told(() =>
      double.changeSubscription(id, {
        price: prices.pro,
        quantity: 1,
        proration: 'invoice',
        elapsed: 0.5,
      }),
    )
    expect(types[0]).toBe('customer.subscription.updated active')
    expect(types).toContain('invoice.paid')
    expect(now().items.data[0]).toMatchObject({ price: { id: prices.pro }, quantity: 1 })
    const invoice = double.find('invoice', now().latest_invoice as string)!
    expect(invoice).toMatchObject({ billing_reason: 'subscription_update', amount_paid: 500 })
    expect(invoice.lines.data.map((line) => line.amount)).toEqual([-1000, 1500])
    const { current_period_start: start, current_period_end: end } = now().items.data[0]!
    for (const { period } of invoice.lines.data)
      expect(period).toEqual({ start: Math.round((start + end) / 2), end })
  })

  test('to fewer seats leaves the customer a balance that the next invoice uses', () => {
    const { double, id, customer, now } = subscribed()
    double.changeSubscription(id, { quantity: 1, proration: 'invoice', elapsed: 0.25 })
    expect(double.find('invoice', now().latest_invoice as string)).toMatchObject({
      total: -750,
      amount_due: 0,
      status: 'paid',
    })
    expect(double.find('customer', customer.id)?.balance).toBe(-750)
    double.renewSubscription(id)
    expect(double.find('invoice', now().latest_invoice as string)?.amount_paid).toBe(250)
    expect(double.find('customer', customer.id)?.balance).toBe(0)
  })

  test('says before and after in its event, and bills nothing unless asked', () => {
    const { double, id } = subscribed()
    const { events } = double.hold(() => double.changeSubscription(id, { quantity: 5 }))
    expect(events).toHaveLength(1)
    expect(events[0]?.data.previous_attributes).toMatchObject({
      items: { data: [{ quantity: 2 }] },
    })
  })

  test('adds a price, and takes one away', () => {
    const { double, id, prices, now } = subscribed()
    double.changeSubscription(id, { items: [{ price: prices.pro }] })
    expect(now().items.data.map((item) => item.price.lookup_key)).toEqual([
      'team_monthly',
      'pro_monthly',
    ])
    const first = now().items.data[0]!.id
    double.changeSubscription(id, { items: [{ id: first, deleted: true }] })
    expect(now().items.data.map((item) => item.price.lookup_key)).toEqual(['pro_monthly'])
    const last = now().items.data[0]!.id
    expect(() => double.changeSubscription(id, { items: [{ id: last, deleted: true }] })).toThrow(
      'at least one',
    )
  })
})

describe('an end', () => {
  test('with the period can be taken back, and comes with the period if it is not', () => {
    const { double, id, now, told } = subscribed()
    double.cancelAtPeriodEnd(id)
    expect(now()).toMatchObject({
      status: 'active',
      cancel_at_period_end: true,
      cancel_at: now().items.data[0]!.current_period_end,
    })
    double.cancelAtPeriodEnd(id, false)
    expect(now()).toMatchObject({ cancel_at: null, canceled_at: null })
    double.cancelAtPeriodEnd(id)
    expect(told(() => double.renewSubscription(id))).toEqual([
      'customer.subscription.deleted canceled',
    ])
    expect(double.all('invoice')).toHaveLength(1)
  })

  test('is final', () => {
    const { double, id, prices } = subscribed()
    double.cancelSubscription(id)
    expect(() => double.cancelSubscription(id)).toThrow('No such subscription')
    expect(() => double.changeSubscription(id, { price: prices.pro })).toThrow('canceled')
    expect(() => double.cancelAtPeriodEnd(id)).toThrow('canceled')
  })
})

describe('a pause', () => {
  test('ends with a new period that is paid, and not without the payment', () => {
    const { double, id, now, told } = subscribed()
    const end = now().items.data[0]!.current_period_end
    expect(told(() => double.pauseSubscription(id))).toEqual([
      'customer.subscription.updated paused',
      'customer.subscription.paused paused',
    ])
    double.resumeSubscription(id, { outcome: 'failed' })
    expect(now().status).toBe('paused')
    expect(told(() => double.resumeSubscription(id)).slice(-2)).toEqual([
      'customer.subscription.updated active',
      'customer.subscription.resumed active',
    ])
    expect(now().items.data[0]!.current_period_start).toBeGreaterThanOrEqual(end)
  })
})

describe('the past', () => {
  test('can be where a subscription began', () => {
    const start = Math.floor(Date.now() / 1000) - 90 * day
    const { double, id, now } = subscribed({ start })
    expect(now().items.data[0]!.current_period_start).toBe(start)
    const before = now().items.data[0]!.current_period_end
    double.renewSubscription(id)
    expect(now().items.data[0]!.current_period_start).toBe(before)
  })

  test('stays what it was in the events that told of it', () => {
    const { double, id, now } = subscribed()
    const { events } = double.hold(() => {
      double.cancelAtPeriodEnd(id)
      double.cancelSubscription(id)
    })
    expect((events[0]?.data.object as Stripe.Subscription).status).toBe('active')
    expect(now().status).toBe('canceled')
  })
})

describe('over the API', () => {
  test('the SDK changes a subscription, and reads it as it is now', async () => {
    await using served = await serveWithClient()
    const { double, stripe } = served
    const prices = pricesOf(double)
    const customer = await stripe.customers.create({ email: 'ada@example.com' })
    const made = await stripe.subscriptions.create({
      customer: customer.id,
      items: [{ price: prices.team, quantity: 3 }, { price: prices.pro }],
      trial_period_days: 7,
    })
    expect(made).toMatchObject({ status: 'trialing', items: { data: [{ quantity: 3 }, {}] } })
    const [first] = made.items.data
    await stripe.subscriptions.update(made.id, {
      items: [{ id: first!.id, quantity: 9 }],
      metadata: { org: '7' },
      proration_behavior: 'none',
      cancel_at_period_end: true,
    })
    expect(await stripe.subscriptions.retrieve(made.id)).toMatchObject({
      metadata: { org: '7' },
      cancel_at_period_end: true,
      items: { data: [{ quantity: 9 }, { price: { lookup_key: 'pro_monthly' } }] },
    })
    double.pauseSubscription(made.id)
    expect(await stripe.subscriptions.resume(made.id)).toMatchObject({ status: 'active' })
    double.renewSubscription(made.id)
    expect((await stripe.subscriptions.list({ status: 'canceled' })).data).toHaveLength(1)
  })

  test('an invoice is voided, and what is missing or unknown is refused', async () => {
    await using served = await serveWithClient()
    const { double, stripe } = served
    const { team } = pricesOf(double)
    const customer = await stripe.customers.create({ email: 'ada@example.com' })
    const failed = { customer: customer.id, price: team, outcome: 'failed' } as const
    const { id, latest_invoice: invoice } = double.createSubscription(failed)
    expect(await stripe.invoices.voidInvoice(invoice as string)).toMatchObject({ status: 'void' })
    await expect(stripe.invoices.pay(invoice as string)).rejects.toMatchObject({ statusCode: 400 })
    await expect(
      stripe.subscriptions.create({ customer: customer.id, items: [] }),
    ).rejects.toMatchObject({ param: 'items' })
    await expect(
      stripe.subscriptions.update(id, { items: [{ id: 'si_none', quantity: 1 }] }),
    ).rejects.toMatchObject({ code: 'resource_missing' })
  })

  test('one that was forgotten is a 404 from then on', async () => {
    await using served = await serveWithClient()
    const { double, stripe } = served
    const { team } = pricesOf(double)
    const customer = double.createCustomer({})
    const { id } = double.createSubscription({ customer: customer.id, price: team })
    double.forget(id)
    await expect(stripe.subscriptions.retrieve(id)).rejects.toMatchObject({
      statusCode: 404,
      code: 'resource_missing',
    })
  })
})
