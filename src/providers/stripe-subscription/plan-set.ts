/**
 * What a subscription's items entitle to, by their prices: always the whole set, so that a change of plan is
 * the difference of two sets, whatever was prorated or scheduled on the way.
 */
import type Stripe from 'stripe'
import type { Entitlement } from '../../workflow/order.ts'

/** What an item of a price entitles to. */
export interface PlanEntitlement {
  readonly entitlement: string
  /** Default 1; 0 is nothing. Those of several items add up. */
  readonly quantity?: number | undefined
}

/** What a plan's function is given. */
export interface PlanInput {
  /** Of the item (seats); 1 where Stripe has none (metered prices). */
  readonly quantity: number
  readonly item: Stripe.SubscriptionItem
  readonly subscription: Stripe.Subscription
}

/**
 * An entitlement that is there or not, however many of it are bought, or what a function says of the item.
 */
export type Plan =
  string | ((input: PlanInput) => PlanEntitlement | readonly PlanEntitlement[] | null | undefined)

/** Plans by the price's lookup key, else its id, else its product's id. */
export type Plans = Readonly<Record<string, Plan>>

/** The whole set, and the prices that no plan is known for. */
export interface PlanSet {
  /** Quantity by entitlement. */
  readonly quantities: ReadonlyMap<string, number>
  /** The keys under which the plans were found, with quantities: what decisions record. */
  readonly prices: readonly string[]
  readonly unknown: readonly string[]
}

/** Price, or the plan that versions before 2020 had in its place. */
interface PriceLike {
  readonly id?: unknown
  readonly lookup_key?: unknown
  readonly product?: unknown
}

/** The set of a subscription's items; those that were removed from it do not count. */
export function planSet(plans: Plans, subscription: Stripe.Subscription): PlanSet {
  const plain = new Set<string>()
  const counted = new Map<string, number>()
  const prices: string[] = []
  const unknown: string[] = []
  for (const item of subscription.items.data) {
    if ((item as { readonly deleted?: unknown }).deleted === true) continue
    const quantity = item.quantity ?? 1
    const keys = keysOf(item)
    const key = keys.find((each) => Object.hasOwn(plans, each))
    const plan = key === undefined ? undefined : plans[key]
    if (plan === undefined || key === undefined) {
      unknown.push(keys[0] ?? item.id)
      continue
    }
    prices.push(quantity === 1 ? key : `${key} × ${quantity}`)
    if (quantity <= 0) continue
    if (typeof plan === 'string') plain.add(plan)
    else {
      for (const given of listOf(plan({ quantity, item, subscription }))) {
        const { entitlement, quantity: each = 1 } = given
        counted.set(entitlement, (counted.get(entitlement) ?? 0) + each)
      }
    }
  }
  const quantities = new Map<string, number>([...counted].filter(([, count]) => count !== 0))
  for (const each of plain) if (!quantities.has(each)) quantities.set(each, 1)
  return { quantities, prices, unknown }
}

/** The set with everything that was stated before, where it is more: a price that is not known takes nothing away. */
export function withStated(
  quantities: ReadonlyMap<string, number>,
  stated: readonly Entitlement[],
): ReadonlyMap<string, number> {
  const all = new Map(quantities)
  for (const { entitlement, quantity } of stated) {
    all.set(entitlement, Math.max(all.get(entitlement) ?? 0, quantity))
  }
  return all
}

function keysOf(item: Stripe.SubscriptionItem): string[] {
  const { price, plan } = item as { readonly price?: PriceLike; readonly plan?: PriceLike }
  const { id, lookup_key: lookupKey, product } = price ?? plan ?? {}
  const productId =
    typeof product === 'object' && product !== null && 'id' in product ? product.id : product
  return [lookupKey, id, productId].filter(
    (key): key is string => typeof key === 'string' && key !== '',
  )
}

function listOf(
  given: PlanEntitlement | readonly PlanEntitlement[] | null | undefined,
): readonly PlanEntitlement[] {
  if (given === null || given === undefined) return []
  return isList(given) ? given : [given]
}

function isList(
  given: PlanEntitlement | readonly PlanEntitlement[],
): given is readonly PlanEntitlement[] {
  return Array.isArray(given)
}
