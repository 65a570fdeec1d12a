/**
 * The states of an order that follows a subscription: Stripe's own statuses, the time before the first look,
 * and a subscription that Stripe does not know (any more).
 */
import type Stripe from 'stripe'

/** The statuses of Stripe that are known here; any other leaves the order as it was. */
export type SubscriptionStatus =
  | 'incomplete'
  | 'trialing'
  | 'active'
  | 'past_due'
  | 'unpaid'
  | 'paused'
  | 'canceled'
  | 'incomplete_expired'

/** `unseen`: not looked at yet. `gone`: Stripe knows no such subscription (any more). */
export type SubscriptionState = SubscriptionStatus | 'unseen' | 'gone'

/** What is spread into `defineWorkflow`. */
export interface SubscriptionStates {
  readonly initial: 'unseen'
  readonly states: Readonly<Record<SubscriptionState, { readonly entitles?: boolean }>>
  readonly transitions: Readonly<Record<SubscriptionState, readonly SubscriptionState[]>>
}

/** The only statuses in which anything is entitled; `past_due` only within its grace. */
const entitling: ReadonlySet<string> = new Set(['trialing', 'active', 'past_due'])

const ended: readonly SubscriptionState[] = ['canceled', 'gone']

const running: readonly SubscriptionState[] = [
  'trialing',
  'active',
  'past_due',
  'unpaid',
  'paused',
  ...ended,
]

const others = (own: SubscriptionState): readonly SubscriptionState[] =>
  running.filter((state) => state !== own)

/** As Stripe describes them; a mirror may skip whatever it did not see. */
export const subscriptionStates: SubscriptionStates = Object.freeze<SubscriptionStates>({
  initial: 'unseen',
  states: Object.freeze({
    unseen: {},
    incomplete: {},
    trialing: { entitles: true },
    active: { entitles: true },
    past_due: { entitles: true },
    unpaid: {},
    paused: {},
    canceled: {},
    incomplete_expired: {},
    gone: {},
  }),
  transitions: Object.freeze({
    unseen: ['incomplete', 'incomplete_expired', ...running],
    incomplete: ['trialing', 'active', 'incomplete_expired', ...ended],
    trialing: others('trialing'),
    active: others('active'),
    past_due: others('past_due'),
    unpaid: others('unpaid'),
    paused: others('paused'),
    canceled: ['gone'],
    incomplete_expired: ['gone'],
    gone: [],
  }),
})

/** The state that a status of Stripe is; undefined for a status that is not known here. */
export function stateOfStatus(status: unknown): SubscriptionStatus | undefined {
  if (typeof status !== 'string' || status === 'unseen' || status === 'gone') return undefined
  return Object.hasOwn(subscriptionStates.states, status)
    ? (status as SubscriptionStatus)
    : undefined
}

/** Whether anything may be entitled in this state. */
export function isEntitling(state: SubscriptionState): boolean {
  return entitling.has(state)
}

/** Whether no subscription ever leaves this state for one in which anything is entitled. */
export function isForGood(state: SubscriptionState): boolean {
  return state === 'canceled' || state === 'incomplete_expired' || state === 'gone'
}

/** The behaviors of a paused collection: what Stripe does with the invoices meanwhile. */
export type PausedCollection = 'keep_as_draft' | 'mark_uncollectible' | 'void'

/** How its collection is paused, or null. The status says nothing of it: it stays `active`. */
export function pausedCollection(subscription: Stripe.Subscription): string | null {
  return subscription.pause_collection?.behavior ?? null
}
