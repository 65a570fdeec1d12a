/**
 * Periods of a subscription, in seconds since 1970: each begins where the one before it ended, so that a
 * run of a few seconds lives through months.
 */
import type Stripe from 'stripe'
import type { Period } from './billing-objects.ts'

/** The period that the first item stands in; all items share it. */
export function periodOf(subscription: Stripe.Subscription): Period {
  const item = subscription.items.data[0]!
  return { start: item.current_period_start, end: item.current_period_end }
}

/** The end of a period that starts at `seconds`, in UTC; a month's day is cut to the month's length. */
export function after(seconds: number, price: Stripe.Price): number {
  const date = new Date(seconds * 1000)
  const interval = price.recurring?.interval ?? 'month'
  const count = price.recurring?.interval_count ?? 1
  if (interval === 'day' || interval === 'week')
    return seconds + (interval === 'day' ? 1 : 7) * count * 86_400
  const day = date.getUTCDate()
  date.setUTCDate(1)
  date.setUTCMonth(date.getUTCMonth() + (interval === 'month' ? 1 : 12) * count)
  const lastDay = new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate()
  date.setUTCDate(Math.min(day, lastDay))
  return Math.floor(date.getTime() / 1000)
}

/** The subscription with all of its items in this period. */
export function inPeriod(
  subscription: Stripe.Subscription,
  period: Period,
): Pick<Stripe.Subscription, 'items'> {
  const data = subscription.items.data.map((item) => ({
    ...item,
    current_period_start: period.start,
    current_period_end: period.end,
  }))
  return { items: { ...subscription.items, data } }
}
