import type Stripe from 'stripe'
import { describe, expect, test } from 'vitest'
import { demoChances } from '../../../src/testing/simulation/delivery-plan.ts'
import type { ExpectedOutcome } from '../../../src/testing/simulation/expected-outcome.ts'
import {
  runSimulation,
  type SimulationOptions,
} from '../../../src/testing/simulation/run-simulation.ts'
import type { Scenario, SimulatedOrder } from '../../../src/testing/simulation/simulated-order.ts'
import type { SimulationProgress } from '../../../src/testing/simulation/simulation-report.ts'
import {
  createStripeDouble,
  type StripeDouble,
} from '../../../src/testing/stripe-double/stripe-double.ts'
import {
  createWebhookSender,
  type WebhookSender,
} from '../../../src/testing/stripe-double/webhook-sender.ts'
import { receiveWebhooks } from './webhook-receiver.ts'

/** What each scenario leaves, written down by hand. */
const ends: Record<
  Scenario,
  [state: ExpectedOutcome['state'], licenses: 0 | 1, paidAgain?: number]
> = {
  paid: ['paid', 1],
  intent_only: ['paid', 1],
  declined_then_paid: ['paid', 1],
  refunded: ['refunded', 1],
  refunded_in_parts: ['refunded', 1],
  partly_refunded: ['paid', 1],
  refund_pending: ['refunded', 1],
  refund_failed: ['paid', 1],
  refund_returned: ['paid', 1],
  dispute_won: ['paid', 1],
  dispute_lost: ['lost', 1],
  dispute_open: ['disputed', 1],
  inquiry_closed: ['paid', 1],
  partly_refunded_dispute_won: ['paid', 1],
  partly_refunded_dispute_lost: ['lost', 1],
  refunded_dispute_won: ['refunded', 1],
  paid_twice: ['paid', 1, 1],
  paid_twice_one_refunded: ['paid', 1, 1],
  paid_twice_both_refunded: ['refunded', 1, 1],
  underpaid: ['pending', 0],
  underpaid_then_paid: ['paid', 1],
  wrong_currency: ['pending', 0],
  expired: ['canceled', 0],
  expired_then_paid: ['paid', 1],
  async_paid: ['paid', 1],
  async_failed: ['pending', 0],
  free: ['paid', 1],
}

interface Bench extends AsyncDisposable {
  double: StripeDouble
  sender: WebhookSender
  received: Stripe.Event[]
  badSignatures(): number
  run(options?: Partial<SimulationOptions>): ReturnType<typeof runSimulation>
}

async function bench(
  answer?: Parameters<typeof receiveWebhooks>[1],
  seed = 'simulation',
): Promise<Bench> {
  const receiver = await receiveWebhooks('whsec_test', answer)
  const double = createStripeDouble({ signingSecret: 'whsec_test', seed })
  const sender = createWebhookSender({
    url: receiver.url,
    signingSecret: 'whsec_test',
    log: double.log,
    firstRetryMs: 5,
  })
  return {
    double,
    sender,
    received: receiver.received,
    badSignatures: () => receiver.badSignatures,
    run: (options) => runSimulation({ double, sender, seed, spreadMs: 0, ...options }),
    async [Symbol.asyncDispose]() {
      await sender.close()
      await receiver[Symbol.asyncDispose]()
      double.close()
    },
  }
}

