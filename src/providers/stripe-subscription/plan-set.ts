/**
 * What a subscription's items entitle to, by their prices: always the whole set, so that a change of plan is
 * the difference of two sets, whatever was prorated or scheduled on the way.
 */
import type Stripe from 'stripe'
import { PermanentError } from '../../core/errors.ts'
import { keyText, maxKeyBytes } from '../../workflow/checked-text.ts'

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
  for (const item of itemsOf(subscription)) {
    const quantity = item.quantity ?? 1
    const key = planKey(plans, item)
    const plan = key === undefined ? undefined : plans[key]
    if (plan === undefined || key === undefined) {
      unknown.push(keysOf(item)[0] ?? item.id)
      continue
    }
    prices.push(quantity === 1 ? key : `${key} × ${quantity}`)
    if (quantity <= 0) continue
    if (typeof plan === 'string') plain.add(plan)
    else {
      for (const given of givenBy({ key, plan, quantity, item, subscription })) {
        const { entitlement, quantity: each = 1 } = given
        counted.set(entitlement, (counted.get(entitlement) ?? 0) + each)
      }
    }
  }
  const quantities = new Map<string, number>([...counted].filter(([, count]) => count !== 0))
  for (const each of plain) if (!quantities.has(each)) quantities.set(each, 1)
  return { quantities, prices, unknown }
}

/** Whether a plan is known for every price; never of an object that has not all of its items with it. */
export function isEachKnown(plans: Plans, subscription: Stripe.Subscription): boolean {
  if (subscription.items.has_more) return false
  return itemsOf(subscription).every((item) => planKey(plans, item) !== undefined)
}

function itemsOf({ items }: Stripe.Subscription): Stripe.SubscriptionItem[] {
  return items.data.filter((item) => (item as { readonly deleted?: unknown }).deleted !== true)
}

function planKey(plans: Plans, item: Stripe.SubscriptionItem): string | undefined {
  return keysOf(item).find((each) => Object.hasOwn(plans, each))
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

interface Asked extends PlanInput {
  readonly key: string
  readonly plan: (input: PlanInput) => unknown
}

/** @throws PermanentError where the plan's function answers with anything else than it must */
function givenBy({ key, plan, ...input }: Asked): readonly PlanEntitlement[] {
  const answer = plan(input)
  if (answer === null || answer === undefined) return []
  const given: readonly unknown[] = Array.isArray(answer) ? answer : [answer]
  return given.map((each) => {
    if (isPlanEntitlement(each)) return each
    throw new PermanentError(
      `stripeSubscription(): the plan "${key}" of subscription ${input.subscription.id} must answer, synchronously, ` +
        `with { entitlement, quantity } (a text of at most ${maxKeyBytes} bytes, and a whole number from 0), ` +
        'a list of them, or null',
    )
  })
}

function isPlanEntitlement(given: unknown): given is PlanEntitlement {
  const { entitlement, quantity } = (given ?? {}) as Readonly<Record<string, unknown>>
  if (typeof entitlement !== 'string' || entitlement.trim() === '') return false
  if (!isKeyText(entitlement)) return false
  if (quantity === undefined) return true
  return typeof quantity === 'number' && Number.isSafeInteger(quantity) && quantity >= 0
}

function isKeyText(text: string): boolean {
  try {
    return keyText(text, 'entitlement') === text
  } catch {
    return false
  }
}
