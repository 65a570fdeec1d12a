/**
 * What must be at the end of lives, and what may have been at any time, computed from the lives alone. It
 * shares no code with the engine or with the workflow: both sides of a comparison are plain records.
 */
import type { Life, SubscriptionObject } from './subscription-living.ts'

/** An order as plain records. */
export interface OrderEnd {
  readonly state: string
  /** `subject entitlement` → `quantity until`, active ones only; until in Unix seconds, `-` for no end. */
  readonly access: Readonly<Record<string, string>>
  /** `type reference` → cents. */
  readonly facts: Readonly<Record<string, number>>
}

/** The statuses with which a customer may use what was bought. */
const usable = new Set(['trialing', 'active', 'past_due'])
const graceSeconds = 3 * 24 * 60 * 60

/** What a subscription as it is gives, by `subject entitlement`. */
export function accessOf(object: SubscriptionObject | null): Record<string, string> {
  if (object === null || !usable.has(object.status)) return {}
  let until = Infinity
  if (object.cancel_at !== null) until = object.cancel_at
  if (object.status === 'past_due') until = Math.min(until, unpaidSince(object) + graceSeconds)
  const end = until === Infinity ? '-' : String(until)
  const access: Record<string, string> = {}
  for (const item of object.items.data) {
    const isTeam = item.price.lookup_key === 'team_monthly'
    access[`org:${object.metadata.org} ${isTeam ? 'team' : 'pro'}`] = isTeam
      ? `${item.quantity} ${end}`
      : `1 ${end}`
  }
  return access
}

/** The start of the period that is not paid, wherever the version of the shape has it. */
function unpaidSince(object: SubscriptionObject): number {
  return object.current_period_start ?? object.items.data[0]?.current_period_start ?? NaN
}

/** The state that an order of this subscription must be in. */
export function stateOf(object: SubscriptionObject | null): string {
  return object === null ? 'gone' : object.status
}

/** The end of a life, given which of its facts were told. */
export function expectedEnd(life: Life, toldFacts: (id: string) => boolean): OrderEnd {
  const object = life.steps.at(-1)?.object ?? null
  const facts: Record<string, number> = {}
  for (const fact of life.steps.flatMap((step) => step.facts)) {
    if (fact.fact === 'paid' && toldFacts(fact.invoice))
      facts[`credits ${fact.invoice}`] = fact.amount
    if (fact.fact === 'refunded' && toldFacts(fact.refund) && toldFacts(fact.invoice))
      facts[`refund ${fact.refund}`] = fact.amount
  }
  return { state: stateOf(object), access: accessOf(object), facts }
}

/** One line for each difference; none where both are the same. */
export function differences(order: string, is: OrderEnd | undefined, must: OrderEnd): string[] {
  if (is === undefined) return [`${order} is missing`]
  const found: string[] = []
  if (is.state !== must.state) found.push(`${order} is ${is.state}, must be ${must.state}`)
  for (const part of ['access', 'facts'] as const) {
    for (const key of new Set([...Object.keys(is[part]), ...Object.keys(must[part])])) {
      if (is[part][key] !== must[part][key])
        found.push(`${order}, ${part}, ${key}: is ${is[part][key]}, must be ${must[part][key]}`)
    }
  }
  return found
}

/** One change of a row of access, in the order in which an order's changes were committed. */
export interface AccessChange {
  readonly order: string
  /** The transaction: what it changed became visible together. */
  readonly commit: string
  readonly key: string
  /** `quantity until` from now on; null: none. */
  readonly value: string | null
}

/**
 * Access that no state of the subscription ever justified: after each commit the whole set must be one that
 * some version of the object gives, or none.
 */
export function unjustified(
  order: string,
  life: Life | undefined,
  changes: readonly AccessChange[],
): string[] {
  const justified = new Set([
    '{}',
    ...(life?.steps ?? []).map(({ object }) => setOf(accessOf(object))),
  ])
  const found: string[] = []
  const now = new Map<string, string>()
  for (const [at, { commit, key, value }] of changes.entries()) {
    if (value === null) now.delete(key)
    else now.set(key, value)
    if (changes[at + 1]?.commit === commit) continue
    const set = setOf(Object.fromEntries(now))
    if (!justified.has(set)) found.push(`${order} was given ${set}, which nothing ever justified`)
  }
  return found
}

function setOf(access: Readonly<Record<string, string>>): string {
  return JSON.stringify(
    Object.fromEntries(Object.entries(access).sort(([a], [b]) => (a < b ? -1 : 1))),
  )
}
