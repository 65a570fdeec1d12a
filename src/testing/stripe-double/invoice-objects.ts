/**
 * Invoices and what connects them with their payments, as Stripe's API writes them since 2025: an
 * invoice names its subscription under `parent`, and only the invoice payment knows both the invoice
 * and the payment intent.
 */
import type Stripe from 'stripe'
import { list, type Period } from './billing-objects.ts'
import type { Metadata } from './object-kinds.ts'
import type { Transaction } from './transaction.ts'

/** Why a subscription is billed. */
export type BillingReason = 'subscription_create' | 'subscription_cycle' | 'subscription_update'

/** One line of an invoice. */
export interface LineInput {
  item: Stripe.SubscriptionItem
  /** Minor units; below zero for what comes back. */
  amount: number
  description: string
  /** Where it bills a part of the period only: the moment in Unix seconds from which it does. */
  from?: number
}

/** What an invoice of a subscription asks for. */
export interface InvoiceInput {
  subscription: Stripe.Subscription
  customer: Stripe.Customer
  reason: BillingReason
  period: Period
  /** The invoice's own metadata; that of the subscription stands under `parent`. */
  metadata: Metadata
  number: string
  /** Every item for the whole period when absent. */
  lines?: readonly LineInput[]
}

/** A new invoice, finalized and open. */
export function buildInvoice(tx: Transaction, input: InvoiceInput): Stripe.Invoice {
  const { subscription, customer } = input
  const id = tx.id('invoice')
  const lines = (input.lines ?? subscription.items.data.map(wholePeriod)).map((line) =>
    buildInvoiceLine(tx, id, line, input.period),
  )
  const total = lines.reduce((sum, line) => sum + line.amount, 0)
  return {
    id,
    object: 'invoice',
    account_country: 'US',
    account_name: 'Simulated shop',
    account_tax_ids: null,
    ...amountsOf(total, customer.balance),
    application: null,
    attempt_count: 0,
    attempted: false,
    auto_advance: true,
    automatic_tax: {
      disabled_reason: null,
      enabled: false,
      liability: null,
      provider: null,
      status: null,
    },
    automatically_finalizes_at: null,
    billing_reason: input.reason,
    collection_method: 'charge_automatically',
    created: tx.now,
    currency: subscription.currency,
    custom_fields: null,
    ...billedCustomer(customer),
    default_payment_method: null,
    default_source: null,
    default_tax_rates: [],
    description: null,
    discounts: [],
    due_date: null,
    effective_at: tx.now,
    footer: null,
    from_invoice: null,
    hosted_invoice_url: null,
    invoice_pdf: null,
    issuer: { type: 'self' },
    last_finalization_error: null,
    latest_revision: null,
    lines: list(`/v1/invoices/${id}/lines`, lines),
    livemode: tx.livemode,
    metadata: input.metadata,
    next_payment_attempt: null,
    number: input.number,
    on_behalf_of: null,
    parent: {
      quote_details: null,
      subscription_details: { metadata: subscription.metadata, subscription: subscription.id },
      type: 'subscription_details',
    },
    payment_settings: {
      default_mandate: null,
      payment_method_options: null,
      payment_method_types: null,
    },
    period_end: input.period.start,
    period_start: input.period.start,
    receipt_number: null,
    rendering: null,
    shipping_details: null,
    statement_descriptor: null,
    status: 'open',
    status_transitions: {
      finalized_at: tx.now,
      marked_uncollectible_at: null,
      paid_at: null,
      voided_at: null,
    },
    test_clock: null,
    webhooks_delivered_at: tx.now,
  }
}

/** An invoice that nobody has paid anything of. What the customer has over (a balance below zero) is used first. */
function amountsOf(total: number, balance: number) {
  const due = Math.max(0, total + balance)
  return {
    amount_due: due,
    amount_overpaid: 0,
    amount_paid: 0,
    amount_remaining: due,
    amount_shipping: 0,
    ending_balance: Math.min(0, total + balance),
    post_payment_credit_notes_amount: 0,
    pre_payment_credit_notes_amount: 0,
    shipping_cost: null,
    starting_balance: balance,
    subtotal: total,
    subtotal_excluding_tax: total,
    total,
    total_discount_amounts: [],
    total_excluding_tax: total,
    total_pretax_credit_amounts: [],
    total_taxes: [],
  }
}

/** The customer as an invoice copies it at the moment it is made. */
function billedCustomer(customer: Stripe.Customer) {
  return {
    customer: customer.id,
    customer_account: null,
    customer_address: null,
    customer_email: customer.email,
    customer_name: customer.name ?? null,
    customer_phone: null,
    customer_shipping: null,
    customer_tax_exempt: 'none' as const,
    customer_tax_ids: [],
  }
}

function wholePeriod(item: Stripe.SubscriptionItem): LineInput {
  return {
    item,
    amount: (item.price.unit_amount ?? 0) * (item.quantity ?? 1),
    description: `${item.quantity ?? 1} × ${item.price.nickname ?? 'plan'}`,
  }
}

function buildInvoiceLine(
  tx: Transaction,
  invoice: string,
  { item, amount, description, from }: LineInput,
  period: Period,
): Stripe.InvoiceLineItem {
  return {
    id: tx.id('invoice_line'),
    object: 'line_item',
    amount,
    currency: item.price.currency,
    description,
    discount_amounts: [],
    discountable: true,
    discounts: [],
    invoice,
    livemode: tx.livemode,
    metadata: {},
    parent: {
      invoice_item_details: null,
      subscription_item_details: {
        invoice_item: null,
        proration: from !== undefined,
        proration_details: { credited_items: null },
        subscription: item.subscription,
        subscription_item: item.id,
      },
      type: 'subscription_item_details',
    },
    period: from === undefined ? period : { start: from, end: period.end },
    pretax_credit_amounts: [],
    pricing: {
      price_details: { price: item.price.id, product: item.price.product as string },
      type: 'price_details',
      unit_amount_decimal: item.price.unit_amount_decimal,
    },
    quantity: item.quantity ?? 1,
    quantity_decimal: String(item.quantity ?? 1) as unknown as Stripe.Decimal,
    subscription: item.subscription,
    subtotal: amount,
    taxes: [],
  }
}

/** The bridge between an invoice and the payment intent that pays it. */
export function buildInvoicePayment(
  tx: Transaction,
  invoice: Stripe.Invoice,
  intent: string,
): Stripe.InvoicePayment {
  return {
    id: tx.id('invoice_payment'),
    object: 'invoice_payment',
    amount_paid: null,
    amount_requested: invoice.amount_due,
    created: tx.now,
    currency: invoice.currency,
    invoice: invoice.id,
    is_default: true,
    livemode: tx.livemode,
    payment: { payment_intent: intent, type: 'payment_intent' },
    status: 'open',
    status_transitions: { canceled_at: null, paid_at: null },
  }
}
