/**
 * Invoices: every period and every change that costs something is billed by one, which a payment intent
 * pays and an invoice payment connects with it. What an invoice comes to is what its subscription becomes.
 */
import type Stripe from 'stripe'
import { refused } from './api-error.ts'
import { periodOf } from './billing-period.ts'
import {
  buildInvoice,
  buildInvoicePayment,
  type BillingReason,
  type LineInput,
} from './invoice-objects.ts'
import type { Metadata } from './object-kinds.ts'
import { createPaymentIntent, payPaymentIntent } from './payment-verbs.ts'
import type { Transaction } from './transaction.ts'

/** What an invoice is made for, and how its first payment goes. */
export interface BillInput {
  reason: BillingReason
  /** `paid` when absent; `failed` leaves it open. */
  outcome?: 'paid' | 'failed'
  invoiceMetadata?: Metadata
  /** What it bills; every item for the whole period when absent. */
  lines?: readonly LineInput[]
}

/** Pays an open invoice: the payment's events, `invoice_payment.paid`, `invoice.paid`, `invoice.payment_succeeded`. */
export function payInvoice(
  tx: Transaction,
  id: string,
  input: { outcome?: 'paid' | 'failed' } = {},
): Stripe.Invoice {
  return settleInvoice(tx, openInvoice(tx, id, 'paid'), input.outcome ?? 'paid')
}

/** Gives an open invoice up as a mistake: `invoice.voided`. */
export function voidInvoice(tx: Transaction, id: string): Stripe.Invoice {
  const invoice = openInvoice(tx, id, 'voided')
  const voided = tx.change(invoice, {
    status: 'void',
    auto_advance: false,
    status_transitions: { ...invoice.status_transitions, voided_at: tx.now },
  })
  tx.emit('invoice.voided', voided)
  return voided
}

/** Bills a subscription: the invoice's and the payment's events, then `customer.subscription.updated`. */
export function bill(
  tx: Transaction,
  subscription: Stripe.Subscription,
  input: BillInput,
): Stripe.Subscription {
  const customer = tx.get('customer', subscription.customer as string)
  const sequence = customer.next_invoice_sequence ?? 1
  const invoice = tx.create(
    buildInvoice(tx, {
      subscription,
      customer,
      reason: input.reason,
      period: periodOf(subscription),
      metadata: input.invoiceMetadata ?? {},
      number: `${customer.id.slice(4, 12).toUpperCase()}-${String(sequence).padStart(4, '0')}`,
      ...(input.lines !== undefined && { lines: input.lines }),
    }),
  )
  tx.change(customer, {
    next_invoice_sequence: sequence + 1,
    balance: invoice.ending_balance ?? 0,
  })
  tx.change(subscription, { latest_invoice: invoice.id })
  tx.emit('invoice.created', invoice)
  tx.emit('invoice.finalized', invoice)
  settleInvoice(tx, invoice, input.outcome ?? 'paid')
  return tx.get('subscription', subscription.id)
}

function openInvoice(tx: Transaction, id: string, done: string): Stripe.Invoice {
  const invoice = tx.get('invoice', id)
  if (invoice.status !== 'open')
    throw refused(`This invoice is ${invoice.status}: it cannot be ${done}.`)
  return invoice
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
  const status = statusAfter(subscription, settled)
  tx.emit('customer.subscription.updated', tx.change(subscription, { status }))
  return settled
}

/** What the newest invoice says of a subscription; older ones, and those of what has ended, say nothing. */
function statusAfter(
  { status, latest_invoice: latest }: Stripe.Subscription,
  invoice: Stripe.Invoice,
): Stripe.Subscription.Status {
  if (latest !== invoice.id) return status
  if (invoice.status === 'paid')
    return status === 'incomplete' || status === 'past_due' || status === 'unpaid'
      ? 'active'
      : status
  return status === 'active' || status === 'trialing' ? 'past_due' : status
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
