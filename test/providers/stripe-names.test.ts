import { describe, expect, test } from 'vitest'
import {
  invoiceOf,
  paymentOf,
  paymentsOf,
  stripeNames,
  subscriptionMetadataOf,
  subscriptionOf,
} from '../../src/providers/stripe-names.ts'

/** Invoices that say the same, as Stripe has written them over the years. */
const today = {
  id: 'in_1',
  object: 'invoice',
  parent: {
    type: 'subscription_details',
    quote_details: null,
    subscription_details: { subscription: 'sub_1', metadata: { org: '1' } },
  },
}
const withPayments = {
  ...today,
  payments: {
    data: [
      { payment: { type: 'payment_intent', payment_intent: 'pi_1' } },
      { payment: { type: 'charge', charge: { id: 'ch_2' } } },
    ],
  },
}
const in2024 = {
  id: 'in_1',
  object: 'invoice',
  subscription: 'sub_1',
  subscription_details: { metadata: { org: '1' } },
  payment_intent: 'pi_1',
  charge: 'ch_1',
}
const in2018 = { id: 'in_1', object: 'invoice', subscription: { id: 'sub_1' }, charge: 'ch_1' }
const single = { id: 'in_2', object: 'invoice', parent: null }

const spelled = (names: readonly { kind: string; value: string }[]): string[] =>
  names.map(({ kind, value }) => `${kind} ${value}`)

describe('an invoice', () => {
  test.each([
    ['today', today],
    ['with its payments', withPayments],
    ['of 2024', in2024],
    ['of 2018', in2018],
  ])('%s names its subscription', (_, invoice) => {
    expect(subscriptionOf(invoice)).toBe('sub_1')
  })

  test('that bills no subscription names none', () => {
    expect(subscriptionOf(single)).toBeNull()
    expect(subscriptionOf({ ...single, parent: { subscription_details: null } })).toBeNull()
  })

  test('carries the metadata that its subscription had', () => {
    expect(subscriptionMetadataOf(today)).toEqual({ org: '1' })
    expect(subscriptionMetadataOf(in2024)).toEqual({ org: '1' })
    expect(subscriptionMetadataOf(in2018)).toEqual({})
    const bare = { parent: { subscription_details: { subscription: 'sub_1', metadata: null } } }
    expect(subscriptionMetadataOf(bare)).toEqual({})
  })

  test('names what paid it only where that version says so, each payment once', () => {
    expect(paymentsOf(today)).toEqual([])
    expect(paymentsOf(withPayments)).toEqual(['pi_1', 'ch_2'])
    expect(paymentsOf(in2024)).toEqual(['pi_1'])
    expect(paymentsOf(in2018)).toEqual(['ch_1'])
    expect(paymentsOf({ ...in2024, payments: withPayments.payments })).toEqual(['pi_1', 'ch_2'])
  })
})

describe('what was paid with', () => {
  test('an invoice payment tells of its payment and its invoice', () => {
    const by = (payment: object): object => ({
      object: 'invoice_payment',
      invoice: 'in_1',
      payment,
    })
    const intent = by({ type: 'payment_intent', payment_intent: { id: 'pi_1' } })
    expect(paymentOf(intent)).toBe('pi_1')
    expect(invoiceOf(intent)).toBe('in_1')
    expect(spelled(stripeNames(intent))).toEqual(['invoice in_1', 'payment_intent pi_1'])
    expect(paymentOf(by({ type: 'charge', charge: 'ch_1' }))).toBe('ch_1')
    expect(paymentOf(by({ type: 'payment_record', payment_record: 'pr_1' }))).toBe('pr_1')
    expect(paymentOf(by({ type: 'something_new' }))).toBeNull()
    const dead = { object: 'invoice_payment', invoice: { id: 'in_1', deleted: true } }
    expect(invoiceOf(dead)).toBe('in_1')
  })

  test('refunds and disputes bear the id of the intent, else of the charge', () => {
    const refund = { id: 're_1', object: 'refund', payment_intent: 'pi_1', charge: 'ch_1' }
    expect(paymentOf(refund)).toBe('pi_1')
    expect(paymentOf({ ...refund, payment_intent: null })).toBe('ch_1')
    expect(spelled(stripeNames(refund))).toEqual(['payment_intent pi_1'])
    expect(spelled(stripeNames({ ...refund, payment_intent: null }))).toEqual(['charge ch_1'])
    const dispute = { id: 'du_1', object: 'dispute', charge: { id: 'ch_1' } }
    expect(paymentOf(dispute)).toBe('ch_1')
  })

  test('charges and intents are their own, and older ones name their invoice', () => {
    const charge = { id: 'ch_1', object: 'charge', payment_intent: 'pi_1', invoice: 'in_1' }
    expect(paymentOf(charge)).toBe('pi_1')
    expect(paymentOf({ ...charge, payment_intent: null })).toBe('ch_1')
    expect(invoiceOf(charge)).toBe('in_1')
    expect(spelled(stripeNames(charge))).toEqual(['payment_intent pi_1', 'invoice in_1'])
    const intent = { id: 'pi_1', object: 'payment_intent' }
    expect(paymentOf(intent)).toBe('pi_1')
    expect(invoiceOf(intent)).toBeNull()
    expect(spelled(stripeNames(intent))).toEqual(['payment_intent pi_1'])
  })
})

describe('names', () => {
  test('of an invoice: its own, its subscription, and what paid it', () => {
    expect(spelled(stripeNames(today))).toEqual(['invoice in_1', 'subscription sub_1'])
    expect(spelled(stripeNames(in2024))).toEqual([
      'invoice in_1',
      'subscription sub_1',
      'payment_intent pi_1',
      'charge ch_1',
    ])
    expect(spelled(stripeNames({ ...in2024, payments: withPayments.payments }))).toEqual([
      'invoice in_1',
      'subscription sub_1',
      'payment_intent pi_1',
      'charge ch_1',
      'charge ch_2',
    ])
  })

  test('are never those of a customer, who has many orders', () => {
    const invoice = { ...today, customer: 'cus_1' }
    const subscription = { id: 'sub_1', object: 'subscription', customer: 'cus_1' }
    expect(spelled([...stripeNames(invoice), ...stripeNames(subscription)])).not.toContain(
      'customer cus_1',
    )
    expect(spelled(stripeNames(subscription))).toEqual(['subscription sub_1'])
  })
})
