/**
 * Subscriptions, their prices and what connects an invoice with its payment, with the fields that Stripe's
 * have, as its package types them.
 */
import type Stripe from 'stripe'
import { defaultSubscription } from './stripe-billing-objects.ts'
import { defaultCreated } from './stripe-checkout-objects.ts'
import { stripeId } from './stripe-ids.ts'

/** One price of a subscription, and how many of it. */
export interface SubscriptionItemOptions {
  /** The price's lookup key; null for a price without one. */
  readonly price?: string | null
  /** The price's id, where it is not the one that follows from the lookup key. */
  readonly priceId?: string
  /** 1. */
  readonly quantity?: number
  /** Minor units each; 4900. */
  readonly unitAmount?: number
}

/** Options of `subscription()`. Moments are Unix seconds. */
export interface SubscriptionOptions {
  readonly id?: string
  /** `active`. */
  readonly status?: Stripe.Subscription.Status
  readonly metadata?: Stripe.Metadata
  /** The lookup key of its only price; `pro_monthly`. */
  readonly price?: string
  /** How many of its only price; 1. */
  readonly quantity?: number
  /** Its prices, where there are several, or more to say. */
  readonly items?: readonly SubscriptionItemOptions[]
  readonly customer?: string
  /** The start of 2026. */
  readonly created?: number
  /** The start of the period; when it was created. */
  readonly periodStart?: number
  /** The end of the period; 30 days after its start. */
  readonly periodEnd?: number
  readonly cancelAtPeriodEnd?: boolean
  readonly cancelAt?: number | null
  readonly trialEnd?: number | null
  readonly latestInvoice?: string | null
  readonly livemode?: boolean
}

/** Options of `invoicePayment()`. Amounts are in minor units. */
export interface InvoicePaymentOptions {
  readonly id?: string
  /** The invoice's id. */
  readonly invoice?: string
  /** The intent that paid it; one of its own. */
  readonly paymentIntent?: string
  /** 4900. */
  readonly amount?: number
  readonly currency?: string
  /** Unix seconds; the start of 2026. */
  readonly created?: number
  readonly livemode?: boolean
}

/** What a plain subscription leaves empty. */
const plainSubscription = {
  application: null,
  application_fee_percent: null,
  billing_cycle_anchor_config: null,
  billing_thresholds: null,
  customer_account: null,
  days_until_due: null,
  default_payment_method: null,
  default_source: null,
  description: null,
  managed_payments: null,
  next_pending_invoice_item_invoice: null,
  on_behalf_of: null,
  pause_collection: null,
  pending_invoice_item_interval: null,
  pending_setup_intent: null,
  pending_update: null,
  schedule: null,
  test_clock: null,
  transfer_data: null,
} satisfies Partial<Stripe.Subscription>

