/** The ready part for subscriptions, with a real gatherer that asks the simulated Stripe over HTTP. */
import type Stripe from 'stripe'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { defineWorkflow, fulfill, skip, stripe, stripeSubscription } from 'hookledger'
import { credits } from '../../../examples/shop/credits.ts'
import { partsOf } from '../../../src/hookledger.ts'
import { serveStripeDouble, type ServedDouble } from '../../../src/testing/stripe-double/serve.ts'
import {
  createStripeDouble,
  type StripeDouble,
} from '../../../src/testing/stripe-double/stripe-double.ts'
import { emptyTables } from '../../support/probe.ts'
import { createShop, shopSecret, type Shop } from '../../support/shop.ts'

const subscription = stripeSubscription({
  plans: {
    team_monthly: ({ quantity }) => ({ entitlement: 'team', quantity }),
    pro_monthly: 'pro',
  },
  grace: { days: 3 },
  subject: ({ subscription: { metadata } }) => metadata['org'] && `org:${metadata['org']}`,
  claims: ({ metadata }) => metadata['account_id'] === undefined && metadata['other'] === undefined,
})

const plans = defineWorkflow('plans', {
  sources: ['stripe'],
  opens: 'event',
  accepts: () => true,
  ...subscription.workflow,
  effects: { paid: {} },
})
  .mirror(subscription.types, subscription.mirror)
  .on('invoice.paid', {
    ...subscription.invoices,
    decide: ({ event: { data } }) =>
      data.object.amount_paid === 0
        ? skip('nothing was paid')
        : fulfill({ effects: [{ type: 'paid', reference: data.object.id }] }),
  })

let clockMs = Date.now() - 3_600_000
let double: StripeDouble
let served: ServedDouble
let shop: Shop
let customer: string
let prices: Record<'team_monthly' | 'pro_monthly' | 'enterprise', string>

beforeAll(async () => {
  double = createStripeDouble({ signingSecret: shopSecret, seed: 'plans', clock: () => clockMs })
  served = await serveStripeDouble(double)
  const product = double.createProduct({ name: 'Plans' }).id
  const made = (lookupKey: string): string =>
    double.createPrice({ product, unitAmount: 2000, interval: 'month', lookupKey }).id
  prices = {
    team_monthly: made('team_monthly'),
    pro_monthly: made('pro_monthly'),
    enterprise: made('enterprise'),
  }
  customer = double.createCustomer({ email: 'ada@example.com' }).id
  shop = await createShop({
    sources: {
      stripe: stripe({
        environment: 'test',
        signingSecrets: [shopSecret],
        apiKey: 'sk_test_plans',
        apiBase: served.url,
      }),
    },
    reconcile: { callsPerSecond: 10_000 },
    gather: { callsPerSecond: 1_000, callsPerSecondPerAccount: 1_000 },
    workflows: [plans, credits],
  })
  await shop.rows(`update installation set created_at = now() - interval '3 hours'`)
})
afterAll(async () => {
  await shop.close()
  await served.close()
  double.close()
})
beforeEach(async () => {
  await emptyTables(shop.pool)
  clockMs = Date.now() - 3_600_000
})

type Events = readonly Stripe.Event[]

async function deliver(events: Events): Promise<void> {
  for (const event of events) expect(await shop.deliver(event)).toBe(200)
  await shop.work()
}

/** What happens at Stripe, and the events of it. */
function happens<T>(what: () => T): { readonly result: T; readonly events: Events } {
  clockMs += 1_000
  return double.hold(what)
}

const begin = (
  more: Partial<Parameters<StripeDouble['createSubscription']>[0]> = {},
): { readonly result: Stripe.Subscription; readonly events: Events } =>
  happens(() =>
    double.createSubscription({
      customer,
      price: prices.team_monthly,
      quantity: 3,
      metadata: { org: '1' },
      ...more,
    }),
  )

