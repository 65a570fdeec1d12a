/**
 * Looks at a subscription as Stripe has it now. What comes back is that subscription with all of its items,
 * or null where Stripe itself says that there is none; anything else is no answer.
 */
import type Stripe from 'stripe'
import type { FetchInput } from '../../workflow/gathering.ts'
import { RecordsError } from '../../workflow/records.ts'

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
}: FetchInput<Stripe>): Promise<Stripe.Subscription> {
  const found = await api.subscriptions.retrieve(object.value)
  requireSubscription(found, object.value)
  if (!found.items.has_more) return found
  // the object carries the first items only
  return {
    ...found,
    items: { ...found.items, data: await allItems(api, found.id), has_more: false },
  }
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