describe('a run of 300 orders', { timeout: 30_000 }, () => {
  test('plays every scenario, sends a fifth again and a tenth out of order, and tells the truth', async () => {
    await using setup = await bench()
    const opened: SimulatedOrder[] = []
    const { orders, outcomes, counts, credits, expected, stopped } = await setup.run({
      openOrder: async (order) => void opened.push(order),
    })

    expect(stopped).toBe(false)
    expect(orders.map((order) => order.id)).toEqual(
      Array.from({ length: 300 }, (_, at) => String(1001 + at)),
    )
    expect(new Set(orders.map((order) => order.scenario)).size).toBe(Object.keys(ends).length)
    for (const order of orders) {
      const outcome = outcomes.get(order.id)!
      const [state, licenses, paidAgain = 0] = ends[order.scenario]
      expect([
        order.id,
        order.scenario,
        outcome.state,
        outcome.licenses,
        outcome.paidAgain,
      ]).toEqual([order.id, order.scenario, state, licenses, paidAgain])
      expect(outcome.entitled).toBe(state === 'paid')
    }

    // What the counts say is what the receiver saw.
    expect(setup.badSignatures()).toBe(0)
    expect(setup.received).toHaveLength(counts.deliveries)
    expect(new Set(setup.received.map((event) => event.id)).size).toBe(counts.events)
    expect(counts.events).toBe(setup.double.all('event').length)
    expect(counts).toMatchObject({
      orders: 300,
      subscriptions: 40,
      undelivered: 0,
      lost: 0,
      failedOpenings: 0,
    })
    expect(counts.duplicatedEvents / counts.events).toBeGreaterThan(0.19)
    expect(counts.duplicatedEvents / counts.events).toBeLessThan(0.3)
    expect(counts.reordered / counts.events).toBeGreaterThan(0.09)
    expect(counts.reordered / counts.events).toBeLessThan(0.2)
    expect(setup.double.unacknowledged()).toEqual([])

    expect(counts.openedFirst).toBeGreaterThan(20)
    expect(counts.openedLate).toBeGreaterThan(20)
    expect(opened).toHaveLength(counts.openedFirst + counts.openedLate)
    expect(
      opened.every(
        (order) =>
          outcomes.get(order.id)?.subject === order.subject || !outcomes.get(order.id)?.licenses,
      ),
    ).toBe(true)

    const underpaid = [...outcomes.values()].flatMap((one) =>
      one.payments.filter((payment) => payment.refusal),
    )
    expect(underpaid.map((payment) => payment.refusal)).toContain('underpaid')
    expect(underpaid.map((payment) => payment.refusal)).toContain('wrong_currency')
    expect(expected).toMatchObject({
      licenses: orders.filter((order) => ends[order.scenario][1] === 1).length,
      entitlements: orders.filter((order) => ends[order.scenario][0] === 'paid').length,
      contradictions: underpaid.length,
      paidAgain: orders.filter((order) => order.scenario.startsWith('paid_twice')).length,
      creditedInvoices: credits.length,
    })
    expect(credits.length).toBeGreaterThan(20)
    expect(new Set(credits.map((credit) => credit.invoice)).size).toBe(credits.length)
  })

  test('sends what the shop does not know: invoices’ intents, other customers, invented types', async () => {
    await using setup = await bench()
    await setup.run()
    const types = new Set<string>(setup.received.map((event) => event.type))
    for (const type of [
      'customer.updated',
      'payout.paid',
      'simulated.invention.announced',
      'invoice.paid',
    ]) {
      expect(types).toContain(type)
    }
    const invoiced = setup.received.filter(
      (event) =>
        event.type === 'payment_intent.succeeded' &&
        event.data.object.payment_details?.order_reference,
    )
    expect(invoiced.length).toBeGreaterThan(20)
    const nameless = setup.received.filter(
      (event) =>
        event.type === 'payment_intent.succeeded' &&
        Object.keys(event.data.object.metadata).length === 0,
    )
    expect(nameless.length).toBeGreaterThan(invoiced.length)
  })
})

describe('the seed', { timeout: 30_000 }, () => {
  test('makes the same orders, events and deliveries again', async () => {
    const play = async (seed: string) => {
      await using setup = await bench(undefined, seed)
      const { orders, outcomes, counts } = await setup.run({ orders: 60 })
      const events = setup.double.all('event').map((event) => [event.id, event.type])
      return { orders, outcomes: [...outcomes], counts, events }
    }
    const one = await play('a')
    expect(await play('a')).toEqual(one)
    expect((await play('b')).events).not.toEqual(one.events)
  })
})

describe('a second run', () => {
  test('goes on with new orders and accounts beside the old ones', async () => {
    await using setup = await bench()
    const first = await setup.run({ orders: 40 })
    const second = await setup.run({ orders: 40 })
    expect(first.orders.map((order) => order.id)).toEqual(
      Array.from({ length: 40 }, (_, at) => String(1001 + at)),
    )
    expect(second.orders.map((order) => order.id)).toEqual(
      Array.from({ length: 40 }, (_, at) => String(1041 + at)),
    )
    expect(second.outcomes.size).toBe(40)
    expect(setup.double.all('price')).toHaveLength(6)
    const accounts = (run: typeof first) => new Set(run.credits.map((credit) => credit.account))
    expect([...accounts(second)].some((account) => accounts(first).has(account))).toBe(false)
    expect(setup.received).toHaveLength(first.counts.deliveries + second.counts.deliveries)
  })
})