/** A subscription: active, of one price, in its first period. */
export function subscription(options: SubscriptionOptions = {}): Stripe.Subscription {
  const { id = defaultSubscription, created = defaultCreated, livemode = false } = options
  const { status = 'active', trialEnd = null, cancelAtPeriodEnd = false } = options
  const { price = 'pro_monthly', quantity = 1, periodStart = created } = options
  const period = { start: periodStart, end: options.periodEnd ?? periodStart + 30 * 86_400 }
  const items = options.items ?? [{ price, quantity }]
  const hasEnded = status === 'canceled' || status === 'incomplete_expired'
  const isCanceled = cancelAtPeriodEnd || status === 'canceled'
  return {
    id,
    object: 'subscription',
    ...plainSubscription,
    automatic_tax: { disabled_reason: null, enabled: false, liability: null },
    billing_cycle_anchor: created,
    billing_mode: { flexible: { proration_discounts: 'included' }, type: 'flexible' },
    billing_schedules: [],
    cancel_at: options.cancelAt ?? (cancelAtPeriodEnd ? period.end : null),
    cancel_at_period_end: cancelAtPeriodEnd,
    canceled_at: isCanceled ? created : null,
    cancellation_details: {
      comment: null,
      feedback: null,
      feedback_option: null,
      reason: isCanceled ? 'cancellation_requested' : null,
    },
    collection_method: 'charge_automatically',
    created,
    currency: 'usd',
    customer: options.customer ?? stripeId('cus', id),
    default_tax_rates: [],
    discounts: [],
    ended_at: hasEnded ? created : null,
    invoice_settings: {
      account_tax_ids: null,
      custom_fields: null,
      description: null,
      footer: null,
      issuer: { type: 'self' },
    },
    items: {
      object: 'list',
      data: items.map((item, at) => itemOf(id, at, item, { created, livemode, ...period })),
      has_more: false,
      url: `/v1/subscription_items?subscription=${id}`,
    },
    latest_invoice:
      options.latestInvoice === undefined ? stripeId('in', id, 1) : options.latestInvoice,
    livemode,
    metadata: options.metadata ?? {},
    payment_settings: {
      payment_method_options: null,
      payment_method_types: null,
      save_default_payment_method: 'off',
    },
    start_date: created,
    status,
    trial_end: trialEnd,
    trial_settings: {
      end_behavior: { billing_cycle_anchor: null, missing_payment_method: 'create_invoice' },
    },
    trial_start: trialEnd === null ? null : created,
  }
}

interface ItemFacts {
  readonly created: number
  readonly livemode: boolean
  readonly start: number
  readonly end: number
}

function itemOf(
  subscriptionId: string,
  at: number,
  options: SubscriptionItemOptions,
  { created, livemode, start, end }: ItemFacts,
): Stripe.SubscriptionItem {
  const { price: lookupKey = 'pro_monthly', quantity = 1, unitAmount = 4900 } = options
  const id = options.priceId ?? stripeId('price', lookupKey ?? `${subscriptionId} ${at}`)
  const product = stripeId('prod', id)
  // on the wire it is a string; the SDK makes its decimal type of it
  const decimal = String(unitAmount) as unknown as Stripe.Decimal
  const shared = {
    id,
    active: true,
    billing_scheme: 'per_unit' as const,
    created,
    currency: 'usd',
    livemode,
    metadata: {},
    nickname: null,
    product,
    tiers_mode: null,
  }
  return {
    id: stripeId('si', subscriptionId, at),
    object: 'subscription_item',
    billing_thresholds: null,
    created,
    current_period_end: end,
    current_period_start: start,
    current_trial: null,
    discounts: [],
    metadata: {},
    plan: {
      ...shared,
      object: 'plan',
      amount: unitAmount,
      amount_decimal: decimal,
      interval: 'month',
      interval_count: 1,
      meter: null,
      transform_usage: null,
      trial_period_days: null,
      usage_type: 'licensed',
    },
    price: {
      ...shared,
      object: 'price',
      custom_unit_amount: null,
      lookup_key: lookupKey,
      recurring: {
        interval: 'month',
        interval_count: 1,
        meter: null,
        trial_period_days: null,
        usage_type: 'licensed',
      },
      tax_behavior: 'unspecified',
      transform_quantity: null,
      type: 'recurring',
      unit_amount: unitAmount,
      unit_amount_decimal: decimal,
    },
    quantity,
    subscription: subscriptionId,
    tax_rates: [],
  }
}

/** What connects an invoice with the payment intent that paid it. */
export function invoicePayment(options: InvoicePaymentOptions = {}): Stripe.InvoicePayment {
  const { invoice = stripeId('in', defaultSubscription, 1), created = defaultCreated } = options
  const { amount = 4900, currency = 'usd', livemode = false } = options
  return {
    id: options.id ?? stripeId('inpay', invoice),
    object: 'invoice_payment',
    amount_paid: amount,
    amount_requested: amount,
    created,
    currency,
    invoice,
    is_default: true,
    livemode,
    payment: {
      payment_intent: options.paymentIntent ?? stripeId('pi', invoice),
      type: 'payment_intent',
    },
    status: 'paid',
    status_transitions: { canceled_at: null, paid_at: created },
  }
}
