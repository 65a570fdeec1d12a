import Stripe from 'stripe'
import { describe, expect, it } from 'vitest'
import { readBody } from '../../src/providers/body.ts'
import { stripeEventTypes } from '../../src/providers/stripe-event-types.ts'
import { stripe } from '../../src/providers/stripe.ts'
import { signStandardWebhook, signStripe } from '../../src/testing/sign.ts'
import { charge, refund } from '../../src/testing/stripe-charge-objects.ts'
import { checkoutSession, paymentIntent } from '../../src/testing/stripe-checkout-objects.ts'
import {
  chargeDisputeClosed,
  chargeDisputeCreated,
  chargeRefunded,
  checkoutSessionAsyncPaymentSucceeded,
  checkoutSessionCompleted,
  checkoutSessionExpired,
  customerUpdated,
  invoicePaid,
  paymentIntentSucceeded,
  refundCreated,
  refundFailed,
  refundUpdated,
  stripeApiVersion,
  stripeBody,
  stripeEvent,
} from '../../src/testing/stripe-events.ts'
import { chargeId, paymentIntentId, sessionId } from '../../src/testing/stripe-ids.ts'

const secret = 'whsec_Q4hYbN2v8LkT0sWcX6mJr1DfPzE9aGui'
const sentAt = 1_700_000_000

const factories = {
  'checkout.session.completed': checkoutSessionCompleted,
  'checkout.session.async_payment_succeeded': checkoutSessionAsyncPaymentSucceeded,
  'checkout.session.expired': checkoutSessionExpired,
  'payment_intent.succeeded': paymentIntentSucceeded,
  'refund.created': refundCreated,
  'refund.updated': refundUpdated,
  'refund.failed': refundFailed,
  'charge.refunded': chargeRefunded,
  'charge.dispute.created': chargeDisputeCreated,
  'charge.dispute.closed': chargeDisputeClosed,
  'invoice.paid': invoicePaid,
  'customer.updated': customerUpdated,
}
const all = Object.entries(factories)

describe('event factories', () => {
  it.each(all)(
    '%s: has the type, and is accepted by Stripe and by a Stripe source',
    (type, make) => {
      const event = make()
      expect(event.type).toBe(type)
      expect(stripeEventTypes).toContain(type)
      const body = stripeBody(event)
      const headers = signStripe(body, secret, sentAt)
      const header = headers['stripe-signature'] ?? ''
      const official = Stripe.webhooks.constructEvent(
        body,
        header,
        secret,
        300,
        undefined,
        sentAt * 1000,
      )
      expect(official).toEqual(event)

      const request = { headers: (name: string) => headers[name], rawBody: Buffer.from(body) }
      const source = stripe({ signingSecrets: [secret] })
      expect(source.verify(request, sentAt * 1000)).toEqual({ ok: true, secret: 0 })
      expect(source.name(request)).toEqual([
        {
          eventId: event.id,
          eventType: type,
          environment: 'test',
          occurredAt: new Date(event.created * 1000),
          apiVersion: stripeApiVersion,
        },
      ])
      expect(readBody(request.rawBody)).toEqual({ ok: true, value: event, warnings: [] })
    },
  )

  it('speaks the version of the API that the installed package speaks', () => {
    expect(stripeApiVersion).toBe(Stripe.API_VERSION)
  })

  it.each(all)(
    '%s: is the same event for the same options, and another one otherwise',
    (_, make) => {
      expect(make({ created: 1 })).toEqual(make({ created: 1 }))
      expect(make({ created: 1 }).id).not.toBe(make({ created: 2 }).id)
      expect(make({ account: 'acct_1' }).id).not.toBe(make().id)
      expect(make({ eventId: 'evt_given' }).id).toBe('evt_given')
    },
  )

  it.each(all)('%s: shares nothing with the next event', (_, make) => {
    const scribble = (value: unknown): void => {
      if (typeof value !== 'object' || value === null) return
      for (const member of Object.values(value)) scribble(member)
      Object.assign(value, { scribbled: true })
    }
    const before = JSON.stringify(make())
    scribble(make().data.object)
    expect(JSON.stringify(make())).toBe(before)
  })

  it.each(all)('%s: takes account, environment and version from the options', (_, make) => {
    expect(make({ account: 'acct_1', livemode: true, apiVersion: null })).toMatchObject({
      account: 'acct_1',
      livemode: true,
      api_version: null,
    })
    expect(make()).not.toHaveProperty('account')
  })

  it('gives every refund of a purchase, and every state of one, its own event', () => {
    const events = [
      refundCreated({ amount: 900 }),
      refundCreated({ amount: 900, number: 2 }),
      refundUpdated({ amount: 900 }),
      refundUpdated({ amount: 900, status: 'canceled' }),
      refundFailed({ amount: 900 }),
    ]
    expect(new Set(events.map((event) => event.id)).size).toBe(5)
    expect(new Set(events.map((event) => event.data.object.id)).size).toBe(2)
  })
})

