import { describe, expect, test } from 'vitest'
import type { Fact } from '../../../src/workflow/records.ts'
import { paidSession } from '../../testing/stripe-double/stripe-client.ts'
import { going, serveRecords, type ServedRecords } from './served-records.ts'

async function factsOf(served: ServedRecords, kind: string, id: string): Promise<readonly Fact[]> {
  const record = await served.records.fetch({ kind, id, account: 'stripe' }, going)
  return served.records.factsOf(record!)
}

describe('factsOf', () => {
  test('session, intent and charge claim one payment, with the same figures', async () => {
    await using served = await serveRecords()
    const { double } = served
    const { session, intent } = paidSession(double)
    double.refund({ paymentIntent: intent, amount: 900 })
    double.refund({ paymentIntent: intent, amount: 500, status: 'pending' })
    const charge = double.all('charge')[0]!.id
    const payment = {
      fact: 'payment',
      id: intent,
      standing: 'paid',
      amount: 4900n,
      currency: 'USD',
      refunded: 900n,
    }
    expect(await factsOf(served, 'payment_intent', intent)).toEqual([
      { ...payment, aliases: [charge] },
    ])
    expect(await factsOf(served, 'charge', charge)).toEqual([{ ...payment, aliases: [charge] }])
    expect(await factsOf(served, 'checkout.session', session.id)).toEqual([
      { ...payment, aliases: [charge, session.id] },
    ])
  })

  test('a free session is a payment of nothing under its own id', async () => {
    await using served = await serveRecords()
    const { id } = served.double.createSession({ discount: 4900 })
    const unpaid = { fact: 'payment', id, standing: 'unpaid', amount: 0n, refunded: 0n }
    expect(await factsOf(served, 'checkout.session', id)).toEqual([{ ...unpaid, currency: 'USD' }])
    served.double.completeSession(id)
    expect(await factsOf(served, 'checkout.session', id)).toMatchObject([{ standing: 'paid' }])
  })

  test('money that may still come is unpaid, and money that never will has failed', async () => {
    await using served = await serveRecords()
    const { double } = served
    const standingOf = async (kind: string, id: string): Promise<unknown> =>
      (await factsOf(served, kind, id)).map((fact) => fact.standing)
    const debit = double.createSession({})
    double.completeSession(debit.id, { outcome: 'unpaid' })
    expect(await standingOf('checkout.session', debit.id)).toEqual(['unpaid'])
    double.asyncPaymentFailed(debit.id)
    expect(await standingOf('checkout.session', debit.id)).toEqual(['unpaid'])
    const expired = double.createSession({})
    double.expireSession(expired.id)
    expect(await standingOf('checkout.session', expired.id)).toEqual(['failed'])
    const canceled = double.createPaymentIntent({ amount: 100 })
    double.cancelPaymentIntent(canceled.id)
    expect(await standingOf('payment_intent', canceled.id)).toEqual(['failed'])
    const declined = double.createPaymentIntent({ amount: 100 })
    double.payPaymentIntent(declined.id, { outcome: 'failed' })
    expect(await standingOf('payment_intent', declined.id)).toEqual(['unpaid'])
  })

  test('refunds and disputes name the payment that they are about, and where they stand', async () => {
    await using served = await serveRecords()
    const { double } = served
    const { intent } = paidSession(double)
    const { id } = double.refund({ paymentIntent: intent, amount: 900, status: 'pending' })
    const refund = { fact: 'refund', id, payment: intent, amount: 900n, currency: 'USD' }
    expect(await factsOf(served, 'refund', id)).toEqual([{ ...refund, standing: 'pending' }])
    double.succeedRefund(id)
    expect(await factsOf(served, 'refund', id)).toEqual([{ ...refund, standing: 'succeeded' }])
    double.failRefund(id)
    expect(await factsOf(served, 'refund', id)).toEqual([{ ...refund, standing: 'failed' }])
    expect(await factsOf(served, 'payment_intent', intent)).toMatchObject([{ refunded: 0n }])

    const dispute = double.openDispute({ paymentIntent: intent })
    const claim = { fact: 'dispute', id: dispute.id, payment: intent }
    expect(await factsOf(served, 'dispute', dispute.id)).toEqual([{ ...claim, standing: 'open' }])
    double.closeDispute(dispute.id, 'lost')
    expect(await factsOf(served, 'dispute', dispute.id)).toEqual([{ ...claim, standing: 'lost' }])
    const inquiry = double.openDispute({
      paymentIntent: paidSession(double, '2').intent,
      inquiry: true,
    })
    double.closeDispute(inquiry.id, 'warning_closed')
    expect(await factsOf(served, 'dispute', inquiry.id)).toMatchObject([{ standing: 'won' }])
  })

  test('an invoice and the intent that pays it know each other, and the invoice is the one to ask', async () => {
    await using served = await serveRecords()
    const { double } = served
    const customer = double.createCustomer({ email: 'ada@example.com' })
    const product = double.createProduct({ name: 'Team' })
    const price = double.createPrice({ product: product.id, unitAmount: 2000, interval: 'month' })
    double.createSubscription({ customer: customer.id, price: price.id })
    const [invoice] = double.all('invoice')
    const [intent] = double.all('payment_intent')
    expect(await factsOf(served, 'invoice', invoice!.id)).toEqual([
      {
        fact: 'payment',
        id: invoice!.id,
        aliases: [intent!.id],
        standing: 'paid',
        amount: 2000n,
        currency: 'USD',
        refunded: 0n,
      },
    ])
    expect(await factsOf(served, 'payment_intent', intent!.id)).toMatchObject([
      {
        id: intent!.id,
        aliases: [intent!.latest_charge, invoice!.id],
        judgedBy: { kind: 'invoice', id: invoice!.id, account: 'stripe' },
        amount: 2000n,
      },
    ])
  })
})

