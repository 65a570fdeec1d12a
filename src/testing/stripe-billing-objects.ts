/**
 * Invoices and customers with the fields that Stripe's have, as its package types them.
 */
import type Stripe from 'stripe'
import { defaultCreated } from './stripe-checkout-objects.ts'
import { stripeId } from './stripe-ids.ts'

/** Options of `invoice()`. Amounts are in minor units. */
export interface InvoiceOptions {
  readonly id?: string
  /** The subscription's id; null for an invoice that belongs to none. */
  readonly subscription?: string | null
  /** Which invoice of the subscription this is: each has an id of its own; 1. */
  readonly number?: number
  /** What was paid; 4900. */
  readonly amount?: number
  /** ISO code in lower case; `usd`. */
  readonly currency?: string
  /** Unix seconds; the start of 2026. */
  readonly created?: number
  readonly email?: string
  readonly customer?: string
  readonly livemode?: boolean
  readonly billingReason?: Stripe.Invoice.BillingReason
  /** The invoice's own metadata. */
  readonly metadata?: Stripe.Metadata
  /** The subscription's metadata when the invoice was finalized. */
  readonly subscriptionMetadata?: Stripe.Metadata
}

/** The subscription that `invoice()` assumes when none is given. */
export const defaultSubscription: string = stripeId('sub', 'default')

/** What a plain invoice leaves empty. */
const plainInvoice = {
  account_tax_ids: null,
  application: null,
  automatically_finalizes_at: null,
  custom_fields: null,
  customer_account: null,
  customer_address: null,
  customer_phone: null,
  customer_shipping: null,
  default_payment_method: null,
  default_source: null,
  description: null,
  due_date: null,
  footer: null,
  from_invoice: null,
  last_finalization_error: null,
  latest_revision: null,
  next_payment_attempt: null,
  on_behalf_of: null,
  receipt_number: null,
  rendering: null,
  shipping_cost: null,
  shipping_details: null,
  statement_descriptor: null,
  test_clock: null,
} satisfies Partial<Stripe.Invoice>

/** A paid invoice of a subscription, with one line. */
export function invoice(options: InvoiceOptions = {}): Stripe.Invoice {
  const { amount = 4900, created = defaultCreated, currency = 'usd', livemode = false } = options
  const { subscription = defaultSubscription, number = 1 } = options
  const id = options.id ?? stripeId('in', subscription ?? 'none', number)
  const customer = options.customer ?? stripeId('cus', subscription ?? 'none')
  return {
    id,
    object: 'invoice',
    ...plainInvoice,
    customer_tax_ids: [],
    default_tax_rates: [],
    discounts: [],
    total_discount_amounts: [],
    total_pretax_credit_amounts: [],
    total_taxes: [],
    account_country: 'US',
    account_name: 'Shop Example',
    amount_due: amount,
    amount_overpaid: 0,
    amount_paid: amount,
    amount_remaining: 0,
    amount_shipping: 0,
    attempt_count: 1,
    attempted: true,
    auto_advance: false,
    automatic_tax: {
      disabled_reason: null,
      enabled: false,
      liability: null,
      provider: null,
      status: null,
    },
    billing_reason:
      options.billingReason ?? (number === 1 ? 'subscription_create' : 'subscription_cycle'),
    collection_method: 'charge_automatically',
    created,
    currency,
    customer,
    customer_email: options.email ?? 'ada@example.com',
    customer_name: 'Ada Example',
    customer_tax_exempt: 'none',
    effective_at: created,
    ending_balance: 0,
    hosted_invoice_url: `https://invoice.stripe.com/i/${id}`,
    invoice_pdf: `https://pay.stripe.com/invoice/${id}/pdf`,
    issuer: { type: 'self' },
    lines: {
      object: 'list',
      data: [line(id, subscription, { amount, created, currency, livemode })],
      has_more: false,
      url: `/v1/invoices/${id}/lines`,
    },
    livemode,
    metadata: options.metadata ?? {},
    number: `SHOP-${String(number).padStart(4, '0')}`,
    parent: subscription === null ? null : parent(subscription, options.subscriptionMetadata ?? {}),
    payment_settings: {
      default_mandate: null,
      payment_method_options: null,
      payment_method_types: null,
    },
    period_end: created,
    period_start: created,
    post_payment_credit_notes_amount: 0,
    pre_payment_credit_notes_amount: 0,
    starting_balance: 0,
    status: 'paid',
    status_transitions: {
      finalized_at: created,
      marked_uncollectible_at: null,
      paid_at: created + 1,
      voided_at: null,
    },
    subtotal: amount,
    subtotal_excluding_tax: amount,
    total: amount,
    total_excluding_tax: amount,
    webhooks_delivered_at: created,
  }
}

function parent(subscription: string, metadata: Stripe.Metadata): Stripe.Invoice.Parent {
  return {
    quote_details: null,
    subscription_details: { metadata, subscription },
    type: 'subscription_details',
  }
}

function line(
  invoiceId: string,
  subscription: string | null,
  facts: { amount: number; created: number; currency: string; livemode: boolean },
): Stripe.InvoiceLineItem {
  return {
    id: stripeId('il', invoiceId),
    object: 'line_item',
    amount: facts.amount,
    currency: facts.currency,
    description: '1 × Credits (each month)',
    discount_amounts: [],
    discountable: true,
    discounts: [],
    invoice: invoiceId,
    livemode: facts.livemode,
    metadata: {},
    parent:
      subscription === null
        ? null
        : {
            invoice_item_details: null,
            subscription_item_details: {
              invoice_item: null,
              proration: false,
              proration_details: { credited_items: null },
              subscription,
              subscription_item: stripeId('si', subscription),
            },
            type: 'subscription_item_details',
          },
    period: { end: facts.created + 30 * 86_400, start: facts.created },
    pretax_credit_amounts: [],
    pricing: null,
    quantity: 1,
    quantity_decimal: null,
    subscription,
    subtotal: facts.amount,
    taxes: [],
  }
}

/** Options of `customer()`. */
export interface CustomerOptions {
  readonly id?: string
  readonly email?: string | null
  readonly name?: string | null
  /** Unix seconds; the start of 2026. */
  readonly created?: number
  readonly livemode?: boolean
  readonly metadata?: Stripe.Metadata
}

/** A customer. */
export function customer(options: CustomerOptions = {}): Stripe.Customer {
  const { email = 'ada@example.com', name = 'Ada Example' } = options
  const id = options.id ?? stripeId('cus', email ?? 'none')
  return {
    id,
    object: 'customer',
    address: null,
    balance: 0,
    created: options.created ?? defaultCreated,
    currency: 'usd',
    default_source: null,
    delinquent: false,
    description: null,
    discount: null,
    email,
    invoice_prefix: id.slice(-8).toUpperCase(),
    invoice_settings: {
      custom_fields: null,
      default_payment_method: null,
      footer: null,
      rendering_options: null,
    },
    livemode: options.livemode ?? false,
    metadata: options.metadata ?? {},
    name,
    next_invoice_sequence: 2,
    phone: null,
    preferred_locales: [],
    shipping: null,
    tax_exempt: 'none',
    test_clock: null,
  }
}