const order = async (id: string): Promise<unknown> =>
  (await shop.rows<{ state: string }>('select state from orders where order_id = $1', [id]))[0]
    ?.state
const access = (subject = 'org:1'): Promise<unknown> =>
  shop.hookledger
    .entitlements(subject)
    .then((found) => found.map((each) => `${each.entitlement} × ${each.quantity}`))
const findings = (state = 'open'): Promise<unknown[]> =>
  shop.rows('select kind, evidence from findings where state = $1 order by kind', [state])
const unfinished = (): Promise<unknown[]> =>
  shop.rows(`select event_type from webhook_inbox where state not in ('processed', 'ignored')`)

describe('a subscription', () => {
  it('gives what its items say now, whatever its late events say', async () => {
    const { result, events } = begin()
    await deliver(events)
    expect(await order(result.id)).toBe('active')
    expect(await access()).toEqual(['team × 3'])
    const changed = happens(() =>
      double.changeSubscription(result.id, {
        items: [
          { id: result.items.data[0]!.id, deleted: true },
          { price: prices.pro_monthly },
          { price: prices.team_monthly, quantity: 2 },
          { price: prices.team_monthly, quantity: 4 },
        ],
      }),
    )
    const canceled = happens(() => double.cancelSubscription(result.id))
    await deliver(changed.events)
    expect(await order(result.id)).toBe('canceled')
    expect(await access()).toEqual([])
    await deliver(canceled.events)
    await deliver(events)
    expect(await order(result.id)).toBe('canceled')
    expect(await findings()).toEqual([])
    expect(await unfinished()).toEqual([])
  })

  it('counts seats of several items of one price together', async () => {
    const { events } = begin({ more: [{ price: prices.team_monthly, quantity: 4 }] })
    await deliver(events)
    expect(await access()).toEqual(['team × 7'])
  })

  it('keeps access for the grace from the start of the unpaid period, and gets it back', async () => {
    // the period that is not paid began a month ago
    const start = Math.floor(Date.now() / 1000) - 33 * 86_400
    const { result, events } = begin({ start })
    const failed = happens(() => double.renewSubscription(result.id, { outcome: 'failed' }))
    await deliver([...failed.events].reverse())
    expect(await order(result.id)).toBe('past_due')
    const [row] = await shop.rows<{ valid_until: Date }>('select valid_until from entitlements')
    const present = double.find('subscription', result.id) as Stripe.Subscription
    const period = present.items.data[0]!.current_period_start
    expect(row?.valid_until.getTime()).toBe((period + 3 * 86_400) * 1000)
    const paid = happens(() => double.payInvoice(present.latest_invoice as string))
    await deliver([...events, ...paid.events])
    expect(await order(result.id)).toBe('active')
    expect(await access()).toEqual(['team × 3'])
  })

  it('that Stripe does not know any more is gone, whatever its event says', async () => {
    const { result, events } = begin()
    double.forget(result.id)
    await deliver(events.filter(({ type }) => type.startsWith('customer.subscription')))
    expect(await order(result.id)).toBe('gone')
    expect(await access()).toEqual([])
  })

  it('of a price without a plan keeps what it had, with one finding, until the plan is known', async () => {
    const { result, events } = begin()
    await deliver(events)
    const [{ id } = { id: '' }] = result.items.data
    const unknown = happens(() =>
      double.changeSubscription(result.id, { items: [{ id, price: prices.enterprise }] }),
    )
    await deliver(unknown.events)
    expect(await access()).toEqual(['team × 3'])
    expect(await findings()).toEqual([
      {
        kind: 'unknown_price',
        evidence: { order: result.id, subscription: result.id, prices: 'enterprise' },
      },
    ])
    const known = happens(() =>
      double.changeSubscription(result.id, { items: [{ id, price: prices.pro_monthly }] }),
    )
    await deliver(known.events)
    expect(await access()).toEqual(['pro × 1'])
    expect(await findings()).toEqual([])
    expect(await findings('closed')).toHaveLength(1)
  })

  it('that lost its mark still follows Stripe to its end', async () => {
    const { result, events } = begin()
    await deliver(events)
    happens(() => double.changeSubscription(result.id, { metadata: { other: 'yes' } }))
    const canceled = happens(() => double.cancelSubscription(result.id))
    await deliver(canceled.events)
    expect(await order(result.id)).toBe('canceled')
    expect(await access()).toEqual([])
  })

  it('of somebody else opens nothing and grants nothing', async () => {
    const { result, events } = begin({ metadata: { other: 'yes' } })
    await deliver(events)
    expect(await order(result.id)).toBeUndefined()
    expect(await shop.rows('select 1 from entitlements')).toEqual([])
    // and does not stay on any list for long
    const longest = 'select max(extract(epoch from deadline_at - deferred_at))::int as seconds'
    expect(await shop.rows(`${longest} from inbox_deferred`)).toEqual([{ seconds: 60 }])
  })

  it('that gets its mark later is followed from its first event on', async () => {
    const { result, events } = begin({ metadata: { other: 'yes' } })
    await deliver(events.filter(({ type }) => type === 'customer.subscription.created'))
    expect(await order(result.id)).toBeUndefined()
    const marked = happens(() =>
      double.changeSubscription(result.id, { metadata: { other: '', org: '1' } }),
    )
    await deliver(marked.events)
    expect(await access()).toEqual(['team × 3'])
    expect(await unfinished()).toEqual([])
  })

  it('that names no subject waits until its customer is linked with one', async () => {
    const { result, events } = begin({ metadata: {} })
    await deliver(events)
    expect(await shop.rows('select 1 from entitlements')).toEqual([])
    const client = await shop.pool.connect()
    try {
      await client.query('begin')
      await shop.hookledger.linkCustomer(client, {
        source: 'stripe',
        customer,
        subject: 'org:linked',
        reason: 'signed up',
        actor: 'ada',
      })
      await client.query('commit')
    } finally {
      client.release()
    }
    await shop.work()
    expect(await order(result.id)).toBe('active')
    expect(await access('org:linked')).toEqual(['team × 3'])
    expect(await unfinished()).toEqual([])
  })
})

