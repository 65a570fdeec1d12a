import type Stripe from 'stripe'
import type { SubscriptionInput } from '../../../src/providers/stripe-subscription/decide.ts'
import type { Entitlement } from '../../../src/workflow/order.ts'

/** The start of 2026, in seconds. */
export const start: number = Date.UTC(2026, 0, 1) / 1000

export const day: number = 86_400

export interface ItemFacts {
  id?: string
  lookupKey?: string | null
  price?: string
  product?: string | { id: string }
  quantity?: number | undefined
  deleted?: boolean
  start?: number
  end?: number
}

/** An item as today's Stripe has it: with its own period. */
export function item({
  id = 'si_1',
  lookupKey = 'pro_monthly',
  price = 'price_1',
  product = 'prod_1',
  start: from = start,
  end = start + 31 * day,
  ...facts
}: ItemFacts = {}): object {
  return {
    id,
    object: 'subscription_item',
    current_period_start: from,
    current_period_end: end,
    price: { id: price, object: 'price', lookup_key: lookupKey, product },
    ...('quantity' in facts
      ? facts.quantity !== undefined && { quantity: facts.quantity }
      : { quantity: 1 }),
    ...(facts.deleted !== undefined && { deleted: facts.deleted }),
  }
}

/** A subscription with the fields that count; anything else as a test gives it. */
export function subscription(
  status: string,
  items: readonly object[] = [item()],
  more: Readonly<Record<string, unknown>> = {},
): Stripe.Subscription {
  return {
    id: 'sub_1',
    object: 'subscription',
    status,
    customer: 'cus_1',
    metadata: { org: '1' },
    cancel_at: null,
    cancel_at_period_end: false,
    pause_collection: null,
    items: { object: 'list', data: items, has_more: false },
    ...more,
  } as unknown as Stripe.Subscription
}

/** The same as versions before 2025-03-31 have it: the period stands on the subscription. */
export function older(
  status: string,
  more: Readonly<Record<string, unknown>> = {},
): Stripe.Subscription {
  const {
    current_period_start: from,
    current_period_end: end,
    ...plain
  } = item() as {
    current_period_start: number
    current_period_end: number
  }
  return subscription(status, [plain], {
    current_period_start: from,
    current_period_end: end,
    ...more,
  })
}

/** What `decide` is given about an order that follows `current`. */
export function input(
  current: Stripe.Subscription | null,
  order: {
    subject?: string | null
    state?: string
    stated?: readonly Partial<Entitlement>[]
    linked?: string | null
  } = {},
): SubscriptionInput {
  const { subject = null, state = 'unseen', stated = [], linked } = order
  return {
    event: { data: { object: current ?? subscription('active') } },
    current,
    order: { id: 'sub_1', workflow: 'saas', state, subject, expected: null },
    payments: [],
    effects: [],
    operations: [],
    entitlements: stated.map((each) => ({
      subject: 'org:1',
      entitlement: 'pro',
      quantity: 1,
      validUntil: null,
      active: true,
      ...each,
    })),
    derive: () => '',
    evidence: undefined,
    customer: linked === undefined ? null : { id: 'cus_1', subject: linked },
  }
}