describe('the objects of one purchase', () => {
  it('name one another', () => {
    const key = { order: '1001' }
    const session = checkoutSessionCompleted(key).data.object
    const intent = paymentIntentSucceeded(key).data.object
    expect(session).toMatchObject({
      id: sessionId(key),
      client_reference_id: '1001',
      payment_intent: intent.id,
      payment_status: 'paid',
      amount_total: 4900,
      currency: 'usd',
      customer_details: { email: 'ada@example.com' },
    })
    expect(intent).toMatchObject({
      id: paymentIntentId(key),
      latest_charge: chargeId(key),
      amount_received: 4900,
      metadata: { order_id: '1001' },
    })
    for (const event of [refundCreated(key), chargeDisputeCreated(key)]) {
      expect(event.data.object).toMatchObject({ charge: chargeId(key), payment_intent: intent.id })
    }
    expect(chargeRefunded(key).data.object).toMatchObject({
      id: chargeId(key),
      payment_intent: intent.id,
    })
  })

  it('differ for another order and for another attempt', () => {
    const keys = [{ order: '1' }, { order: '2' }, { order: '1', attempt: 2 }]
    for (const idOf of [sessionId, paymentIntentId, chargeId]) {
      expect(new Set(keys.map(idOf)).size).toBe(3)
    }
    expect(refund({ order: '1', attempt: 2 }).id).not.toBe(refund({ order: '1' }).id)
  })

  it('say so when nothing had to be paid, when it is pending, and when it expired', () => {
    expect(checkoutSession({ paymentStatus: 'no_payment_required' })).toMatchObject({
      amount_total: 0,
      payment_intent: null,
      status: 'complete',
    })
    expect(checkoutSession({ paymentStatus: 'unpaid' })).toMatchObject({
      payment_status: 'unpaid',
      status: 'complete',
      payment_intent: paymentIntentId(),
    })
    expect(checkoutSessionExpired().data.object).toMatchObject({
      status: 'expired',
      payment_status: 'unpaid',
      payment_intent: null,
      customer_details: null,
    })
    expect(paymentIntent({ status: 'processing' })).toMatchObject({
      amount_received: 0,
      latest_charge: null,
    })
  })

  it('count refunds on their charge, listed only when asked', () => {
    const refunds = [refund({ amount: 900 }), refund({ amount: 100, number: 2 })]
    expect(charge({ refunds })).toMatchObject({
      amount_refunded: 1000,
      refunded: false,
      refunds: { data: refunds },
    })
    expect(chargeRefunded().data.object).toMatchObject({ amount_refunded: 4900, refunded: true })
    expect(chargeRefunded().data.object).not.toHaveProperty('refunds')
    expect(chargeRefunded({ amountRefunded: 100 }).data.object.refunded).toBe(false)
  })

  it('end a dispute as told', () => {
    expect(chargeDisputeClosed().data.object.status).toBe('won')
    expect(chargeDisputeClosed({ status: 'lost' }).data.object).toMatchObject({
      status: 'lost',
      id: chargeDisputeCreated().data.object.id,
    })
  })

  it('tie an invoice to its subscription, and a later one to the same', () => {
    const [first, second] = [invoicePaid(), invoicePaid({ number: 2 })].map(
      (event) => event.data.object,
    )
    expect(first?.id).not.toBe(second?.id)
    expect(first?.parent?.subscription_details?.subscription).toBe(
      second?.parent?.subscription_details?.subscription,
    )
    const named = invoicePaid({ subscription: 'sub_1', subscriptionMetadata: { account_id: '42' } })
    expect(named.data.object.parent?.subscription_details).toEqual({
      subscription: 'sub_1',
      metadata: { account_id: '42' },
    })
    expect(invoicePaid({ subscription: null }).data.object.parent).toBeNull()
  })
})

describe('stripeEvent', () => {
  it('carries any object under any type', () => {
    const event = stripeEvent(
      'made.up',
      { id: 'x', amount: 1 },
      { previousAttributes: { amount: 0 } },
    )
    expect(event).toMatchObject({
      object: 'event',
      type: 'made.up',
      data: { object: { id: 'x', amount: 1 }, previous_attributes: { amount: 0 } },
    })
  })

  it('takes time and environment from the object, unless told otherwise', () => {
    const object = { created: 123, livemode: true }
    expect(stripeEvent('made.up', object)).toMatchObject({ created: 123, livemode: true })
    const told = stripeEvent('made.up', object, { created: 456, livemode: false })
    expect(told).toMatchObject({ created: 456, livemode: false })
  })
})

describe('signStripe and signStandardWebhook', () => {
  it('sign now unless given a time', () => {
    const before = Math.floor(Date.now() / 1000)
    const stripeTime = /t=(\d+)/.exec(signStripe('{}', secret)['stripe-signature'] ?? '')?.[1]
    const shared = `whsec_${Buffer.alloc(32, 5).toString('base64')}`
    const standardTime = signStandardWebhook('{}', shared, { id: 'msg_1' })['webhook-timestamp']
    const after = Math.floor(Date.now() / 1000)
    for (const time of [stripeTime, standardTime]) {
      expect(Number(time)).toBeGreaterThanOrEqual(before)
      expect(Number(time)).toBeLessThanOrEqual(after)
    }
  })

  it('sign bytes and text alike', () => {
    const text = '{"name":"Zoë"}'
    expect(signStripe(Buffer.from(text), secret, 1)).toEqual(signStripe(text, secret, 1))
  })

  it('say what the content is', () => {
    expect(signStripe('{}', secret)['content-type']).toBe('application/json; charset=utf-8')
  })
})
