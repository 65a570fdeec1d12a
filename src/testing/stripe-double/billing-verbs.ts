/**
 * How a subscription begins, goes on and ends. Each verb makes the events that Stripe makes, some of them
 * within one second; every event carries the object as it was at that moment.
 */
import type Stripe from 'stripe'
import { invalidRequest, refused } from './api-error.ts'
import { buildSubscription, type ItemInput } from './billing-objects.ts'
import { after, inPeriod, periodOf } from './billing-period.ts'
import { bill, voidInvoice } from './invoice-verbs.ts'
import type { Metadata } from './object-kinds.ts'
import type { Transaction } from './transaction.ts'

/** One price of a subscription, and how many of it. */
export interface NewItem {
  price: string
  /** 1 when absent. */
  quantity?: number
}

/** What a subscription is about. */
export interface CreateSubscriptionInput extends NewItem {
  customer: string
  /** Further prices, billed together with the first. */
  more?: readonly NewItem[]
  /** Metadata of the subscription; invoices show it under `parent.subscription_details`. */
  metadata?: Metadata
  /** Metadata of the first invoice itself. */
  invoiceMetadata?: Metadata
  /** Nothing is billed for so many days, and the subscription is `trialing`. */
  trialDays?: number
  /** When its first period began, in seconds since 1970; now when absent, else as a test clock would have it. */
  start?: number
  /** How the first payment goes; `failed` leaves the subscription `incomplete`. */
  outcome?: 'paid' | 'failed'
}

/** How the billing of a period goes. */
export interface RenewInput {
  /** `paid` when absent; `failed` leaves the invoice open and the subscription past due. */
  outcome?: 'paid' | 'failed'
  invoiceMetadata?: Metadata
}

/**
 * Starts a subscription and bills its first period: `customer.subscription.created`, the invoice's and
 * the payment's events, `invoice.paid`, `customer.subscription.updated` (incomplete → active). A trial is
 * billed by an invoice over nothing.
 */
export function createSubscription(
  tx: Transaction,
  input: CreateSubscriptionInput,
): Stripe.Subscription {
  tx.get('customer', input.customer, 'customer')
  const items = [input, ...(input.more ?? [])].map((item, at) => newItem(tx, item, at))
  const start = input.start ?? tx.now
  const trialEnd = input.trialDays === undefined ? null : start + input.trialDays * 86_400
  const subscription = tx.create(
    buildSubscription(tx, {
      customer: input.customer,
      items,
      metadata: input.metadata ?? {},
      period: { start, end: trialEnd ?? after(start, items[0]!.price) },
      trialEnd,
    }),
  )
  tx.emit('customer.subscription.created', subscription)
  return bill(tx, subscription, {
    reason: 'subscription_create',
    ...(input.outcome !== undefined && { outcome: input.outcome }),
    ...(input.invoiceMetadata && { invoiceMetadata: input.invoiceMetadata }),
    ...(trialEnd !== null && { lines: trialLines(subscription) }),
  })
}

/** What a price and a quantity make; prices must be recurring. */
export function newItem(tx: Transaction, item: NewItem, at: number): ItemInput {
  const param = `items[${at}][price]`
  const price = tx.get('price', item.price, param)
  if (!price.recurring) throw refused('The price is not recurring.', { param })
  return { price, quantity: item.quantity ?? 1 }
}

/**
 * The period ends. Items move on (a trial becomes `active`), an invoice bills them, and is paid or not: of a
 * failure, the first of two `customer.subscription.updated` still says `active`. A subscription that was to be
 * canceled then ends instead: `customer.subscription.deleted`.
 */
export function renewSubscription(
  tx: Transaction,
  id: string,
  input: RenewInput = {},
): Stripe.Subscription {
  const subscription = tx.get('subscription', id)
  const { status } = subscription
  if (status !== 'active' && status !== 'trialing' && status !== 'past_due')
    throw refused(`A subscription that is ${status} is not renewed.`)
  if (subscription.cancel_at_period_end) return end(tx, subscription, 'cancellation_requested')
  const start = periodOf(subscription).end
  const moved = tx.change(subscription, {
    ...inPeriod(subscription, { start, end: after(start, subscription.items.data[0]!.price) }),
    ...(status === 'trialing' && { status: 'active' as const }),
  })
  if (input.outcome === 'failed') tx.emit('customer.subscription.updated', moved)
  return bill(tx, moved, { reason: 'subscription_cycle', ...input })
}

/** Ends a subscription now: `customer.subscription.deleted`. */
export function cancelSubscription(tx: Transaction, id: string): Stripe.Subscription {
  const subscription = tx.get('subscription', id)
  if (hasEnded(subscription))
    throw invalidRequest(`No such subscription: '${id}'`, { code: 'resource_missing', param: 'id' })
  return end(tx, subscription, 'cancellation_requested')
}

/**
 * The last attempt to collect what is past due fails. As the account's settings say, the subscription stays as
 * `unpaid` (`customer.subscription.updated`) or ends (`customer.subscription.deleted`); its invoice stays open.
 */
export function giveUpPayment(
  tx: Transaction,
  id: string,
  becomes: 'unpaid' | 'canceled',
): Stripe.Subscription {
  const subscription = tx.get('subscription', id)
  if (subscription.status !== 'past_due')
    throw refused(`A subscription that is ${subscription.status} is not past due.`)
  if (becomes === 'canceled') return end(tx, subscription, 'payment_failed')
  const unpaid = tx.change(subscription, { status: 'unpaid' })
  tx.emit('customer.subscription.updated', unpaid)
  return unpaid
}

/** A day has passed without its first payment: `invoice.voided`, `customer.subscription.updated` (incomplete_expired). */
export function expireSubscription(tx: Transaction, id: string): Stripe.Subscription {
  const subscription = tx.get('subscription', id)
  if (subscription.status !== 'incomplete')
    throw refused(`A subscription that is ${subscription.status} does not expire.`)
  voidInvoice(tx, subscription.latest_invoice as string)
  const expired = tx.change(subscription, { status: 'incomplete_expired', ended_at: tx.now })
  tx.emit('customer.subscription.updated', expired)
  return expired
}

/** Says that a trial ends soon: `customer.subscription.trial_will_end`, three days before. */
export function announceTrialEnd(tx: Transaction, id: string): Stripe.Subscription {
  const subscription = tx.get('subscription', id)
  if (subscription.status !== 'trialing') throw refused('The subscription is not in a trial.')
  tx.emit('customer.subscription.trial_will_end', subscription)
  return subscription
}

/** Whether nothing can happen to a subscription any more. */
export function hasEnded({ status }: Stripe.Subscription): boolean {
  return status === 'canceled' || status === 'incomplete_expired'
}

function end(
  tx: Transaction,
  subscription: Stripe.Subscription,
  reason: Stripe.Subscription.CancellationDetails.Reason,
): Stripe.Subscription {
  const canceled = tx.change(subscription, {
    status: 'canceled',
    canceled_at: subscription.canceled_at ?? tx.now,
    ended_at: tx.now,
    cancellation_details: { ...subscription.cancellation_details, ...noComment, reason },
  })
  tx.emit('customer.subscription.deleted', canceled)
  return canceled
}

const noComment = { comment: null, feedback: null, feedback_option: null }

function trialLines(subscription: Stripe.Subscription) {
  return subscription.items.data.map((item) => ({ item, amount: 0, description: 'Trial period' }))
}
