import { describe, expect, test } from 'vitest'
import { countReordered, planDeliveries } from '../../../src/testing/simulation/delivery-plan.ts'
import {
  expectedCredits,
  expectedOutcome,
} from '../../../src/testing/simulation/expected-outcome.ts'
import { Timeline } from '../../../src/testing/simulation/timeline.ts'
import { createRandom } from '../../../src/testing/stripe-double/random.ts'
import {
  createStripeDouble,
  type StripeDouble,
} from '../../../src/testing/stripe-double/stripe-double.ts'

function newDouble(): StripeDouble {
  return createStripeDouble({ signingSecret: 'whsec_test', seed: 'parts' })
}

function pay(double: StripeDouble, orderId: string, amount = 4900): string {
  const { id } = double.createSession({ clientReferenceId: orderId, amount })
  return double.completeSession(id, { email: 'Ada@Example.com' }).payment_intent as string
}

describe('Timeline', () => {
  test('runs entries in the order of their moments, also those that are added on the way', async () => {
    const timeline = new Timeline()
    const ran: string[] = []
    timeline.add(30, () => void ran.push('c'))
    timeline.add(10, () => {
      ran.push('a')
      timeline.add(20, () => void ran.push('b'))
      timeline.add(5, () => void ran.push('late'))
    })
    timeline.add(30, () => void ran.push('d'))
    await timeline.run({ plannedMs: 100, spreadMs: 0 })
    expect(ran).toEqual(['a', 'late', 'b', 'c', 'd'])
  })

  test('waits for an entry before the next and stops at the signal', async () => {
    const timeline = new Timeline()
    const abort = new AbortController()
    const ran: string[] = []
    timeline.add(0, async () => {
      await Promise.resolve()
      ran.push('first')
    })
    timeline.add(1, () => {
      ran.push('second')
      abort.abort()
    })
    timeline.add(50_000, () => void ran.push('never'))
    await timeline.run({ plannedMs: 50_000, spreadMs: 50_000, signal: abort.signal })
    expect(ran).toEqual(['first', 'second'])
  })
})

describe('planDeliveries', () => {
  const double = newDouble()
  const { events } = double.hold(() => pay(double, '1'))

  test('sends every event once in order when there are no chances', () => {
    const { copies, lost } = planDeliveries(
      events,
      true,
      { duplicate: 0, late: 0, lost: 0 },
      createRandom(1),
    )
    expect(lost).toEqual([])
    expect(copies.map((copy) => copy.event)).toEqual(events)
    const delays = copies.map((copy) => copy.delayMs)
    expect(delays).toEqual([...delays].sort((a, b) => a - b))
  })

  test('sends duplicates beside or after the first copy, never before', () => {
    const { copies } = planDeliveries(
      events,
      true,
      { duplicate: 1, late: 0, lost: 0 },
      createRandom(2),
    )
    for (const event of events) {
      const own = copies.filter((copy) => copy.event === event)
      expect(own.length).toBeGreaterThan(1)
      expect(own.map((copy) => copy.copy)).toEqual(own.map((_, at) => at))
      expect(Math.min(...own.map((copy) => copy.delayMs))).toBe(own[0]!.delayMs)
    }
  })

  test('never holds back the last event of an order, which nothing could overtake', () => {
    const chances = { duplicate: 0, late: 1, lost: 0 }
    const last = (isLastStep: boolean) =>
      planDeliveries(events, isLastStep, chances, createRandom(3)).copies.at(-1)!
    expect(last(true).delayMs).toBeLessThan(1000)
    expect(last(false).delayMs).toBeGreaterThan(1000)
  })
})

describe('countReordered', () => {
  test('counts the events that later ones have overtaken', () => {
    const position = new Map([...'abcd'].map((id, at) => [id, at]))
    expect(countReordered([...'abcd'], position)).toBe(0)
    expect(countReordered([...'bacd'], position)).toBe(1)
    expect(countReordered([...'dabc'], position)).toBe(3)
    expect(countReordered([...'bcda'], position)).toBe(1)
  })
})

