import { describe, expect, test } from 'vitest'
import type { ObjectKind } from '../../../src/testing/stripe-double/object-kinds.ts'
import type { StripeDouble } from '../../../src/testing/stripe-double/stripe-double.ts'
import type { MadeEvent } from '../../../src/workflow/records.ts'
import { stripe } from '../../../src/providers/stripe.ts'
import { paidSession } from '../../testing/stripe-double/stripe-client.ts'
import { going, serveRecords, type ServedRecords } from './served-records.ts'

interface Body {
  readonly data: { readonly object: Readonly<Record<string, unknown>> }
  readonly [field: string]: unknown
}
const bodyOf = (event: MadeEvent): Body => event.body as Body

/** Everything that the objects of an account tell, as made events. */
async function madeFrom(served: ServedRecords): Promise<MadeEvent[]> {
  const made: MadeEvent[] = []
  for (const { kind, holds } of served.records.kinds) {
    if (holds === 'events') continue
    const { records } = await served.walk(kind)
    made.push(...records.flatMap((record) => served.records.eventsOf(record)))
  }
  return made
}

/** A life with every way in which orders go on. */
function liveEveryWay(served: ServedRecords): void {
  const { double, clock } = served
  const bought = (reference: string): string => {
    clock.move(1_000)
    return paidSession(double, reference).intent
  }
  bought('paid')
  double.refund({ paymentIntent: bought('refunded') })
  double.refund({ paymentIntent: bought('refunded in parts'), amount: 900 })
  double.failRefund(double.refund({ paymentIntent: bought('refund failed') }).id)
  const pending = double.refund({ paymentIntent: bought('refund pending'), status: 'pending' })
  const later = double.refund({ paymentIntent: bought('refund late'), status: 'pending' })
  clock.move(1_000)
  double.succeedRefund(later.id)
  const given = double.refund({ paymentIntent: bought('refund taken back'), status: 'pending' })
  double.cancelRefund(given.id)
  expect(pending.status).toBe('pending')
  double.openDispute({ paymentIntent: bought('disputed') })
  for (const outcome of ['won', 'lost'] as const) {
    const dispute = double.openDispute({ paymentIntent: bought(outcome) })
    double.closeDispute(dispute.id, outcome)
  }
  const inquiry = double.openDispute({ paymentIntent: bought('asked'), inquiry: true })
  double.closeDispute(inquiry.id, 'warning_closed')
  double.createSession({ clientReferenceId: 'left open' })
  double.expireSession(double.createSession({ clientReferenceId: 'expired' }).id)
  const free = double.createSession({ clientReferenceId: 'free', discount: 4900 })
  double.completeSession(free.id)
  for (const end of ['waiting', 'good', 'bad']) {
    const { id } = double.createSession({ clientReferenceId: `debit ${end}` })
    double.completeSession(id, { outcome: 'unpaid' })
    if (end === 'good') double.asyncPaymentSucceeded(id)
    if (end === 'bad') double.asyncPaymentFailed(id)
  }
  const declined = double.createPaymentIntent({ amount: 4900 })
  double.payPaymentIntent(declined.id, { outcome: 'failed' })
  double.createPaymentIntent({ amount: 4900 })
  double.cancelPaymentIntent(double.createPaymentIntent({ amount: 4900 }).id)
  subscribe(double)
}

function subscribe(double: StripeDouble): void {
  const customer = double.createCustomer({ email: 'ada@example.com' })
  const product = double.createProduct({ name: 'Team' })
  const price = double.createPrice({ product: product.id, unitAmount: 2000, interval: 'month' })
  const { id } = double.createSubscription({ customer: customer.id, price: price.id })
  double.renewSubscription(id)
  double.renewSubscription(id, { outcome: 'failed' })
}

/** Types that say how an object is now, whichever event last said so. */
const alwaysTrue = new Set([
  'refund.updated',
  'charge.refund.updated',
  'checkout.session.completed',
])

