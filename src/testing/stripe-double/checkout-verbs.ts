/**
 * The life of a checkout session: open → complete or expired. A completed session is `paid`, `unpaid`
 * (a bank debit under way, whose end comes as an event of its own) or `no_payment_required`.
 */
import type Stripe from 'stripe'
import { invalidRequest, refused } from './api-error.ts'
import { buildSession, customerDetails } from './checkout-objects.ts'
import type { Metadata, SessionPlan } from './object-kinds.ts'
import {
  bookCharge,
  createPaymentIntent,
  latestCharge,
  payPaymentIntent,
  settlePaymentIntent,
} from './payment-verbs.ts'
import type { Transaction } from './transaction.ts'

/** What a new session sells. */
export interface CreateSessionInput {
  /** Minor units; 4900 when absent. */
  amount?: number
  /** Minor units taken off. */
  discount?: number
  /** Lower case; `usd` when absent. */
  currency?: string
  /** The merchant's own id of what is bought. */
  clientReferenceId?: string
  /** Metadata of the session, which its intent does not get. */
  metadata?: Metadata
  /** Metadata of the payment intent (`payment_intent_data.metadata`). */
  paymentIntentMetadata?: Metadata
  description?: string
  customer?: string
  customerEmail?: string
  /** The price that is sold, for `line_items`. */
  price?: string
  quantity?: number
  expiresInSeconds?: number
  successUrl?: string
}

/** Opens a session. Stripe makes no event of it: an app knows the session that it asked for. */
export function createSession(
  tx: Transaction,
  input: CreateSessionInput = {},
): Stripe.Checkout.Session {
  const amount = input.amount ?? 4900
  const discount = input.discount ?? 0
  if (discount > amount)
    throw invalidRequest('The discount is larger than the amount.', { param: 'discounts' })
  if (input.customer !== undefined) tx.get('customer', input.customer, 'customer')
  if (input.price !== undefined) tx.get('price', input.price, 'line_items[0][price]')
  const session = tx.create(
    buildSession(tx, {
      amount,
      discount,
      currency: input.currency ?? 'usd',
      clientReferenceId: input.clientReferenceId ?? null,
      customerEmail: input.customerEmail ?? null,
      customer: input.customer ?? null,
      metadata: input.metadata ?? {},
      expiresInSeconds: input.expiresInSeconds ?? 86_400,
      successUrl: input.successUrl ?? null,
    }),
  )
  const plan: SessionPlan = {
    id: planId(session.id),
    object: 'session_plan',
    paymentIntentMetadata: input.paymentIntentMetadata ?? {},
    description: input.description ?? null,
    price: input.price ?? null,
    quantity: input.quantity ?? 1,
  }
  tx.create(plan)
  return session
}

/** How the customer finishes a session. */
export interface CompleteSessionInput {
  /** `paid` when absent, or `no_payment_required` when there is nothing to pay. */
  outcome?: 'paid' | 'unpaid' | 'no_payment_required'
  /** What the customer typed; else the session's or customer's own address. */
  email?: string
  name?: string
}

/**
 * A customer finishes a session. Paid: `payment_intent.created`, `charge.succeeded`,
 * `payment_intent.succeeded`, `checkout.session.completed`, `charge.updated`. Unpaid: the debit's events
 * and `checkout.session.completed`. No payment required: `checkout.session.completed` alone.
 */
export function completeSession(
  tx: Transaction,
  id: string,
  input: CompleteSessionInput = {},
): Stripe.Checkout.Session {
  const session = openSession(tx, id)
  const free = session.amount_total === 0
  const outcome = input.outcome ?? (free ? 'no_payment_required' : 'paid')
  if (free !== (outcome === 'no_payment_required')) {
    throw refused(`A session over ${session.amount_total} cannot end as ${outcome}.`)
  }
  const email =
    input.email ?? session.customer_email ?? customerEmail(tx, session) ?? 'buyer@example.com'
  const intent = free ? null : paySession(tx, session, outcome, email, input.name)
  const done = tx.change(session, {
    status: 'complete',
    payment_status: outcome,
    payment_intent: intent?.id ?? null,
    customer_details: customerDetails(email, input.name ?? null),
    url: null,
  })
  tx.emit('checkout.session.completed', done)
  if (intent && outcome === 'paid') bookCharge(tx, latestCharge(intent))
  return done
}

/** The bank debit of an unpaid session ends well: its events and `checkout.session.async_payment_succeeded`. */
export function asyncPaymentSucceeded(tx: Transaction, id: string): Stripe.Checkout.Session {
  const session = unpaidSession(tx, id)
  settlePaymentIntent(tx, session.payment_intent as string, 'succeeded')
  const paid = tx.change(session, { payment_status: 'paid' })
  tx.emit('checkout.session.async_payment_succeeded', paid)
  return paid
}

/** The bank debit of an unpaid session fails: its events and `checkout.session.async_payment_failed`. */
export function asyncPaymentFailed(tx: Transaction, id: string): Stripe.Checkout.Session {
  const session = unpaidSession(tx, id)
  settlePaymentIntent(tx, session.payment_intent as string, 'failed')
  tx.emit('checkout.session.async_payment_failed', session)
  return session
}

/** An open session ends without a purchase: `checkout.session.expired`. */
export function expireSession(tx: Transaction, id: string): Stripe.Checkout.Session {
  const session = openSession(tx, id)
  const expired = tx.change(session, { status: 'expired', url: null })
  tx.emit('checkout.session.expired', expired)
  return expired
}

/** The id of what an open session will do. */
export function planId(session: string): string {
  return `plan_${session}`
}

function paySession(
  tx: Transaction,
  session: Stripe.Checkout.Session,
  outcome: 'paid' | 'unpaid' | 'no_payment_required',
  email: string,
  name: string | undefined,
): Stripe.PaymentIntent {
  const plan = tx.get('session_plan', planId(session.id))
  const intent = createPaymentIntent(tx, {
    amount: session.amount_total ?? 0,
    currency: session.currency ?? 'usd',
    metadata: plan.paymentIntentMetadata,
    paymentMethodType: outcome === 'unpaid' ? 'us_bank_account' : 'card',
    ...(plan.description !== null && { description: plan.description }),
    ...(typeof session.customer === 'string' && { customer: session.customer }),
  })
  return payPaymentIntent(tx, intent.id, {
    outcome: outcome === 'unpaid' ? 'processing' : 'succeeded',
    email,
    ...(name !== undefined && { name }),
  })
}

function openSession(tx: Transaction, id: string): Stripe.Checkout.Session {
  const session = tx.get('checkout.session', id)
  if (session.status !== 'open') {
    throw refused(
      `Only Checkout Sessions with a status in ["open"] can do that. This one has a status of ${session.status}.`,
    )
  }
  return session
}

function unpaidSession(tx: Transaction, id: string): Stripe.Checkout.Session {
  const session = tx.get('checkout.session', id)
  if (session.status !== 'complete' || session.payment_status !== 'unpaid') {
    throw refused(
      `This Checkout Session has no payment under way: ${session.status}, ${session.payment_status}.`,
    )
  }
  return session
}

function customerEmail(tx: Transaction, session: Stripe.Checkout.Session): string | null {
  if (typeof session.customer !== 'string') return null
  return tx.find('customer', session.customer)?.email ?? null
}