describe('expectedOutcome', () => {
  test('an order that nobody names is unknown', () => {
    expect(expectedOutcome(newDouble(), '1')).toBeUndefined()
  })

  test('only money that arrived back refunds an order', () => {
    const double = newDouble()
    const intent = pay(double, '1')
    const state = () => expectedOutcome(double, '1')?.state
    const pending = double.refund({ paymentIntent: intent, status: 'pending' })
    expect(state()).toBe('paid')
    double.succeedRefund(pending.id)
    expect(state()).toBe('refunded')
    double.failRefund(pending.id)
    expect(expectedOutcome(double, '1')).toMatchObject({
      state: 'paid',
      entitled: true,
      licenses: 1,
      subject: 'email:ada@example.com',
      refunds: [{ id: pending.id, amount: 4900, status: 'failed' }],
    })
  })

  test('a dispute suspends an order until it is won, and a lost one ends it', () => {
    const double = newDouble()
    const intent = pay(double, '1')
    const first = double.openDispute({ paymentIntent: intent })
    expect(expectedOutcome(double, '1')).toMatchObject({ state: 'disputed', entitled: false })
    double.closeDispute(first.id, 'won')
    expect(expectedOutcome(double, '1')?.state).toBe('paid')
    double.closeDispute(double.openDispute({ paymentIntent: intent }).id, 'lost')
    expect(expectedOutcome(double, '1')?.state).toBe('lost')
  })

  test('a payment below the price counts for nothing, a second full one is found', () => {
    const double = newDouble()
    const low = pay(double, '1', 1900)
    expect(expectedOutcome(double, '1')).toMatchObject({
      state: 'pending',
      licenses: 0,
      payments: [{ id: low, refusal: 'underpaid' }],
    })
    pay(double, '1')
    pay(double, '1')
    expect(expectedOutcome(double, '1')).toMatchObject({ state: 'paid', licenses: 1, paidAgain: 1 })
  })

  test('an expired session cancels an order until it is paid elsewhere', () => {
    const double = newDouble()
    double.expireSession(double.createSession({ metadata: { order_id: '1' } }).id)
    expect(expectedOutcome(double, '1')).toMatchObject({ state: 'canceled', subject: null })
    const intent = double.createPaymentIntent({
      amount: 4900,
      metadata: { order_id: '1', email: 'A@b.example' },
    })
    double.payPaymentIntent(intent.id)
    expect(expectedOutcome(double, '1')).toMatchObject({
      state: 'paid',
      subject: 'email:a@b.example',
    })
  })
})

describe('expectedCredits', () => {
  test('one for each whole unit of the currency, for the account that the invoice names first', () => {
    const double = newDouble()
    const customer = double.createCustomer({ email: 'ada@example.com' })
    const product = double.createProduct({ name: 'Credits' })
    const subscribe = (
      price: { currency: string; unitAmount: number },
      metadata: Record<string, string>,
      invoiceMetadata: Record<string, string> = {},
    ) => {
      const { id } = double.createPrice({ product: product.id, interval: 'month', ...price })
      return double.createSubscription({
        customer: customer.id,
        price: id,
        metadata,
        invoiceMetadata,
      })
    }
    subscribe({ currency: 'usd', unitAmount: 2050 }, { account_id: 'a' })
    subscribe({ currency: 'jpy', unitAmount: 3000 }, { account_id: 'a' }, { account_id: 'b' })
    subscribe({ currency: 'kwd', unitAmount: 5500 }, { account_id: 'c' })
    subscribe({ currency: 'usd', unitAmount: 99 }, { account_id: 'd' })
    subscribe({ currency: 'usd', unitAmount: 2000 }, {})
    const late = subscribe({ currency: 'usd', unitAmount: 100 }, { account_id: 'e' })
    double.renewSubscription(late.id, { outcome: 'failed' })
    expect(expectedCredits(double).map(({ account, credits }) => [account, credits])).toEqual([
      ['a', 20],
      ['b', 3000],
      ['c', 5],
      ['e', 1],
    ])
  })
})
