import type Stripe from 'stripe'
import { describe, expect, test } from 'vitest'
import {
  createStripeDouble,
  type StripeDouble,
} from '../../../src/testing/stripe-double/stripe-double.ts'
import { manualClock, paidSession } from './stripe-client.ts'

function newDouble(): StripeDouble {
  return createStripeDouble({ signingSecret: 'whsec_test', seed: 'verbs' })
}

/** The types of the events that the work makes, in Stripe's order. */
function typesOf(double: StripeDouble, work: () => unknown): string[] {
  return double.hold(work).events.map((event) => event.type)
}

function snapshot<T>(events: Stripe.Event[], type: string): T {
  return events.find((event) => event.type === type)!.data.object as T
}

describe('checkout sessions', () => {
  test('a paid session makes its intent’s, its charge’s and its own events', () => {
    const double = newDouble()
    const { id } = double.createSession({
      clientReferenceId: '1001',
      metadata: { order_id: '1001' },
      paymentIntentMetadata: { email: 'meta@example.com' },
    })
    const { result, events } = double.hold(() =>
      double.completeSession(id, { email: 'Ada@Example.com' }),
    )
    expect(events.map((event) => event.type)).toEqual([
      'payment_intent.created',
      'charge.succeeded',
      'payment_intent.succeeded',
      'checkout.session.completed',
      'charge.updated',
    ])
    expect(result).toMatchObject({
      status: 'complete',
      payment_status: 'paid',
      client_reference_id: '1001',
    })
    expect(result.customer_details?.email).toBe('Ada@Example.com')
    const intent = snapshot<Stripe.PaymentIntent>(events, 'payment_intent.succeeded')
    // The session's own metadata does not reach the intent.
    expect(intent.metadata).toEqual({ email: 'meta@example.com' })
    expect(intent).toMatchObject({ id: result.payment_intent, amount_received: 4900 })
  })

  test('an event is a snapshot: it keeps what was true when it was made', () => {
    const double = newDouble()
    const { intent } = paidSession(double)
    const created = double.all('event').find((event) => event.type === 'payment_intent.created')
    expect(created?.data.object).toMatchObject({
      id: intent,
      status: 'requires_payment_method',
      amount_received: 0,
    })
    expect(double.find('payment_intent', intent)).toMatchObject({
      status: 'succeeded',
      amount_received: 4900,
    })
    expect(Object.isFrozen(created?.data.object)).toBe(true)
  })

  test('an unpaid session is paid or fails later', () => {
    const double = newDouble()
    const good = double.createSession()
    expect(typesOf(double, () => double.completeSession(good.id, { outcome: 'unpaid' }))).toEqual([
      'payment_intent.created',
      'payment_intent.processing',
      'charge.pending',
      'checkout.session.completed',
    ])
    expect(double.find('checkout.session', good.id)).toMatchObject({
      status: 'complete',
      payment_status: 'unpaid',
    })
    expect(typesOf(double, () => double.asyncPaymentSucceeded(good.id))).toEqual([
      'charge.succeeded',
      'payment_intent.succeeded',
      'checkout.session.async_payment_succeeded',
    ])
    expect(double.find('checkout.session', good.id)?.payment_status).toBe('paid')

    const bad = double.createSession()
    double.completeSession(bad.id, { outcome: 'unpaid' })
    expect(typesOf(double, () => double.asyncPaymentFailed(bad.id))).toEqual([
      'charge.failed',
      'payment_intent.payment_failed',
      'checkout.session.async_payment_failed',
    ])
    expect(() => double.asyncPaymentSucceeded(bad.id)).toThrow('status of requires_payment_method')
  })

  test('a session with nothing to pay needs no payment and makes one event', () => {
    const double = newDouble()
    const { id } = double.createSession({ discount: 4900 })
    const { result, events } = double.hold(() => double.completeSession(id))
    expect(events.map((event) => event.type)).toEqual(['checkout.session.completed'])
    expect(result).toMatchObject({
      payment_status: 'no_payment_required',
      payment_intent: null,
      amount_subtotal: 4900,
      amount_total: 0,
    })
    const priced = double.createSession()
    expect(() => double.completeSession(priced.id, { outcome: 'no_payment_required' })).toThrow(
      'cannot end as',
    )
  })

  test('an expired session cannot be paid, nor a completed one expire', () => {
    const double = newDouble()
    const { id } = double.createSession()
    expect(typesOf(double, () => double.expireSession(id))).toEqual(['checkout.session.expired'])
    expect(() => double.completeSession(id)).toThrow('status of expired')
    const { session } = paidSession(double)
    expect(() => double.expireSession(session.id)).toThrow('status of complete')
  })
})

describe('payment intents', () => {
  test('a declined payment can be tried again', () => {
    const double = newDouble()
    const intent = double.createPaymentIntent({ amount: 4900, metadata: { order_id: '7' } })
    expect(
      typesOf(double, () => double.payPaymentIntent(intent.id, { outcome: 'failed' })),
    ).toEqual(['charge.failed', 'payment_intent.payment_failed'])
    expect(typesOf(double, () => double.payPaymentIntent(intent.id))).toEqual([
      'charge.succeeded',
      'payment_intent.succeeded',
    ])
    expect(() => double.payPaymentIntent(intent.id)).toThrow('status of succeeded')
    expect(double.all('charge').map((charge) => charge.metadata)).toEqual([
      { order_id: '7' },
      { order_id: '7' },
    ])
  })
})

