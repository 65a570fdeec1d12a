/**
 * What a customer changes about a running subscription: price and seats with their proration, a cancellation
 * at the period's end and its withdrawal, a pause. The objects change at once; events say so one by one.
 */
import type Stripe from 'stripe'
import { invalidRequest, refused } from './api-error.ts'
import { buildSubscriptionItem, itemPrice } from './billing-objects.ts'
import { after, inPeriod, periodOf } from './billing-period.ts'
import { hasEnded, newItem } from './billing-verbs.ts'
import type { LineInput } from './invoice-objects.ts'
import { bill } from './invoice-verbs.ts'
import { mergeMetadata } from './metadata.ts'
import type { Metadata } from './object-kinds.ts'
import type { Transaction } from './transaction.ts'

/** One change to the items of a subscription. */
export interface ItemChange {
  /** Which item; a new one when absent. */
  id?: string
  price?: string
  quantity?: number
  /** Takes the item away. */
  deleted?: boolean
}

/** A change to a subscription. */
export interface ChangeInput {
  /** Another price for the first item. */
  price?: string
  /** So many of the first item. */
  quantity?: number
  items?: readonly ItemChange[]
  metadata?: Metadata | ''
  /**
   * `invoice` bills the difference of the rest of the period at once (`always_invoice`); `none` bills nothing,
   * and is what is done when absent.
   */
  proration?: 'invoice' | 'none'
  /** The share of the period that has gone by, from 0 to 1; by the clock when absent. */
  elapsed?: number
  /** How the invoice's payment goes. */
  outcome?: 'paid' | 'failed'
}

/**
 * Changes price, seats or items: `customer.subscription.updated`, and where the difference is billed, the
 * invoice's and the payment's events and a second `customer.subscription.updated`.
 */
export function changeSubscription(
  tx: Transaction,
  id: string,
  input: ChangeInput,
): Stripe.Subscription {
  const before = running(tx, id)
  const first = before.items.data[0]!
  const { price, quantity } = input
  const changes: ItemChange[] = [...(input.items ?? [])]
  if (price !== undefined || quantity !== undefined)
    changes.push({
      id: first.id,
      ...(price !== undefined && { price }),
      ...(quantity !== undefined && { quantity }),
    })
  const data = changes.reduce(
    (items, change) => changeItems(tx, before, items, change),
    [...before.items.data],
  )
  if (data.length === 0) throw refused('A subscription must have at least one active item.')
  const changed = tx.change(before, {
    items: { ...before.items, data },
    ...(input.metadata !== undefined && {
      metadata: mergeMetadata(before.metadata, input.metadata),
    }),
  })
  tx.emit('customer.subscription.updated', changed)
  if (input.proration !== 'invoice' || before.status === 'trialing') return changed
  const lines = prorationLines(before, changed, momentOf(tx, before, input.elapsed))
  if (lines.length === 0) return changed
  const { outcome } = input
  return bill(tx, changed, { reason: 'subscription_update', lines, ...(outcome && { outcome }) })
}

/** It will end with its period, or (`false`) go on after all: `customer.subscription.updated`. */
export function cancelAtPeriodEnd(tx: Transaction, id: string, wanted = true): Stripe.Subscription {
  const subscription = running(tx, id)
  const changed = tx.change(subscription, {
    cancel_at_period_end: wanted,
    cancel_at: wanted ? periodOf(subscription).end : null,
    canceled_at: wanted ? tx.now : null,
    cancellation_details: {
      comment: null,
      feedback: null,
      feedback_option: null,
      reason: wanted ? 'cancellation_requested' : null,
    },
  })
  tx.emit('customer.subscription.updated', changed)
  return changed
}

/** Stops service and billing, as when a trial ends without a card: `customer.subscription.updated`, `…paused`. */
export function pauseSubscription(tx: Transaction, id: string): Stripe.Subscription {
  const subscription = running(tx, id)
  if (subscription.status !== 'active' && subscription.status !== 'trialing')
    throw refused(`A subscription that is ${subscription.status} is not paused.`)
  const paused = tx.change(subscription, { status: 'paused' })
  tx.emit('customer.subscription.updated', paused)
  tx.emit('customer.subscription.paused', paused)
  return paused
}

