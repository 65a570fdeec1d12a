/**
 * Looks at a subscription as Stripe has it now. What comes back is that subscription with all of its items and,
 * while it is past due, since when it is unpaid; or null where Stripe itself says that there is none. Anything
 * else is no answer.
 */
import type Stripe from 'stripe'
import type { FetchInput } from '../../workflow/gathering.ts'
import { RecordsError } from '../../workflow/records.ts'
import type { LookedSubscription } from './period.ts'
import { unpaidSince } from './unpaid.ts'

/** More pages of items than any subscription has: past it the list does not end. */
const mostPages = 20

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
  let after: string | undefined
  for (let page = 0; page < mostPages; page++) {
    const { data, has_more: hasMore } = await api.subscriptionItems.list({
      subscription,
      limit: 100,
      ...(after !== undefined && { starting_after: after }),
    })
    items.push(...data)
    after = data.at(-1)?.id
    if (!hasMore) return items
    if (after === undefined) break
  }
  throw garbage('its list of items does not end')
}

/** What something on the way answers under 200 must not become what the order is. */
function requireSubscription(found: unknown, id: string): asserts found is Stripe.Subscription {
  const { object, id: own, status, items } = (found ?? {}) as Readonly<Record<string, unknown>>
  const { data } = (items ?? {}) as { readonly data?: unknown }
  if (object !== 'subscription' || own !== id) throw garbage('what came is another object')
  if (typeof status !== 'string' || !Array.isArray(data)) throw garbage('it has no status or items')
}

function garbage(what: string): RecordsError {
  return new RecordsError('garbage', `Stripe, GET /v1/subscriptions/…: ${what}`)
}
