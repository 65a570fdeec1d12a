/**
 * Subscriptions and their invoices: every period is billed by an invoice, which a payment intent pays
 * and an invoice payment connects with it. A subscription is active while its last invoice is paid.
 */
import type Stripe from 'stripe'
import { refused } from './api-error.ts'
import { buildSubscription, type Period } from './billing-objects.ts'
import { buildInvoice, buildInvoicePayment } from './invoice-objects.ts'
import type { Metadata } from './object-kinds.ts'
import { createPaymentIntent, payPaymentIntent } from './payment-verbs.ts'
import type { Transaction } from './transaction.ts'

/** What a subscription is about. */
export interface CreateSubscriptionInput {
  customer: string
  price: string
  quantity?: number
  /** Metadata of the subscription; invoices show it under `parent.subscription_details`. */
  metadata?: Metadata
  /** Metadata of the first invoice itself. */
  invoiceMetadata?: Metadata
}

/** How the billing of a period goes. */
export interface RenewInput {
  /** `paid` when absent; `failed` leaves the invoice open and the subscription past due. */
  outcome?: 'paid' | 'failed'
  invoiceMetadata?: Metadata
}

/**
 * Starts a subscription and bills its first period: `customer.subscription.created`, the invoice's and
 * the payment's events, `invoice.paid`, `customer.subscription.updated` (incomplete → active).
 */
export function createSubscription(
  tx: Transaction,
  input: CreateSubscriptionInput,
): Stripe.Subscription {
  tx.get('customer', input.customer, 'customer')
  const price = tx.get('price', input.price, 'items[0][price]')
  if (!price.recurring) throw refused('The price is not recurring.', { param: 'items[0][price]' })
  const subscription = tx.create(
    buildSubscription(tx, {
      customer: input.customer,
      price,
      quantity: input.quantity ?? 1,
      metadata: input.metadata ?? {},
      period: { start: tx.now, end: after(tx.now, price) },
    }),
  )
  tx.emit('customer.subscription.created', subscription)
  return bill(tx, subscription, 'subscription_create', {
    ...(input.invoiceMetadata && { invoiceMetadata: input.invoiceMetadata }),
  })
}

/** The next period begins: items move on, an invoice bills them, and is paid or not. */
export function renewSubscription(
  tx: Transaction,
  id: string,
  input: RenewInput = {},
): Stripe.Subscription {
  const subscription = tx.get('subscription', id)
  if (subscription.status === 'canceled') throw refused('A canceled subscription is not renewed.')
  const items = subscription.items.data.map((item) => ({
    ...item,
    current_period_start: item.current_period_end,
    current_period_end: after(item.current_period_end, item.price),
  }))
  const moved = tx.change(subscription, { items: { ...subscription.items, data: items } })
  return bill(tx, moved, 'subscription_cycle', input)
}

/** Pays an open invoice: the payment's events, `invoice_payment.paid`, `invoice.paid`, `invoice.payment_succeeded`. */
export function payInvoice(tx: Transaction, id: string): Stripe.Invoice {
  const invoice = tx.get('invoice', id)
  if (invoice.status !== 'open')
    throw refused(`This invoice is ${invoice.status}: it cannot be paid.`)
  return settleInvoice(tx, invoice, 'paid')
}

/** Ends a subscription now: `customer.subscription.deleted`. */
export function cancelSubscription(tx: Transaction, id: string): Stripe.Subscription {
  const subscription = tx.get('subscription', id)
  if (subscription.status === 'canceled') throw refused(`No such subscription: '${id}'`)
  const canceled = tx.change(subscription, {
    status: 'canceled',
    canceled_at: tx.now,
    ended_at: tx.now,
    cancellation_details: {
      comment: null,
      feedback: null,
      feedback_option: null,
      reason: 'cancellation_requested',
    },
  })
  tx.emit('customer.subscription.deleted', canceled)
  return canceled
}