describe('refunds', () => {
  test('partial refunds add up on the charge, whose events carry no list of refunds', () => {
    const double = newDouble()
    const { intent } = paidSession(double)
    const first = double.hold(() => double.refund({ paymentIntent: intent, amount: 900 }))
    expect(first.events.map((event) => event.type)).toEqual(['refund.created', 'charge.refunded'])
    const partly = snapshot<Stripe.Charge>(first.events, 'charge.refunded')
    expect(partly).toMatchObject({ amount_refunded: 900, refunded: false })
    expect('refunds' in partly).toBe(false)

    const rest = double.hold(() => double.refund({ paymentIntent: intent }))
    expect(rest.result.amount).toBe(4000)
    expect(snapshot<Stripe.Charge>(rest.events, 'charge.refunded')).toMatchObject({
      amount_refunded: 4900,
      refunded: true,
    })
    expect(() => double.refund({ paymentIntent: intent })).toThrow('already been refunded')
  })

  test('a pending refund succeeds, fails or is canceled, and the charge follows', () => {
    const double = newDouble()
    const refunded = (id: string) =>
      double.all('charge').find((charge) => charge.payment_intent === id)?.amount_refunded
    const one = paidSession(double, '1').intent
    const pending = double.refund({ paymentIntent: one, status: 'pending' })
    expect(pending).toMatchObject({ status: 'pending', pending_reason: 'processing' })
    expect(refunded(one)).toBe(4900)
    const done = double.hold(() => double.succeedRefund(pending.id))
    expect(done.events.map((event) => event.type)).toEqual([
      'refund.updated',
      'charge.refund.updated',
    ])
    expect(done.events[0]?.data.previous_attributes).toMatchObject({ status: 'pending' })
    expect('pending_reason' in done.result).toBe(false)

    expect(typesOf(double, () => double.failRefund(pending.id))).toEqual([
      'refund.updated',
      'charge.refund.updated',
      'refund.failed',
    ])
    expect(refunded(one)).toBe(0)
    expect(() => double.failRefund(pending.id)).toThrow('status of failed')

    const again = double.refund({ paymentIntent: one, status: 'pending', amount: 100 })
    expect(double.cancelRefund(again.id).status).toBe('canceled')
    expect(refunded(one)).toBe(0)
  })

  test('a reference number arrives as an update that changes no money', () => {
    const double = newDouble()
    const { intent } = paidSession(double)
    const { id } = double.refund({ paymentIntent: intent, amount: 100 })
    const { events } = double.hold(() => double.referenceRefund(id))
    expect(events.map((event) => event.type)).toEqual(['refund.updated', 'charge.refund.updated'])
    expect(Object.keys(events[0]?.data.previous_attributes ?? {})).toEqual(['destination_details'])
  })
})

describe('disputes', () => {
  test('a chargeback takes the money and is won or lost', () => {
    const double = newDouble()
    const { intent } = paidSession(double)
    const opened = double.hold(() => double.openDispute({ paymentIntent: intent }))
    expect(opened.events.map((event) => event.type)).toEqual([
      'charge.dispute.created',
      'charge.dispute.funds_withdrawn',
    ])
    expect(typesOf(double, () => double.closeDispute(opened.result.id, 'won'))).toEqual([
      'charge.dispute.closed',
      'charge.dispute.funds_reinstated',
    ])
    expect(() => double.closeDispute(opened.result.id, 'lost')).toThrow('already closed')
    const second = double.openDispute({ paymentIntent: intent, amount: 1000 })
    expect(typesOf(double, () => double.closeDispute(second.id, 'lost'))).toEqual([
      'charge.dispute.closed',
    ])
    expect(() => double.refund({ paymentIntent: intent })).toThrow('charged back')
  })

  test('an inquiry takes nothing and can only be closed as a warning', () => {
    const double = newDouble()
    const { intent } = paidSession(double)
    const { result, events } = double.hold(() =>
      double.openDispute({ paymentIntent: intent, inquiry: true }),
    )
    expect(events.map((event) => event.type)).toEqual(['charge.dispute.created'])
    expect(result.status).toBe('warning_needs_response')
    expect(() => double.closeDispute(result.id, 'won')).toThrow('cannot end as won')
    expect(double.closeDispute(result.id, 'warning_closed').status).toBe('warning_closed')
  })
})