describe('openOrder', () => {
  test('is called late only after everything sent for the order by then was acknowledged', async () => {
    await using setup = await bench()
    const sentBefore: [order: SimulatedOrder, deliveries: number][] = []
    const named = (order: SimulatedOrder) =>
      setup.received.filter((event) => JSON.stringify(event.data.object).includes(`"${order.id}"`))
        .length
    const { counts } = await setup.run({
      orders: 120,
      openOrder: async (order) => void sentBefore.push([order, named(order)]),
    })
    const late = sentBefore.filter(([order]) => order.opening === 'shop_late')
    expect(late).toHaveLength(counts.openedLate)
    expect(late.length).toBeGreaterThan(5)
    expect(late.filter(([, deliveries]) => deliveries > 0).length).toBeGreaterThan(late.length / 2)
    expect(sentBefore.filter(([order]) => order.opening === 'event')).toEqual([])
  })

  test('is tried again when the shop refuses it, and counted when it never works', async () => {
    await using setup = await bench()
    const attempts = new Map<string, number>()
    const { counts, orders } = await setup.run({
      orders: 30,
      subscriptions: 0,
      openOrder: async (order) => {
        const attempt = (attempts.get(order.id) ?? 0) + 1
        attempts.set(order.id, attempt)
        if (attempt === 1) throw new Error('the shop is starting')
      },
    })
    const own = orders.filter((order) => order.opening !== 'event')
    expect(own.length).toBeGreaterThan(0)
    expect([...attempts.values()]).toEqual(own.map(() => 2))
    expect(counts.failedOpenings).toBe(0)
    expect(counts.openedFirst + counts.openedLate).toBe(own.length)
  })
})

describe('the receiver', () => {
  test('may fail now and then: everything arrives in the end', async () => {
    let calls = 0
    await using setup = await bench((_, response) => {
      calls++
      if (calls % 5 === 0) response.writeHead(503, { 'retry-after': '1' }).end()
      else if (calls % 17 === 0) response.destroy()
      else response.writeHead(200).end()
    })
    const progress: SimulationProgress[] = []
    const { counts } = await setup.run({ orders: 40, onProgress: (now) => progress.push(now) })
    expect(counts.undelivered).toBe(0)
    expect(setup.received.length).toBeGreaterThan(counts.deliveries)
    expect(progress.at(-1)).toMatchObject({ begun: 45, total: 45, acknowledged: counts.deliveries })
    expect(progress.at(-1)!.failedAttempts).toBe(setup.received.length - counts.deliveries)
  })
})

describe('lost events', () => {
  test('are never sent, and the log says which they are', async () => {
    await using setup = await bench()
    const run = await setup.run({ orders: 80, chances: { ...demoChances, duplicate: 0 } })
    const { counts } = run
    expect(run.lost).toHaveLength(counts.lost)
    const lost = new Set(setup.double.log.entries('dropped').map((entry) => entry.eventId))
    expect(lost.size).toBe(counts.lost)
    expect(counts.lost).toBeGreaterThan(20)
    expect(setup.received.some((event) => lost.has(event.id))).toBe(false)
    expect(counts.events + counts.lost).toBe(setup.double.all('event').length)
    expect(counts.duplicates).toBe(0)
    expect(setup.double.unacknowledged()).toEqual([])
    expect(new Set(run.lost.map((event) => event.eventId))).toEqual(lost)
    expect(counts.lost / (counts.events + counts.lost)).toBeGreaterThan(0.06)
    expect(counts.lost / (counts.events + counts.lost)).toBeLessThan(0.14)
  })

  test('are told with the order that they are about', async () => {
    await using setup = await bench()
    const { lost, orders } = await setup.run({ orders: 80, chances: { lost: 0.1 } })
    const events = new Map(setup.double.all('event').map((event) => [event.id, event]))
    const ids = new Set(orders.map((order) => order.id))
    const named = lost.filter(({ orderId }) => orderId !== null)
    expect(named.length).toBeGreaterThan(20)
    for (const { eventId, type, orderId } of lost) {
      expect(events.get(eventId)?.type).toBe(type)
      if (orderId === null) continue
      expect(ids.has(orderId)).toBe(true)
      const said = events.get(eventId)?.data.object as { client_reference_id?: string | null }
      if (typeof said.client_reference_id === 'string')
        expect(said.client_reference_id).toBe(orderId)
    }
  })
})

describe('the signal', () => {
  test('ends a run early with the truth of what was done', async () => {
    await using setup = await bench()
    const abort = new AbortController()
    const { stopped, outcomes, orders, counts } = await setup.run({
      spreadMs: 60_000,
      orders: 200,
      signal: abort.signal,
      onProgress: ({ deliveries }) => deliveries >= 20 && abort.abort(),
    })
    expect(stopped).toBe(true)
    expect(outcomes.size).toBeLessThan(orders.length)
    expect(counts.deliveries).toBeGreaterThanOrEqual(20)
  })
})
