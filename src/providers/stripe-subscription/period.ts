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

type Bound = 'current_period_start' | 'current_period_end'

/** The start of the newest period: of the unpaid one, while a subscription is past due. */
export function periodStart(subscription: Stripe.Subscription): Date | null {
  return latest(subscription, 'current_period_start')
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