describe('eventsOf', () => {
  test('every made event is one that the provider really made, with the object as it is now', async () => {
    await using served = await serveRecords()
    liveEveryWay(served)
    const { double } = served
    const real = new Set(
      double.all('event').map(({ type, data }) => `${type} ${(data.object as { id: string }).id}`),
    )
    const made = await madeFrom(served)
    expect(made.length).toBeGreaterThan(60)
    for (const event of made) {
      const { object } = bodyOf(event).data
      const id = object['id'] as string
      const fact = `${event.eventType} ${id}`
      if (!alwaysTrue.has(event.eventType)) expect(real).toContain(fact)
      expect(object).toEqual(double.find(object['object'] as ObjectKind, id))
    }
  })

  test('every event that changes what is owed can be made again from objects alone', async () => {
    await using served = await serveRecords()
    liveEveryWay(served)
    const made = new Set(
      (await madeFrom(served)).map(
        (event) => `${event.eventType} ${bodyOf(event).data.object['id'] as string}`,
      ),
    )
    const telling =
      /^(checkout\.session\.(completed|expired|async_payment_failed)|payment_intent\.(succeeded|canceled)|charge\.(succeeded|dispute\.(created|closed))|refund\.failed|invoice\.paid|invoice_payment\.paid)$/
    const lost = served.double
      .all('event')
      .filter(({ type }) => telling.test(type))
      .map(({ type, data }) => `${type} ${(data.object as { id: string }).id}`)
      .filter((fact) => !made.has(fact))
    expect(lost).toEqual([])
  })

  test('the same object makes the same events, and another state others', async () => {
    await using served = await serveRecords()
    const { double, records } = served
    const { intent } = paidSession(double)
    const { id } = double.refund({ paymentIntent: intent, status: 'pending' })
    const idsNow = async (): Promise<string[]> => {
      const record = await records.fetch({ kind: 'refund', id, account: 'stripe' }, going)
      return records.eventsOf(record!).map((event) => event.eventId)
    }
    const charge = double.all('charge')[0]!.id
    const refunded = `object:charge.refunded:${charge}:4900`
    const pending = [`object:refund.created:${id}:pending`, refunded]
    expect(await idsNow()).toEqual(pending)
    expect(await idsNow()).toEqual(pending)
    double.succeedRefund(id)
    expect(await idsNow()).toEqual([
      `object:refund.created:${id}:succeeded`,
      `object:refund.updated:${id}:succeeded`,
      `object:charge.refund.updated:${id}:succeeded`,
      refunded,
    ])
    double.failRefund(id)
    expect(await idsNow()).toEqual([
      `object:refund.updated:${id}:failed`,
      `object:charge.refund.updated:${id}:failed`,
      `object:refund.failed:${id}`,
    ])
  })

  test('a session that was unpaid at first makes another event once it is paid', async () => {
    await using served = await serveRecords()
    const { double, records } = served
    const { id } = double.createSession({ clientReferenceId: '1001' })
    const idsNow = async (): Promise<string[]> => {
      const record = await records.fetch({ kind: 'checkout.session', id, account: 'stripe' }, going)
      return records.eventsOf(record!).map((event) => event.eventId)
    }
    expect(await idsNow()).toEqual([])
    double.completeSession(id, { outcome: 'unpaid' })
    expect(await idsNow()).toEqual([`object:checkout.session.completed:${id}:unpaid`])
    double.asyncPaymentSucceeded(id)
    expect(await idsNow()).toEqual([`object:checkout.session.completed:${id}:paid`])
  })

  test('the body has the form of a webhook, and names what it is about in the same way', async () => {
    await using served = await serveRecords()
    const { double, records } = served
    const { intent } = paidSession(double)
    const record = await records.fetch({ kind: 'payment_intent', id: intent, account: 's' }, going)
    const made = records.eventsOf(record!).find((each) => each.eventType.startsWith('payment'))!
    const real = double.all('event').find((event) => event.type === 'payment_intent.succeeded')!
    expect(Object.keys(made.body).sort()).toEqual(Object.keys(real).sort())
    expect(bodyOf(made)).toMatchObject({ id: made.eventId, request: { idempotency_key: null } })
    expect(made.apiVersion).toBe(real.api_version)
    const source = stripe({ account: 'acct_1', signingSecrets: ['whsec_1234567890123456'] })
    const rawBody = new TextEncoder().encode(JSON.stringify(made.body))
    expect(source.name({ headers: () => undefined, rawBody })).toEqual([
      {
        eventId: made.eventId,
        eventType: made.eventType,
        environment: 'test',
        occurredAt: made.occurredAt,
        apiVersion: made.apiVersion,
      },
    ])
  })

  test('a listed event is itself, byte for byte what its JSON says', async () => {
    await using served = await serveRecords()
    paidSession(served.double)
    const { records } = await served.walk('event')
    const made = records.flatMap((record) => served.records.eventsOf(record))
    // as delivered, but for the count of deliveries that are still to come
    const real = served.double.all('event').reverse()
    expect(made.map((event) => event.body)).toEqual(real)
    expect(made.map((event) => event.eventId)).toEqual(real.map((event) => event.id))
    expect(made[0]!.occurredAt).toEqual(new Date(real[0]!.created * 1000))
  })

  test('an attempt to pay an invoice tells of a payment once it is one', async () => {
    await using served = await serveRecords()
    const object = {
      id: 'inpay_1',
      object: 'invoice_payment',
      created: 1_767_225_600,
      currency: 'usd',
      invoice: { id: 'in_1', object: 'invoice' },
      payment: { type: 'payment_intent', payment_intent: 'pi_1' },
      status: 'open',
      status_transitions: { canceled_at: null, paid_at: null },
    }
    const eventsOf = (more: object): readonly MadeEvent[] =>
      served.records.eventsOf({
        kind: 'invoice_payment',
        id: 'inpay_1',
        createdAt: new Date(0),
        account: 'stripe',
        object: { ...object, ...more },
      })
    expect(eventsOf({})).toEqual([])
    expect(eventsOf({ status: 'canceled' })).toEqual([])
    const paid = { status: 'paid', status_transitions: { paid_at: 1_767_225_700 } }
    const [made] = eventsOf(paid)
    expect(made).toMatchObject({
      eventId: 'object:invoice_payment.paid:inpay_1',
      occurredAt: new Date(1_767_225_700_000),
    })
    expect(bodyOf(made!).data.object['invoice']).toBe('in_1')
  })

  test('nothing is made of a record of a kind that nobody knows', async () => {
    await using served = await serveRecords()
    const record = {
      kind: 'payout',
      id: 'po_1',
      createdAt: new Date(0),
      account: 'stripe',
      object: { id: 'po_1', object: 'payout' },
    }
    expect(served.records.eventsOf(record)).toEqual([])
    expect(served.records.factsOf(record)).toEqual([])
  })
})
