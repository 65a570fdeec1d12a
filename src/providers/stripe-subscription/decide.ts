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
import { earlier, endsAt, periodStart } from './period.ts'
import { planSet, withStated, type PlanSet } from './plan-set.ts'
import { isEntitling, pausedCollection, stateOfStatus, type SubscriptionState } from './states.ts'

/** What a subscription's events carry: the object as it was then. */
export interface SubscriptionEvent {
  readonly data: unknown
}

/** What `decide` is given. */
export type SubscriptionInput = MirrorInput<SubscriptionEvent, Stripe.Subscription>

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
  const to = isPaused(options, current) && isEntitling(status) ? 'paused' : status
  if (!isEntitling(to)) return mirrored({ to, settles: flags, evidence: figuresOf(current) })
  return entitled(options, input, { current, to })
}

/** The customer whose linked subject is needed: where the subscription itself names none. */
export function customerToLink(
  options: StripeSubscriptionOptions,
  current: Stripe.Subscription | null,
): string | null {
  if (current === null || namedSubject(options, current) !== null) return null
  return customerOf(current)
}

function entitled(
  options: StripeSubscriptionOptions,
  input: SubscriptionInput,
  { current, to }: { readonly current: Stripe.Subscription; readonly to: SubscriptionState },
): SubscriptionDecision {
  const subject =
    namedSubject(options, current) ?? input.customer?.subject ?? input.order.subject ?? null
  if (subject === null) return unlinked(current)
  const until = validUntil(options, current, to)
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
  const quantities = isKnown ? set.quantities : withStated(set.quantities, input.entitlements)
  const entitle = until.isOver ? [] : claimsOf(subject, quantities, until.at)
  if (isKnown) return mirrored({ to, subject, entitle, settles: flags, evidence, ...reason })
  const figures = { subscription: current.id, prices: shortened(set.unknown.join(', ')) }
  return mirrored({
    to,
    subject,
    entitle,
    flag: { kind: 'unknown_price', figures },
    settles: ['unknown_status'],
    evidence,
    reason: `no plan for ${figures.prices}: access left as it was`,
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
function validUntil(
  { grace }: StripeSubscriptionOptions,
  current: Stripe.Subscription,
  to: SubscriptionState,
): { readonly at: Date | null; readonly isOver?: boolean; readonly reason?: string } {
  const end = endsAt(current)
  if (to !== 'past_due') {
    return end === null ? { at: null } : { at: end, reason: `${to}: ends ${end.toISOString()}` }
  }
  const start = periodStart(current)
  if (grace === undefined || grace.days === 0 || start === null) {
    return { at: null, isOver: true, reason: 'past due: no grace' }
  }
  const until = new Date(start.getTime() + grace.days * dayMs)
  return { at: earlier(until, end), reason: `past due: grace until ${until.toISOString()}` }
}

function claimsOf(
  subject: string,
  quantities: ReadonlyMap<string, number>,
  validUntil: Date | null,
): EntitlementClaim[] {
  return [...quantities]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([entitlement, quantity]) => ({ subject, entitlement, quantity, validUntil }))
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
