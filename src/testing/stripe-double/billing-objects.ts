/**
 * Subscriptions as Stripe's API writes them since 2025: the periods stand on the items.
 */
import type Stripe from 'stripe'
import type { Metadata } from './object-kinds.ts'
import type { Transaction } from './transaction.ts'

/** A period of a subscription, in seconds since 1970. */
export interface Period {
  start: number
  end: number
}

/** A price and how many of it. */
export interface ItemInput {
  price: Stripe.Price
  quantity: number
}

/** A new subscription: `incomplete` until its first invoice is paid, or in its trial. */
export function buildSubscription(
  tx: Transaction,
  input: {
    customer: string
    /** At least one. */
    items: readonly ItemInput[]
    metadata: Metadata
    period: Period
    /** In seconds since 1970; null without a trial. */
    trialEnd: number | null
  },
): Stripe.Subscription {
  const id = tx.id('subscription')
  return {
    id,
    object: 'subscription',
    application: null,
    application_fee_percent: null,
    automatic_tax: { disabled_reason: null, enabled: false, liability: null },
    billing_cycle_anchor: input.period.start,
    billing_cycle_anchor_config: null,
    billing_mode: { flexible: { proration_discounts: 'included' }, type: 'flexible' },
    billing_schedules: [],
    billing_thresholds: null,
    cancel_at: null,
    cancel_at_period_end: false,
    canceled_at: null,
    cancellation_details: { comment: null, feedback: null, feedback_option: null, reason: null },
    collection_method: 'charge_automatically',
    created: tx.now,
    currency: input.items[0]!.price.currency,
    customer: input.customer,
    customer_account: null,
    days_until_due: null,
    default_payment_method: null,
    default_source: null,
    default_tax_rates: [],
    description: null,
    discounts: [],
    ended_at: null,
    invoice_settings: {
      account_tax_ids: null,
      custom_fields: null,
      description: null,
      footer: null,
      issuer: { type: 'self' },
    },
    items: list(
      `/v1/subscription_items?subscription=${id}`,
      input.items.map((item) => buildSubscriptionItem(tx, id, item, input.period)),
    ),
    latest_invoice: null,
    livemode: tx.livemode,
    managed_payments: null,
    metadata: input.metadata,
    next_pending_invoice_item_invoice: null,
    on_behalf_of: null,
    pause_collection: null,
    payment_settings: {
      payment_method_options: null,
      payment_method_types: null,
      save_default_payment_method: 'off',
    },
    pending_invoice_item_interval: null,
    pending_setup_intent: null,
    pending_update: null,
    schedule: null,
    start_date: input.period.start,
    status: input.trialEnd === null ? 'incomplete' : 'trialing',
    test_clock: null,
    transfer_data: null,
    trial_end: input.trialEnd,
    trial_settings: {
      end_behavior: { billing_cycle_anchor: null, missing_payment_method: 'create_invoice' },
    },
    trial_start: input.trialEnd === null ? null : input.period.start,
  }
}

/** A new item of a subscription. */
export function buildSubscriptionItem(
  tx: Transaction,
  subscription: string,
  { price, quantity }: ItemInput,
  period: Period,
): Stripe.SubscriptionItem {
  return {
    id: tx.id('subscription_item'),
    object: 'subscription_item',
    billing_thresholds: null,
    created: tx.now,
    current_period_end: period.end,
    current_period_start: period.start,
    current_trial: null,
    discounts: [],
    metadata: {},
    ...itemPrice(price),
    quantity,
    subscription,
    tax_rates: [],
  }
}

/** The fields of an item that its price fills. */
export function itemPrice(price: Stripe.Price): Pick<Stripe.SubscriptionItem, 'plan' | 'price'> {
  return { plan: planOf(price), price }
}

/** The older form of a recurring price, which items still carry. */
function planOf(price: Stripe.Price): Stripe.Plan {
  return {
    id: price.id,
    object: 'plan',
    active: price.active,
    amount: price.unit_amount,
    amount_decimal: price.unit_amount_decimal,
    billing_scheme: 'per_unit',
    created: price.created,
    currency: price.currency,
    interval: price.recurring?.interval ?? 'month',
    interval_count: price.recurring?.interval_count ?? 1,
    livemode: price.livemode,
    metadata: {},
    meter: null,
    nickname: price.nickname,
    product: price.product as string,
    tiers_mode: null,
    transform_usage: null,
    trial_period_days: null,
    usage_type: 'licensed',
  }
}

/** A whole list in Stripe's envelope. */
export function list<T>(url: string, data: T[]): Stripe.ApiList<T> {
  return { object: 'list', data, has_more: false, url }
}