describe('references', () => {
  test('an id of Stripe’s leads to its record, whatever the name’s kind is called', async () => {
    await using served = await serveRecords()
    const { records } = served
    const kindOf = (id: string): string | undefined =>
      records.referenceOf('payment', id, 'acct_9')?.kind
    expect(kindOf('pi_3Fa')).toBe('payment_intent')
    expect(kindOf('ch_3Fa')).toBe('charge')
    expect(kindOf('py_3Fa')).toBe('charge')
    expect(kindOf('cs_test_a1')).toBe('checkout.session')
    expect(kindOf('in_1Fa')).toBe('invoice')
    expect(kindOf('re_3Fa')).toBe('refund')
    expect(kindOf('du_1Fa')).toBe('dispute')
    expect(kindOf('sub_1Fa')).toBe('subscription')
    for (const id of ['1001', 'pi', '_1', 'order_1', 'constructor_1', 'pi_1/../balance', 'pi_1 '])
      expect(kindOf(id)).toBeUndefined()
    expect(records.namedBy({ kind: 'session', value: 'cs_1' }, 'acct_9')).toEqual({
      kind: 'checkout.session',
      id: 'cs_1',
      account: 'acct_9',
    })
    expect(records.namedBy({ kind: 'order', value: '1001' }, 'acct_9')).toBeNull()
  })

  test('a refund is a call of the SDK, under the id that can be refunded', async () => {
    await using served = await serveRecords()
    const call = served.records.refundCall!
    expect(call({ id: 'pi_1', amount: 900n, currency: 'USD' })).toEqual({
      call: 'refunds.create',
      params: { payment_intent: 'pi_1', amount: 900 },
    })
    expect(call({ id: 'ch_1', amount: 900n, currency: 'USD', account: 'acct_9' })).toEqual({
      call: 'refunds.create',
      params: { charge: 'ch_1', amount: 900 },
      account: 'acct_9',
    })
    expect(call({ id: 'in_1', amount: 900n, currency: 'USD' })).toBeNull()
  })
})

describe('older versions of the API', () => {
  test('a field that the version does not have is not asked for', async () => {
    await using before = await serveRecords({}, { apiVersion: '2020-08-27' })
    await using now = await serveRecords()
    const chargeIn = async (served: ServedRecords): Promise<unknown> => {
      paidSession(served.double)
      const { records } = await served.walk('payment_intent')
      return records[0]!.object['latest_charge']
    }
    expect(await chargeIn(before)).toBeTypeOf('string')
    expect(await chargeIn(now)).toBeTypeOf('object')
  })

  test('the charges that an intent lists, and the invoice on top of it, are read as well', async () => {
    await using served = await serveRecords()
    const charge = { id: 'ch_2', object: 'charge', status: 'succeeded', amount_refunded: 900 }
    const object = {
      id: 'pi_1',
      object: 'payment_intent',
      status: 'succeeded',
      amount_received: 4900,
      currency: 'usd',
      invoice: 'in_1',
      charges: { object: 'list', data: [charge, { id: 'ch_1', status: 'failed' }] },
    }
    const record = {
      kind: 'payment_intent',
      id: 'pi_1',
      createdAt: new Date(0),
      account: 'stripe',
      object,
    }
    expect(served.records.factsOf(record)).toMatchObject([
      { id: 'pi_1', aliases: ['ch_2', 'in_1'], refunded: 900n, judgedBy: { kind: 'invoice' } },
    ])
    expect(served.records.eventsOf(record).map((event) => event.eventId)).toEqual([
      'object:charge.succeeded:ch_2',
      'object:payment_intent.succeeded:pi_1',
      'object:charge.refunded:ch_2:900',
    ])
  })
})
