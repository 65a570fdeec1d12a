/**
 * What the shop's database must say in the end, worked out from the provider's own objects alone. It
 * shares nothing with the engine that it is compared with: no event, no workflow, no table.
 */
import type Stripe from 'stripe'
import type { StripeVerbs } from '../stripe-double/verbs.ts'
import { listPrice } from './simulated-order.ts'

/** Where an order stands; `pending` also where the shop need not know the order at all. */
export type OrderState = 'pending' | 'paid' | 'disputed' | 'refunded' | 'lost' | 'canceled'

/** Money captured for an order, or a purchase that needed none. */
export interface ExpectedPayment {
  /** The payment intent; the session where nothing had to be paid. */
  id: string
  /** Minor units captured. */
  amount: number
  currency: string
  /** Minor units given back for good. */
  refunded: number
  /** Why it pays for nothing: less than the list price, or another currency. */
  refusal: 'underpaid' | 'wrong_currency' | null
}

/** What must be true of an order. */
export interface ExpectedOutcome {
  orderId: string
  state: OrderState
  /** Whether the customer may use what was bought. */
  entitled: boolean
  /** Whose license it is, where it is known: `email:` and the address in lower case. */
  subject: string | null
  /** How many licenses were ever given: one, however many payments and events there were. */
  licenses: 0 | 1
  payments: ExpectedPayment[]
  /** Payments after the first that counts: each a finding `paid_twice`. */
  paidAgain: number
  refunds: { id: string; amount: number; status: string }[]
  disputes: { id: string; status: string }[]
}

/** A paid invoice of a subscription that names an account of the shop. */
export interface ExpectedCredit {
  invoice: string
  subscription: string
  account: string
  /** Whole units of the currency; invoices below one are left out. */
  credits: number
}

/** What the provider's objects say about every order that they name, by the order's id. */
export function expectedOutcomes(double: StripeVerbs): Map<string, ExpectedOutcome> {
  const facts = gatherFacts(double)
  const outcomes = new Map<string, ExpectedOutcome>()
  for (const orderId of facts.orders) outcomes.set(orderId, judge(orderId, facts))
  return outcomes
}

/** What the provider's objects say about one order; undefined when none of them names it. */
export function expectedOutcome(double: StripeVerbs, orderId: string): ExpectedOutcome | undefined {
  return expectedOutcomes(double).get(orderId)
}

/** The credits that paid invoices must have added, one entry an invoice. */
export function expectedCredits(double: StripeVerbs): ExpectedCredit[] {
  return double.all('invoice').flatMap((invoice) => {
    const details = invoice.parent?.subscription_details
    const account = invoice.metadata?.['account_id'] ?? details?.metadata?.['account_id']
    if (invoice.status !== 'paid' || !details || account === undefined) return []
    const credits = Math.floor(invoice.amount_paid / minorUnits(invoice.currency))
    const subscription = details.subscription as string
    return credits === 0 ? [] : [{ invoice: invoice.id, subscription, account, credits }]
  })
}

/** How many minor units make one whole unit of the currencies that the simulation uses. */
function minorUnits(currency: string): number {
  const units: Record<string, number> = { usd: 100, eur: 100, jpy: 1, kwd: 1000 }
  const found = units[currency]
  if (found === undefined) throw new Error(`the simulation does not know the currency ${currency}`)
  return found
}

interface Facts {
  orders: Set<string>
  sessions: Map<string, Stripe.Checkout.Session[]>
  intents: Map<string, Stripe.PaymentIntent[]>
  refunds: Map<string, Stripe.Refund[]>
  disputes: Map<string, Stripe.Dispute[]>
}

function gatherFacts(double: StripeVerbs): Facts {
  const sessions = double.all('checkout.session')
  const orderOfIntent = new Map<string, string>()
  for (const session of sessions) {
    const order = orderOfSession(session)
    if (order !== undefined && typeof session.payment_intent === 'string') {
      orderOfIntent.set(session.payment_intent, order)
    }
  }
  const facts: Facts = {
    orders: new Set(),
    sessions: groupBy(sessions, orderOfSession),
    intents: groupBy(
      double.all('payment_intent'),
      (intent) => orderOfIntent.get(intent.id) ?? intent.metadata['order_id'],
    ),
    refunds: groupBy(double.all('refund'), (refund) => refund.payment_intent as string),
    disputes: groupBy(double.all('dispute'), (dispute) => dispute.payment_intent as string),
  }
  for (const order of [...facts.sessions.keys(), ...facts.intents.keys()]) facts.orders.add(order)
  return facts
}

