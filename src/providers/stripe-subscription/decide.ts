/**
 * What an order becomes when its subscription is as it is now: a function of the present object, so that
 * neither the order nor the number of looks matters. Only what is not known here leaves a part as it was.
 */
import type Stripe from 'stripe'
import { PermanentError } from '../../core/errors.ts'
import { contradict, defer, linkedCustomer, mirrored } from '../../workflow/decision.ts'
import type { EntitlementClaim, Figures, MirrorDecision } from '../../workflow/decision.ts'
import { idOf } from '../../workflow/resolution.ts'
import type { MirrorInput } from '../../workflow/workflow.ts'
import type { StripeSubscriptionOptions } from './options.ts'
import { earlier, endsAt, unpaidStart, type LookedSubscription } from './period.ts'
import { isEachKnown, planSet, type PlanSet } from './plan-set.ts'
import { statedEnd, withInForce, type Claimed } from './in-force.ts'
import {
  isEntitling,
  isForGood,
  pausedCollection,
  stateOfStatus,
  type SubscriptionState,
} from './states.ts'

/** What a subscription's events carry: the object as it was then. */
export interface SubscriptionEvent {
  readonly data: unknown
}

/** What `decide` is given. */
export type SubscriptionInput = MirrorInput<SubscriptionEvent, LookedSubscription>

/** What `decide` answers. */
export type SubscriptionDecision = MirrorDecision<SubscriptionState, never, never>

const dayMs = 86_400_000

/** The findings that a look makes, and of which the next one that knows everything is the end. */
const flags = ['unknown_status', 'unknown_price']

/** Longer texts say no more in a decision's evidence. */
const longestText = 400

/** Decides what the order becomes. Pure. */
export function decideSubscription(
  options: StripeSubscriptionOptions,
  input: SubscriptionInput,
): SubscriptionDecision {
  const { current } = input
  if (current === null) {
    return mirrored({
      to: 'gone',
      settles: flags,
      reason: 'Stripe knows no such subscription (any more)',
    })
  }
  const status = stateOfStatus(current.status)
  if (status === undefined) {
    const figures = { subscription: current.id, status: shortened(String(current.status)) }
    return mirrored({
      flag: { kind: 'unknown_status', figures },
      reason: `status ${figures.status} is not known here: left as it was`,
    })
  }
  const to = followed(options, current, status)
  if (isEntitling(to)) return entitled(options, input, { current, to })
  // a price that has no plan yet will have to have one when it entitles again
  const settles = isForGood(to) || isEachKnown(options.plans, current) ? flags : flags.slice(0, 1)
  return mirrored({ to, settles, evidence: figuresOf(current) })
}

/**
 * The customer whose linked subject is needed: where something is entitled, and the subscription itself names
 * nobody. Whoever is entitled to nothing need not be known.
 */
export function customerToLink(
  options: StripeSubscriptionOptions,
  current: Stripe.Subscription | null,
): string | null {
  const status = current === null ? undefined : stateOfStatus(current.status)
  if (current === null || status === undefined) return null
  if (!isEntitling(followed(options, current, status))) return null
  return namedSubject(options, current) === null ? customerOf(current) : null
}

/** The state that follows from a status. */
function followed(
  options: StripeSubscriptionOptions,
  current: Stripe.Subscription,
  status: SubscriptionState,
): SubscriptionState {
  return isPaused(options, current) && isEntitling(status) ? 'paused' : status
}

function entitled(
  options: StripeSubscriptionOptions,
  input: SubscriptionInput,
  { current, to }: { readonly current: LookedSubscription; readonly to: SubscriptionState },
): SubscriptionDecision {
  const subject =
    namedSubject(options, current) ?? input.customer?.subject ?? input.order.subject ?? null
  if (subject === null) return unlinked(current)
  const until = validUntil(options, input, { current, to })
  const set = planSet(options.plans, current)
  const evidence = { ...figuresOf(current), ...setFigures(set), valid_until: iso(until.at) }
  const reason = until.reason === undefined ? {} : { reason: until.reason }
  const { items } = current
  if (items.has_more) {
    // a list of many has the first items of each only: the look that has them all decides
    return mirrored({
      to,
      subject,
      evidence,
      reason: 'its items are not all there: left as they were',
    })
  }
  const isKnown = set.unknown.length === 0
  const given = until.isOver ? new Map<string, Claimed>() : claimedUntil(set, until.at)
  const claimed = isKnown ? given : withInForce(given, input.entitlements, until)
  const entitle = claimsOf(subject, claimed)
  if (isKnown) return mirrored({ to, subject, entitle, settles: flags, evidence, ...reason })
  const figures = { subscription: current.id, prices: shortened(set.unknown.join(', ')) }
  return mirrored({
    to,
    subject,
    entitle,
    flag: { kind: 'unknown_price', figures },
    settles: ['unknown_status'],
    evidence,
    reason: `no plan for ${figures.prices}: what was in force stays`,
  })
}

