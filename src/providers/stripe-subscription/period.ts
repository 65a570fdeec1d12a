/**
 * The moments of a subscription, as figures of the object itself: nothing is counted from when it was seen.
 * Since 2025-03-31 the periods stand on the items, before on the subscription; both are read.
 */
import type Stripe from 'stripe'

/** What older versions of the API have on the subscription itself. */
interface OlderPeriod {
  readonly current_period_start?: unknown
  readonly current_period_end?: unknown
}

/** A subscription as it was looked at. */
export type LookedSubscription = Stripe.Subscription & {
  /**
   * The start of the oldest unpaid period in Unix seconds, of one that is past due; null where its invoices name
   * none. Absent where nobody looked at them: in a list, in a test.
   */
  readonly unpaid_since?: number | null
}

type Bound = 'current_period_start' | 'current_period_end'

/**
 * The start of the unpaid period of a subscription that is past due: of the oldest, as its invoices say it,
 * else of the newest.
 */
export function unpaidStart(subscription: LookedSubscription): Date | null {
  return dateOf(subscription.unpaid_since) ?? latest(subscription, 'current_period_start')
}

/**
 * When the subscription ends by itself; null while it does not. Stripe gives the moment as `cancel_at`, which
 * older versions left out for one that ends with its period.
 */
export function endsAt(subscription: Stripe.Subscription): Date | null {
  const at = dateOf(subscription.cancel_at)
  if (at !== null) return at
  return subscription.cancel_at_period_end ? latest(subscription, 'current_period_end') : null
}

/** The earlier of two moments; null is never. */
export function earlier(one: Date | null, other: Date | null): Date | null {
  if (one === null || other === null) return one ?? other
  return one.getTime() <= other.getTime() ? one : other
}

function latest(subscription: Stripe.Subscription, bound: Bound): Date | null {
  const found = [
    (subscription as OlderPeriod)[bound],
    ...subscription.items.data.map((item) => (item as OlderPeriod)[bound]),
  ].flatMap((value) => dateOf(value)?.getTime() ?? [])
  return found.length === 0 ? null : new Date(Math.max(...found))
}

function dateOf(seconds: unknown): Date | null {
  if (typeof seconds !== 'number' || !Number.isSafeInteger(seconds)) return null
  const date = new Date(seconds * 1000)
  return Number.isNaN(date.getTime()) ? null : date
}