describe('a refund whose payment nobody told of', () => {
  it('finds its invoice by the list of invoice payments', async () => {
    const { result, events } = begin({ metadata: { account_id: 'acc_1' } })
    const invoice = result.latest_invoice as string
    const [payment] = double.all('invoice_payment').filter((each) => each.invoice === invoice)
    const intent = payment?.payment.payment_intent as string
    const refunded = happens(() => double.refund({ paymentIntent: intent }))
    // the one event that connects the payment with the invoice is lost
    await deliver([
      ...events.filter(({ type }) => type === 'invoice.paid'),
      ...refunded.events.filter(({ type }) => type === 'refund.created'),
    ])
    const credited = async (): Promise<unknown> =>
      (await shop.rows<{ credits: number }>('select credits::int from shop.accounts'))[0]?.credits
    expect(await credited()).toBe(60)
    expect(await unfinished()).toEqual([{ event_type: 'refund.created' }])
    const reconciler = await partsOf(shop.hookledger).reconciler({ decides: true })
    const { runs } = await reconciler.pass({ how: 'deep', actor: 'test' })
    expect(runs.map(({ error }) => error)).toEqual([null])
    await shop.work()
    expect(await credited()).toBe(0)
    expect(
      await shop.rows(
        `select state from webhook_inbox where event_type in ('refund.created', 'invoice_payment.paid') and order_id = $1`,
        [result.id],
      ),
    ).toEqual([{ state: 'processed' }, { state: 'processed' }])
    // invoices of subscriptions that are nobody's here are no payments that an order is missing for
    expect(await findings()).toEqual([])
  })
})