describe('subscriptions', () => {
  function subscribe(double: StripeDouble, unitAmount = 2000) {
    const customer = double.createCustomer({ email: 'ada@example.com' })
    const product = double.createProduct({ name: 'Team' })
    const price = double.createPrice({ product: product.id, unitAmount, interval: 'month' })
    return double.hold(() =>
      double.createSubscription({
        customer: customer.id,
        price: price.id,
        quantity: 2,
        metadata: { account_id: 'acct-1' },
        invoiceMetadata: { note: 'first' },
      }),
    )
  }

  test('the first period is billed and paid, and the invoice names the subscription', () => {
    const double = newDouble()
    const { result, events } = subscribe(double)
    expect(events.map((event) => event.type)).toEqual([
      'customer.subscription.created',
      'invoice.created',
      'invoice.finalized',
      'payment_intent.created',
      'charge.succeeded',
      'payment_intent.succeeded',
      'invoice_payment.paid',
      'invoice.paid',
      'invoice.payment_succeeded',
      'customer.subscription.updated',
    ])
    expect(result.status).toBe('active')
    const paid = snapshot<Stripe.Invoice>(events, 'invoice.paid')
    expect(paid).toMatchObject({
      amount_paid: 4000,
      billing_reason: 'subscription_create',
      metadata: { note: 'first' },
      parent: {
        subscription_details: { subscription: result.id, metadata: { account_id: 'acct-1' } },
      },
    })
    expect('subscription' in paid).toBe(false)
    const payment = snapshot<Stripe.InvoicePayment>(events, 'invoice_payment.paid')
    const intent = snapshot<Stripe.PaymentIntent>(events, 'payment_intent.succeeded')
    expect(payment).toMatchObject({ invoice: paid.id, payment: { payment_intent: intent.id } })
    expect(intent.metadata).toEqual({})
  })

  test('an unpaid renewal leaves the subscription past due until its invoice is paid', () => {
    const double = newDouble()
    const { result } = subscribe(double)
    const before = result.items.data[0]!.current_period_end
    const renewed = double.hold(() => double.renewSubscription(result.id, { outcome: 'failed' }))
    expect(renewed.result.status).toBe('past_due')
    expect(renewed.result.items.data[0]?.current_period_start).toBe(before)
    expect(renewed.events.map((event) => event.type)).toContain('invoice.payment_failed')
    double.payInvoice(renewed.result.latest_invoice as string)
    expect(double.find('subscription', result.id)?.status).toBe('active')
    expect(double.all('payment_intent')).toHaveLength(2)
    expect(double.all('charge')).toHaveLength(3)
    expect(() => double.payInvoice(renewed.result.latest_invoice as string)).toThrow('is paid')
  })

  test('an invoice over nothing is paid without a payment', () => {
    const double = newDouble()
    const { events } = subscribe(double, 0)
    expect(events.map((event) => event.type)).not.toContain('payment_intent.created')
    expect(snapshot<Stripe.Invoice>(events, 'invoice.paid').amount_paid).toBe(0)
  })

  test('a month that is shorter ends on its last day', () => {
    const clock = manualClock(Date.UTC(2027, 0, 31, 12))
    const double = createStripeDouble({
      signingSecret: 'whsec_test',
      seed: 'months',
      clock: clock.now,
    })
    const { result } = subscribe(double)
    const end = (subscription: Stripe.Subscription) =>
      new Date(subscription.items.data[0]!.current_period_end * 1000).toISOString().slice(0, 10)
    expect(end(result)).toBe('2027-02-28')
    expect(end(double.renewSubscription(result.id))).toBe('2027-03-28')
  })

  test('a canceled subscription makes its last event and bills nothing more', () => {
    const double = newDouble()
    const { result } = subscribe(double)
    expect(typesOf(double, () => double.cancelSubscription(result.id))).toEqual([
      'customer.subscription.deleted',
    ])
    expect(() => double.renewSubscription(result.id)).toThrow('canceled')
  })
})

describe('events', () => {
  test('ids depend on the seed and on nothing else', () => {
    const run = (seed: string) => {
      const double = createStripeDouble({ signingSecret: 'whsec_test', seed })
      paidSession(double)
      return double.all('event').map((event) => event.id)
    }
    expect(run('one')).toEqual(run('one'))
    expect(run('one')).not.toEqual(run('two'))
    expect(new Set(run('one')).size).toBe(5)
  })

  test('listeners hear of every event except held ones', () => {
    const double = newDouble()
    const heard: string[] = []
    const stop = double.onEvent((event) => heard.push(event.type))
    double.createCustomer()
    const { events } = double.hold(() => double.createCustomer())
    stop()
    double.createCustomer()
    expect(heard).toEqual(['customer.created'])
    expect(events).toHaveLength(1)
  })

  test('an event of any type about any object can be made', () => {
    const double = newDouble()
    const event = double.emit('shop.invented.event', { id: 'x_1', object: 'invention' })
    expect(double.find('event', event.id)).toMatchObject({
      type: 'shop.invented.event',
      api_version: '2026-10-28.endive',
    })
  })

  test('a verb that fails leaves no trace', () => {
    const double = newDouble()
    const { intent } = paidSession(double)
    const before = [double.all('event').length, double.all('charge')]
    expect(() => double.refund({ paymentIntent: intent, amount: 5000 })).toThrow()
    expect(() => double.createSubscription({ customer: 'cus_none', price: 'price_none' })).toThrow(
      'No such customer',
    )
    expect([double.all('event').length, double.all('charge')]).toEqual(before)
  })
})