/**
 * Ends a pause. A new period begins where the paused one would have ended, and is billed:
 * `customer.subscription.updated`, `…resumed`. Without a payment it stays paused.
 */
export function resumeSubscription(
  tx: Transaction,
  id: string,
  input: { outcome?: 'paid' | 'failed' } = {},
): Stripe.Subscription {
  const subscription = tx.get('subscription', id)
  if (subscription.status !== 'paused')
    throw refused(`A subscription that is ${subscription.status} is not resumed.`)
  const start = periodOf(subscription).end
  const end = after(start, subscription.items.data[0]!.price)
  const moved = tx.change(subscription, inPeriod(subscription, { start, end }))
  const billed = bill(tx, moved, { reason: 'subscription_update', ...input })
  if (tx.get('invoice', billed.latest_invoice as string).status !== 'paid') return billed
  const active = tx.change(billed, { status: 'active' })
  tx.emit('customer.subscription.updated', active)
  tx.emit('customer.subscription.resumed', active)
  return active
}

function running(tx: Transaction, id: string): Stripe.Subscription {
  const subscription = tx.get('subscription', id)
  if (hasEnded(subscription))
    throw refused(`A subscription that is ${subscription.status} can only change its metadata.`)
  return subscription
}

function changeItems(
  tx: Transaction,
  subscription: Stripe.Subscription,
  items: Stripe.SubscriptionItem[],
  change: ItemChange,
): Stripe.SubscriptionItem[] {
  if (change.id === undefined) {
    const { price } = change
    if (price === undefined) throw invalidRequest('Missing required param: items[0][price].')
    const { quantity } = change
    const input = newItem(tx, { price, ...(quantity !== undefined && { quantity }) }, 0)
    return [...items, buildSubscriptionItem(tx, subscription.id, input, periodOf(subscription))]
  }
  const item = items.find((each) => each.id === change.id)
  if (!item)
    throw invalidRequest(`No such subscription item: '${change.id}'`, {
      code: 'resource_missing',
      param: 'items[0][id]',
    })
  if (change.deleted) return items.filter((each) => each !== item)
  const priced =
    change.price === undefined
      ? item
      : { ...item, ...itemPrice(newItem(tx, { price: change.price }, 0).price) }
  const changed = { ...priced, quantity: change.quantity ?? item.quantity ?? 1 }
  return items.map((each) => (each === item ? changed : each))
}

/** The moment of a change, in Unix seconds: within the period. */
function momentOf(tx: Transaction, subscription: Stripe.Subscription, elapsed?: number): number {
  const { start, end } = periodOf(subscription)
  const moment = elapsed === undefined ? tx.now : Math.round(start + (end - start) * elapsed)
  return Math.min(end, Math.max(start, moment))
}

/** What was paid for and is no longer used comes back; what is used from now on is billed. */
function prorationLines(
  before: Stripe.Subscription,
  after: Stripe.Subscription,
  from: number,
): LineInput[] {
  const { start, end } = periodOf(before)
  const rest = (end - from) / (end - start)
  const isIn = (list: readonly Stripe.SubscriptionItem[], item: Stripe.SubscriptionItem): boolean =>
    list.some(
      (each) =>
        each.id === item.id && each.price.id === item.price.id && each.quantity === item.quantity,
    )
  const line = (item: Stripe.SubscriptionItem, sign: 1 | -1, text: string): LineInput => ({
    item,
    amount: sign * Math.round((item.price.unit_amount ?? 0) * (item.quantity ?? 1) * rest),
    description: `${text} on ${item.quantity ?? 1} × ${item.price.nickname ?? 'plan'}`,
    from,
  })
  const old = before.items.data
  const now = after.items.data
  return [
    ...old.filter((item) => !isIn(now, item)).map((item) => line(item, -1, 'Unused time')),
    ...now.filter((item) => !isIn(old, item)).map((item) => line(item, 1, 'Remaining time')),
  ].filter((each) => each.amount !== 0)
}
