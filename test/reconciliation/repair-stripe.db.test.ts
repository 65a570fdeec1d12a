/** Repairs against the simulated Stripe: its records, its refunds, and the events that these cause. */
import type Stripe from 'stripe'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { skip, stripe, stripeCalls } from 'hookledger'
import { license } from '../../examples/shop/license.ts'
import { partsOf } from '../../src/hookledger.ts'
import { audit } from '../../src/report/audit.ts'
import { explain } from '../../src/report/explain.ts'
import { serveStripeDouble, type ServedDouble } from '../../src/testing/stripe-double/serve.ts'
import {
  createStripeDouble,
  type StripeDouble,
} from '../../src/testing/stripe-double/stripe-double.ts'
import type { RecordReference } from '../../src/workflow/records.ts'
import type { Workflow } from '../../src/workflow/workflow.ts'
import { createShop, shopOptions, shopSecret, type Shop } from '../support/shop.ts'

const by = { reason: 'the customer wrote in', actor: 'ada' }
const apiKey = 'sk_test_repairs'

/** Whether the workflow has a mistake in it: it passes refunds over. */
let isMistaken = false
const mistaken: Workflow = {
  ...license,
  handlers: new Map(
    [...license.handlers].map(([type, handler]) => [
      type,
      {
        ...handler,
        decide: (input) =>
          isMistaken && type.startsWith('refund.') ? skip('a mistake') : handler.decide(input),
      },
    ]),
  ),
}

let double: StripeDouble
let served: ServedDouble
let shop: Shop

beforeAll(async () => {
  // everything happened an hour ago: older than any lag
  double = createStripeDouble({
    signingSecret: shopSecret,
    seed: 'repairs',
    clock: () => Date.now() - 3_600_000,
  })
  served = await serveStripeDouble(double)
  shop = await createShop({
    sources: {
      stripe: stripe({
        environment: 'test',
        signingSecrets: [shopSecret],
        apiKey,
        apiBase: served.url,
      }),
    },
    destinations: {
      ...shopOptions.destinations,
      stripe: stripeCalls({ apiKey, apiBase: served.url }),
    },
    reconcile: { callsPerSecond: 10_000 },
    workflows: [mistaken],
    autoRepair: ['refunded_there'],
  })
  await shop.rows(`update installation set created_at = now() - interval '3 hours'`)
})
afterAll(async () => {
  await shop.close()
  await served.close()
  double.close()
})

/** A paid session, whose events come or not. */
async function buy(order: string, delivered = true): Promise<string> {
  const { result, events } = double.hold(() => {
    const session = double.createSession({ clientReferenceId: order })
    return double.completeSession(session.id, { email: `${order}@example.com` })
  })
  if (delivered) await deliver(events)
  return result.payment_intent as string
}

async function deliver(events: readonly Stripe.Event[]): Promise<void> {
  for (const event of events) expect(await shop.deliver(event)).toBe(200)
  await shop.work()
}

async function pass(): Promise<void> {
  const reconciler = await partsOf(shop.hookledger).reconciler({ decides: true })
  const report = await reconciler.pass({ how: 'manual', actor: 'test' })
  expect(report.runs.map(({ error }) => error)).toEqual([null])
}

async function findingOf(kind: string, order: string): Promise<{ id: string; state: string }> {
  const [row] = await shop.rows<{ id: string; state: string }>(
    `select finding_id as id, state from findings where kind = $1 and order_id = $2`,
    [kind, order],
  )
  return row ?? { id: '', state: 'missing' }
}

async function expectAudited(): Promise<void> {
  const { checks } = await audit(shop.db)
  expect(checks.filter(({ holds }) => !holds)).toEqual([])
}

