import { describe, expect, test } from 'vitest'
import { requireShape } from '../../../src/providers/stripe-records/stripe-shapes.ts'
import { RecordsError } from '../../../src/workflow/records.ts'
import { paidSession } from '../../testing/stripe-double/stripe-client.ts'
import { going, serveRecords, troubleOf } from './served-records.ts'

const money = { amount: 4900, currency: 'usd' }
const charge = { id: 'ch_1', ...money, status: 'succeeded', captured: true }
const intent = { id: 'pi_1', ...money, status: 'succeeded', latest_charge: charge }
const session = { id: 'cs_1', amount_total: 4900, currency: 'usd', status: 'complete' }
const refund = { id: 're_1', ...money, status: 'succeeded', charge: 'ch_1' }
const invoice = { id: 'in_1', amount_paid: 1, amount_due: 1, currency: 'usd', status: 'paid' }
const dispute = { id: 'du_1', ...money, status: 'lost', charge: 'ch_1' }
const item = {
  id: 'si_1',
  price: { id: 'price_1', lookup_key: null, product: 'prod_1' },
  quantity: 2,
}
const subscription = { id: 'sub_1', status: 'active', items: { data: [item] } }
const payment = {
  id: 'inpay_1',
  invoice: 'in_1',
  status: 'paid',
  currency: 'usd',
  amount_paid: 4900,
}
const event = { id: 'evt_1', type: 'refund.created', data: { object: refund } }

const secretly = 'a value that no message shows'

describe('requireShape', () => {
  test.each([
    ['refund', { ...refund, amount: secretly }, 'amount'],
    ['refund', { ...refund, amount: 49.5 }, 'amount'],
    ['refund', { ...refund, amount: 2 ** 53 }, 'amount'],
    ['refund', { ...refund, amount: undefined }, 'amount'],
    ['refund', { ...refund, currency: 840 }, 'currency'],
    ['refund', { ...refund, status: { value: secretly } }, 'status'],
    ['refund', { ...refund, payment_intent: { id: 5 } }, 'payment_intent.id'],
    ['refund', { ...refund, charge: { ...charge, amount: secretly } }, 'charge.amount'],
    ['charge', { ...charge, amount_refunded: -1 }, 'amount_refunded'],
    ['charge', { ...charge, refunds: { data: [refund, null] } }, 'refunds.data[1]'],
    ['payment_intent', { ...intent, status: null }, 'status'],
    [
      'payment_intent',
      { ...intent, latest_charge: { ...charge, amount_captured: secretly } },
      'latest_charge.amount_captured',
    ],
    ['checkout.session', { ...session, amount_total: { secretly } }, 'amount_total'],
    ['checkout.session', { ...session, metadata: { order: 5 } }, 'metadata'],
    ['checkout.session', { ...session, client_reference_id: [secretly] }, 'client_reference_id'],
    [
      'checkout.session',
      { ...session, payment_intent: { ...intent, id: '' } },
      'payment_intent.id',
    ],
    ['invoice', { ...invoice, amount_paid: secretly }, 'amount_paid'],
    ['invoice', { ...invoice, status_transitions: { paid_at: secretly } }, 'paid_at'],
    ['dispute', { ...dispute, balance_transactions: [{ amount: secretly }] }, '[0].amount'],
    ['subscription', { id: 'sub_1', status: 5 }, 'status'],
    [
      'subscription',
      { ...subscription, items: { data: [{ ...item, quantity: secretly }] } },
      'items.data[0].quantity',
    ],
    [
      'subscription',
      { ...subscription, items: { data: [{ ...item, price: { id: 5 } }] } },
      'items.data[0].price.id',
    ],
    ['subscription', { ...subscription, cancel_at: secretly }, 'cancel_at'],
    ['invoice_payment', { ...payment, invoice: null }, 'invoice'],
    ['invoice_payment', { ...payment, amount_paid: secretly }, 'amount_paid'],
    ['invoice_payment', { ...payment, payment: { payment_intent: 5 } }, 'payment.payment_intent'],
    ['event', { ...event, type: 5 }, 'type'],
    ['event', { ...event, data: {} }, 'data.object'],
    [
      'event',
      { ...event, data: { object: { ...refund, object: 'refund', amount: secretly } } },
      'data.object.amount',
    ],
  ])('a %s is garbage for one field that cannot be so: %#', (kind, found, field) => {
    let said: unknown
    try {
      requireShape(kind, found as { id: string })
    } catch (error) {
      said = error
    }
    expect(said).toBeInstanceOf(RecordsError)
    const { trouble, message } = said as RecordsError
    expect(trouble).toBe('garbage')
    expect(message).toContain(`${field} of ${kind} ${found.id} `)
    expect(message).not.toContain(secretly)
  })

  test.each([
    ['refund', { ...refund, status: null, charge, payment_intent: null }],
    ['payment_intent', { ...intent, latest_charge: 'ch_1', charges: { data: [charge] } }],
    ['checkout.session', { ...session, amount_total: null, currency: null, mode: 'setup' }],
    ['invoice', { ...invoice, payments: { data: [{ payment: { payment_intent: 'pi_1' } }] } }],
    ['dispute', { ...dispute, balance_transactions: [{ amount: -4900 }] }],
    ['subscription', { ...subscription, items: { data: [{ id: 'si_1', plan: { id: 'gold' } }] } }],
    ['subscription', { ...subscription, current_period_end: 5, items: { data: [item] } }],
    [
      'invoice_payment',
      { ...payment, payment: { type: 'payment_record', payment_record: 'pr_1' } },
    ],
    ['event', { ...event, data: { object: { object: 'invoice', amount_due: 5 } } }],
    ['event', { ...event, data: { object: { object: 'something.new', amount: 'any' } } }],
  ])('a %s may lack what versions differ in: %#', (kind, found) => {
    expect(() => requireShape(kind, found as { id: string })).not.toThrow()
  })
})

describe('records', () => {
  test('a page and a fetched object with amounts that are no integers are garbage', async () => {
    await using served = await serveRecords()
    const { intent, session } = paidSession(served.double)
    served.double.refund({ paymentIntent: intent, amount: 900 })
    served.double.fault({ garble: 'amounts' })
    for (const kind of ['event', 'checkout.session', 'payment_intent', 'refund'])
      expect(await troubleOf(served.walk(kind))).toMatchObject({ trouble: 'garbage' })
    const reference = { kind: 'checkout.session', id: session.id, account: 'stripe' }
    const trouble = await troubleOf(served.records.fetch(reference, going))
    expect(trouble.trouble).toBe('garbage')
    expect(trouble.message).toContain(`of checkout.session ${session.id}`)
  })
})