/** Served by nobody yet: it waits for the customer to be linked with whom it serves. */
function unlinked(current: Stripe.Subscription): SubscriptionDecision {
  const customer = customerOf(current)
  if (customer === null) {
    return contradict(`subscription ${current.id} names neither a subject nor a customer`)
  }
  return defer({ missing: linkedCustomer(customer), reason: 'it names no subject of ours' })
}

/** Until when access lasts without another look, and why. */
interface Until {
  /** Null: without an end. */
  readonly at: Date | null
  readonly isOver: boolean
  readonly reason?: string
}

function validUntil(
  { grace }: StripeSubscriptionOptions,
  { order, entitlements }: SubscriptionInput,
  { current, to }: { readonly current: LookedSubscription; readonly to: SubscriptionState },
): Until {
  const end = endsAt(current)
  if (to !== 'past_due') {
    if (end === null) return { at: null, isOver: false }
    return { at: end, isOver: false, reason: `${to}: ends ${end.toISOString()}` }
  }
  const start = unpaidStart(current)
  if (grace === undefined || grace.days === 0 || start === null) {
    return { at: null, isOver: true, reason: 'past due: no grace' }
  }
  // without its invoices the object cannot tell whether its period is the first that is unpaid
  const found =
    current.unpaid_since === undefined && order.state === 'past_due'
      ? statedEnd(entitlements)
      : null
  const until = found ?? new Date(start.getTime() + grace.days * dayMs)
  const reason = `past due: grace until ${until.toISOString()}`
  return { at: earlier(until, end), isOver: false, reason }
}

function claimedUntil({ quantities }: PlanSet, until: Date | null): Map<string, Claimed> {
  return new Map([...quantities].map(([name, quantity]) => [name, { quantity, until }]))
}

function claimsOf(subject: string, claimed: ReadonlyMap<string, Claimed>): EntitlementClaim[] {
  return [...claimed]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([entitlement, { quantity, until }]) => ({
      subject,
      entitlement,
      quantity,
      validUntil: until,
    }))
}

function isPaused(
  { pausedBy = [] }: StripeSubscriptionOptions,
  current: Stripe.Subscription,
): boolean {
  const behavior = pausedCollection(current)
  return pausedBy.some((each) => each === behavior)
}

function namedSubject(
  options: StripeSubscriptionOptions,
  current: Stripe.Subscription,
): string | null {
  const subject: unknown = options.subject?.({
    subscription: current,
    customer: customerOf(current),
  })
  if (subject === undefined || subject === null || subject === '') return null
  if (typeof subject !== 'string') {
    throw new PermanentError('stripeSubscription(): subject must answer with a text, synchronously')
  }
  return subject
}

function customerOf(current: Stripe.Subscription): string | null {
  return idOf(current.customer as string | { readonly id?: string } | null)
}

function figuresOf(current: Stripe.Subscription): Figures {
  const collection = pausedCollection(current)
  return {
    status: current.status,
    ...(collection !== null && { collection_paused: shortened(collection) }),
  }
}

function setFigures({ prices, unknown }: PlanSet): Figures {
  return {
    prices: shortened(prices.join(', ')),
    ...(unknown.length > 0 && { unknown: shortened(unknown.join(', ')) }),
  }
}

function iso(date: Date | null): string | null {
  return date === null ? null : date.toISOString()
}

function shortened(text: string): string {
  return text.length > longestText ? `${text.slice(0, longestText)}…` : text
}