describe('a payment that came twice', () => {
  it('is given back once at Stripe, and closes its finding when Stripe shows it', async () => {
    const first = await buy('s1')
    const second = await buy('s1')
    const { id } = await findingOf('paid_twice', 's1')
    const repairs = await partsOf(shop.hookledger).repairs()
    const report = await repairs.apply(id, by, { choice: 'refund' })
    expect(report).toMatchObject({
      outcome: 'applied',
      finding: 'waiting',
      plan: { refund: { payment: second, amount: 4900n, currency: 'USD' } },
    })
    const { events } = await heldWhile(() => shop.work())
    expect(double.all('refund').map(({ payment_intent: intent }) => intent)).toEqual([second])
    await deliver(events)
    await pass()
    expect(await findingOf('paid_twice', 's1')).toMatchObject({ state: 'closed' })
    expect(
      await shop.rows(
        `select verified_at is not null as verified from repairs where finding_id = $1`,
        [id],
      ),
    ).toEqual([{ verified: true }])
    expect(await shop.rows(`select state from orders where order_id = 's1'`)).toEqual([
      { state: 'paid' },
    ])
    expect(first).not.toBe(second)
    await expectAudited()
  })

  it('is told with who repaired it, and why', async () => {
    const explained = await explain(shop.db, 's1')
    const story = explained?.records[0]?.timeline.map(({ text, details }) =>
      [text, ...details].join('\n'),
    )
    expect(story?.join('\n')).toContain('ada repaired paid_twice')
    expect(story?.join('\n')).toContain('because the customer wrote in')
  })
})

describe('an order that somebody changed', () => {
  it('is found by a pass, restored, and found no more', async () => {
    await buy('s2')
    await shop.pool.query(`update orders set state = 'lost' where order_id = 's2'`)
    await shop.pool.query(`update entitlements set active = false where order_id = 's2'`)
    await pass()
    const { id, state } = await findingOf('tampered', 's2')
    expect(state).toBe('open')
    const repairs = await partsOf(shop.hookledger).repairs()
    expect(await repairs.apply(id, by)).toMatchObject({ outcome: 'applied', finding: 'closed' })
    const before = await shop.rows(`select count(*)::int as n from ledger_decisions`)
    await pass()
    expect(await findingOf('tampered', 's2')).toMatchObject({ state: 'closed' })
    expect(await shop.rows(`select count(*)::int as n from ledger_decisions`)).toEqual(before)
    await expectAudited()
  })
})

describe('a finding that repairs itself', () => {
  it('is repaired and verified by the very pass that finds it, with the rule as actor', async () => {
    isMistaken = true
    const payment = await buy('s3')
    const { result, events } = double.hold(() => double.refund({ paymentIntent: payment }))
    await deliver(events)
    // also under the id that a pass would give it, so that no pass puts it in a second time
    await deliver(await madeEvents({ kind: 'refund', id: result.id, account: 'stripe' }))
    isMistaken = false
    await pass()
    expect(await findingOf('refunded_there', 's3')).toMatchObject({ state: 'closed' })
    expect(
      await shop.rows(
        `select r.actor, r.verified_at is not null as verified from repairs r join findings f using (finding_id)
         where f.kind = 'refunded_there' and f.order_id = 's3'`,
      ),
    ).toEqual([{ actor: 'rule:refunded_there', verified: true }])
    expect(await shop.rows(`select state from orders where order_id = 's3'`)).toEqual([
      { state: 'refunded' },
    ])
    const before = await shop.rows(`select count(*)::int as n from ledger_decisions`)
    await pass()
    expect(await shop.rows(`select count(*)::int as n from ledger_decisions`)).toEqual(before)
    await expectAudited()
  })
})

/** What a pass would put into the inbox of a record. */
async function madeEvents(reference: RecordReference): Promise<Stripe.Event[]> {
  const { records } = partsOf(shop.hookledger).config.sources.get('stripe')?.source ?? {}
  const record = await records?.fetch(reference, AbortSignal.timeout(5000))
  const made = record == null ? [] : (records?.eventsOf(record) ?? [])
  expect(made.length).toBeGreaterThan(0)
  return made.map(({ eventId, body }) => ({ ...body, id: eventId }) as unknown as Stripe.Event)
}

/** Runs something and answers the events that it made at the provider. */
async function heldWhile(run: () => Promise<unknown>): Promise<{ events: Stripe.Event[] }> {
  const events: Stripe.Event[] = []
  const unhear = double.onEvent((event) => events.push(event))
  await run()
  unhear()
  return { events }
}