function orderOfSession(session: Stripe.Checkout.Session): string | undefined {
  return session.client_reference_id ?? session.metadata?.['order_id']
}

function judge(orderId: string, facts: Facts): ExpectedOutcome {
  const sessions = facts.sessions.get(orderId) ?? []
  const payments = [...paymentsOf(orderId, facts), ...freePurchases(sessions)]
  const counted = payments.filter((payment) => payment.refusal === null)
  const refunds = payments.flatMap((payment) => facts.refunds.get(payment.id) ?? [])
  const disputes = payments.flatMap((payment) => facts.disputes.get(payment.id) ?? [])
  const state = stateOf(sessions, counted, disputes)
  return {
    orderId,
    state,
    entitled: state === 'paid',
    subject: subjectOf(sessions, facts.intents.get(orderId) ?? []),
    licenses: counted.length > 0 ? 1 : 0,
    payments,
    paidAgain: Math.max(0, counted.length - 1),
    refunds: refunds.map(({ id, amount, status }) => ({ id, amount, status: status ?? 'unknown' })),
    disputes: disputes.map(({ id, status }) => ({ id, status })),
  }
}

function stateOf(
  sessions: Stripe.Checkout.Session[],
  counted: ExpectedPayment[],
  disputes: Stripe.Dispute[],
): OrderState {
  if (disputes.some((dispute) => /needs_response|under_review/.test(dispute.status)))
    return 'disputed'
  if (disputes.some((dispute) => dispute.status === 'lost')) return 'lost'
  if (counted.some((payment) => payment.amount === 0 || payment.refunded < payment.amount))
    return 'paid'
  if (counted.length > 0) return 'refunded'
  return sessions.some((session) => session.status === 'expired') ? 'canceled' : 'pending'
}

function paymentsOf(orderId: string, facts: Facts): ExpectedPayment[] {
  return (facts.intents.get(orderId) ?? [])
    .filter((intent) => intent.status === 'succeeded')
    .map((intent) => ({
      id: intent.id,
      amount: intent.amount_received,
      currency: intent.currency,
      refunded: (facts.refunds.get(intent.id) ?? [])
        .filter((refund) => refund.status === 'succeeded')
        .reduce((sum, refund) => sum + refund.amount, 0),
      refusal: refusalOf(intent),
    }))
}

function refusalOf(intent: Stripe.PaymentIntent): ExpectedPayment['refusal'] {
  if (intent.currency !== listPrice.currency) return 'wrong_currency'
  return intent.amount_received < listPrice.amount ? 'underpaid' : null
}

function freePurchases(sessions: Stripe.Checkout.Session[]): ExpectedPayment[] {
  return sessions
    .filter((session) => session.payment_status === 'no_payment_required')
    .map(({ id, currency }) => ({
      id,
      amount: 0,
      currency: currency ?? 'usd',
      refunded: 0,
      refusal: null,
    }))
}

/** The address that was typed when the order was bought; the intent's own only where there was no session. */
function subjectOf(
  sessions: Stripe.Checkout.Session[],
  intents: Stripe.PaymentIntent[],
): string | null {
  const bought = sessions.filter(
    (session) => session.status === 'complete' && session.payment_status !== 'unpaid',
  )
  const typed = bought.at(-1)?.customer_details?.email
  const named = intents.find((intent) => intent.status === 'succeeded')?.metadata['email']
  const email = typed ?? named
  return email === undefined || email === null ? null : `email:${email.toLowerCase()}`
}

function groupBy<T>(items: readonly T[], keyOf: (item: T) => string | undefined): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const item of items) {
    const key = keyOf(item)
    if (key === undefined) continue
    const group = groups.get(key)
    if (group) group.push(item)
    else groups.set(key, [item])
  }
  return groups
}