function bill(
  tx: Transaction,
  subscription: Stripe.Subscription,
  reason: 'subscription_create' | 'subscription_cycle',
  input: RenewInput,
): Stripe.Subscription {
  const customer = tx.get('customer', subscription.customer as string)
  const sequence = customer.next_invoice_sequence ?? 1
  tx.change(customer, { next_invoice_sequence: sequence + 1 })
  const invoice = tx.create(
    buildInvoice(tx, {
      subscription,
      customer,
      reason,
      period: periodOf(subscription),
      metadata: input.invoiceMetadata ?? {},
      number: `${customer.id.slice(4, 12).toUpperCase()}-${String(sequence).padStart(4, '0')}`,
    }),
  )
  const named = tx.change(subscription, { latest_invoice: invoice.id })
  tx.emit('invoice.created', invoice)
  tx.emit('invoice.finalized', invoice)
  settleInvoice(tx, invoice, input.outcome ?? 'paid')
  return tx.get('subscription', named.id)
}

function settleInvoice(
  tx: Transaction,
  invoice: Stripe.Invoice,
  outcome: 'paid' | 'failed',
): Stripe.Invoice {
  const attempted = tx.change(invoice, {
    attempted: true,
    attempt_count: invoice.attempt_count + 1,
  })
  const settled =
    invoice.amount_due === 0 ? markPaid(tx, attempted) : charge(tx, attempted, outcome)
  const id = invoice.parent?.subscription_details?.subscription
  if (typeof id !== 'string') return settled
  const subscription = tx.get('subscription', id)
  const status =
    settled.status === 'paid'
      ? 'active'
      : subscription.status === 'incomplete'
        ? 'incomplete'
        : 'past_due'
  tx.emit('customer.subscription.updated', tx.change(subscription, { status }))
  return settled
}

/** An invoice over nothing is paid without any payment. */
function markPaid(tx: Transaction, invoice: Stripe.Invoice): Stripe.Invoice {
  const paid = tx.change(invoice, {
    amount_paid: invoice.amount_due,
    amount_remaining: 0,
    status: 'paid',
    status_transitions: { ...invoice.status_transitions, paid_at: tx.now },
  })
  tx.emit('invoice.paid', paid)
  tx.emit('invoice.payment_succeeded', paid)
  return paid
}

function charge(
  tx: Transaction,
  invoice: Stripe.Invoice,
  outcome: 'paid' | 'failed',
): Stripe.Invoice {
  const known = tx.list('invoice_payment').find((payment) => payment.invoice === invoice.id)
  const intent = (known?.payment.payment_intent as string | undefined) ?? intentFor(tx, invoice).id
  const payment = known ?? tx.create(buildInvoicePayment(tx, invoice, intent))
  payPaymentIntent(tx, intent, {
    outcome: outcome === 'paid' ? 'succeeded' : 'failed',
    ...(invoice.customer_email !== null && { email: invoice.customer_email }),
  })
  if (outcome === 'failed') {
    tx.emit('invoice.payment_failed', invoice)
    return invoice
  }
  const done = tx.change(payment, {
    status: 'paid',
    amount_paid: invoice.amount_due,
    status_transitions: { canceled_at: null, paid_at: tx.now },
  })
  tx.emit('invoice_payment.paid', done)
  return markPaid(tx, invoice)
}

function intentFor(tx: Transaction, invoice: Stripe.Invoice): Stripe.PaymentIntent {
  return createPaymentIntent(tx, {
    amount: invoice.amount_due,
    currency: invoice.currency,
    customer: invoice.customer as string,
    description:
      invoice.billing_reason === 'subscription_create'
        ? 'Subscription creation'
        : 'Subscription update',
    orderReference: invoice.id,
  })
}

function periodOf(subscription: Stripe.Subscription): Period {
  const item = subscription.items.data[0]!
  return { start: item.current_period_start, end: item.current_period_end }
}

/** The end of a period that starts at `seconds`, in UTC; a month's day is cut to the month's length. */
function after(seconds: number, price: Stripe.Price): number {
  const date = new Date(seconds * 1000)
  const interval = price.recurring?.interval ?? 'month'
  if (interval === 'day' || interval === 'week')
    return seconds + (interval === 'day' ? 1 : 7) * 86_400
  const day = date.getUTCDate()
  date.setUTCDate(1)
  date.setUTCMonth(date.getUTCMonth() + (interval === 'month' ? 1 : 12))
  const lastDay = new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate()
  date.setUTCDate(Math.min(day, lastDay))
  return Math.floor(date.getTime() / 1000)
}
