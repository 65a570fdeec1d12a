/**
 * The options of `stripeSubscription()`, checked when it is called: a misspelled one would be silence, and
 * nobody would be served.
 */
import type Stripe from 'stripe'
import { HookledgerError, PermanentError } from '../../core/errors.ts'
import { nearest } from '../../core/nearest.ts'
import { keyText } from '../../workflow/checked-text.ts'
import type { Plans } from './plan-set.ts'
import type { PausedCollection } from './states.ts'

/** What is known of a subscription wherever it is named: its metadata as it was then. */
export interface SubscriptionHint {
  readonly id: string
  readonly metadata: Readonly<Record<string, string>>
}

/** Options of `stripeSubscription()`. */
export interface StripeSubscriptionOptions {
  /**
   * What a price entitles to, by its lookup key, else its id, else its product's id. A price without a plan
   * leaves access as it was and makes a finding.
   */
  readonly plans: Plans
  /**
   * How long a subscription that is past due keeps its access, counted from the start of the oldest unpaid
   * period (another unpaid one gives no other grace); default: not at all.
   */
  readonly grace?: { readonly days: number } | undefined
  /**
   * Whom the subscription serves. Without an answer (null, undefined or empty) it waits until its customer is
   * linked with a subject (`linkCustomer`). Default: always so.
   */
  readonly subject?:
    | ((input: {
        readonly subscription: Stripe.Subscription
        readonly customer: string | null
      }) => string | null | undefined)
    | undefined
  /** Which subscriptions are this workflow's, by their metadata; default: all. */
  readonly claims?: ((subscription: SubscriptionHint) => boolean) | undefined
  /**
   * With which behavior a paused collection pauses access too; default: with none, as Stripe's status stays
   * `active` then. Stripe means `void` for services that are not provided meanwhile.
   */
  readonly pausedBy?: readonly PausedCollection[] | undefined
}

const known = ['plans', 'grace', 'subject', 'claims', 'pausedBy']
const behaviors = ['keep_as_draft', 'mark_uncollectible', 'void']

/** Past it the days are a mistake of unit. */
const longestGraceDays = 366

/** @throws HookledgerError HKL_WORKFLOW_INVALID naming the option that cannot be. */
export function checkSubscriptionOptions(options: StripeSubscriptionOptions): void {
  if (typeof options !== 'object' || options === null) invalid('its options must be an object')
  onlyKnown(options, known, 'option')
  checkPlans(options.plans)
  for (const part of ['subject', 'claims'] as const) {
    const given = options[part]
    if (given !== undefined && typeof given !== 'function') invalid(`${part} must be a function`)
  }
  const { grace, pausedBy } = options
  if (grace !== undefined) checkGrace(grace)
  if (pausedBy === undefined) return
  if (!Array.isArray(pausedBy) || pausedBy.some((each: unknown) => !isBehavior(each))) {
    invalid(`pausedBy must be a list of ${behaviors.join(', ')}`)
  }
}

function checkPlans(plans: unknown): void {
  if (typeof plans !== 'object' || plans === null || Array.isArray(plans)) {
    invalid('plans must be an object: what each price entitles to')
  }
  if (Object.keys(plans).length === 0) invalid('plans must name what each price entitles to')
  for (const [key, plan] of Object.entries(plans)) {
    if (typeof plan === 'function') continue
    if (typeof plan !== 'string') invalid(`plans: "${key}" must be an entitlement or a function`)
    checkEntitlement(key, plan)
  }
}

function checkEntitlement(key: string, entitlement: string): void {
  if (entitlement.trim() === '') invalid(`plans: the entitlement of "${key}" is blank`)
  try {
    keyText(entitlement, `entitlement of "${key}"`)
  } catch (error) {
    if (error instanceof PermanentError) invalid(`plans: ${error.message}`)
    throw error
  }
}

function checkGrace(grace: unknown): void {
  const days = (grace as { readonly days?: unknown } | null)?.days
  if (typeof days !== 'number' || !(days >= 0 && days <= longestGraceDays)) {
    invalid(`grace must be { days } with 0 to ${longestGraceDays} days`)
  }
  onlyKnown(grace as object, ['days'], 'part of grace')
}

function onlyKnown(given: object, names: readonly string[], what: string): void {
  for (const key of Object.keys(given)) {
    if (names.includes(key)) continue
    const near = nearest(key, names)
    invalid(`unknown ${what} "${key}"${near === null ? '' : `, did you mean "${near}"?`}`)
  }
}

function isBehavior(value: unknown): boolean {
  return typeof value === 'string' && behaviors.includes(value)
}

function invalid(problem: string): never {
  throw new HookledgerError('HKL_WORKFLOW_INVALID', `stripeSubscription(): ${problem}`)
}
