/**
 * Looks at a subscription as Stripe has it now. What comes back is that subscription with all of its items and,
 * while it is past due, since when it is unpaid; or null where Stripe itself says that there is none. Anything
 * else is no answer.
 */
import type Stripe from 'stripe'
import type { FetchInput } from '../../workflow/gathering.ts'
import { garbage, pagesOf, type PageParameters } from './pages.ts'
import type { LookedSubscription } from './period.ts'
import { unpaidSince } from './unpaid.ts'

const path = 'GET /v1/subscriptions/…'

/**
 * The subscription as it is now.
 *
 * @throws the SDK's error where Stripe did not answer, and RecordsError where the answer cannot be true
 */
export async function fetchSubscription({
  api,
  object,
}: FetchInput<Stripe>): Promise<LookedSubscription> {
  const found = await api.subscriptions.retrieve(object.value)
  requireSubscription(found, object.value)
  const whole = found.items.has_more ? await withAllItems(api, found) : found
  if (whole.status !== 'past_due') return whole
  return { ...whole, unpaid_since: await unpaidSince(api, whole.id) }
}

/** The object carries the first items only. */
async function withAllItems(api: Stripe, found: Stripe.Subscription): Promise<Stripe.Subscription> {
  const data = await allItems(api, found.id)
  return { ...found, items: { ...found.items, data, has_more: false } }
}

async function allItems(api: Stripe, subscription: string): Promise<Stripe.SubscriptionItem[]> {
  const items: Stripe.SubscriptionItem[] = []
  const ask = (page: PageParameters) => api.subscriptionItems.list({ subscription, ...page })
  for await (const data of pagesOf({ path: 'GET /v1/subscription_items', ask })) items.push(...data)
  return items
}

/** What something on the way answers under 200 must not become what the order is. */
function requireSubscription(found: unknown, id: string): asserts found is Stripe.Subscription {
  const { object, id: own, status, items } = (found ?? {}) as Readonly<Record<string, unknown>>
  const { data } = (items ?? {}) as { readonly data?: unknown }
  if (object !== 'subscription' || own !== id) throw garbage(path, 'what came is another object')
  if (typeof status !== 'string' || !Array.isArray(data))
    throw garbage(path, 'it has no status or items')
}
