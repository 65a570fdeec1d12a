/**
 * How many operations may be leased now: concurrency, rate and breaker of a destination, over all
 * dispatchers. Pure; the figures are read and written under the destination's row lock.
 */
import type { DestinationContract } from './destination.ts'
import type { AttemptOutcome } from './next-step.ts'

/** A destination's row, by the database's clock. */
export interface DestinationFigures {
  /** Operations in state `sending`. */
  readonly underWay: number
  readonly failures: number
  /** Milliseconds until the breaker lets one through; 0: now, and one alone; null: it is shut. */
  readonly closedForMs: number | null
  readonly tokens: number
  /** Milliseconds since the tokens were counted. */
  readonly sinceRefillMs: number
}

/** How many may be leased, and when to ask again. */
export interface Budget {
  readonly most: number
  /** Milliseconds until it is worth asking again; null where something may be leased. */
  readonly waitMs: number | null
  /** Tokens now. */
  readonly tokens: number
}

/** Tokens that gather while nothing is sent: a tenth of a second's worth, one at least. */
function capacityOf(ratePerSecond: number): number {
  return Math.max(1, ratePerSecond / 10)
}

/** How soon to ask again while calls of other dispatchers are all that there may be, in milliseconds. */
const busyMs = 20

/** The budget of this moment. */
export function budgetOf(figures: DestinationFigures, contract: DestinationContract): Budget {
  const { underWay, closedForMs, sinceRefillMs } = figures
  const rate = contract.ratePerSecond
  const tokens =
    rate === null
      ? 0
      : Math.min(capacityOf(rate), figures.tokens + (Math.max(0, sinceRefillMs) / 1000) * rate)
  if (closedForMs !== null && closedForMs > 0) return { most: 0, waitMs: closedForMs, tokens }
  const free = Math.max(0, contract.concurrency - underWay)
  // half open: one call tells whether the destination is back
  const most = closedForMs === null ? free : underWay === 0 ? Math.min(1, free) : 0
  if (most === 0) return { most, waitMs: busyMs, tokens }
  if (rate === null) return { most, waitMs: null, tokens }
  const whole = Math.floor(tokens)
  if (whole >= 1) return { most: Math.min(most, whole), waitMs: null, tokens }
  return { most: 0, waitMs: Math.ceil(((1 - tokens) / rate) * 1000), tokens }
}

/** What the breaker remembers. */
export interface BreakerState {
  readonly failures: number
  /** Milliseconds from now; null: shut. */
  readonly closedForMs: number | null
}

/** How an outcome counts: whether the destination is there, not whether it liked the operation. */
export function isFailure(outcome: AttemptOutcome): boolean | null {
  if ('called' in outcome && outcome.called === false) return null
  switch (outcome.kind) {
    case 'retry':
    case 'uncertain':
    case 'no_answer':
      return true
    case 'died':
      return null
    default:
      return false
  }
}

/** The breaker after outcomes, in the order in which they came. */
export function breakerAfter(
  before: BreakerState,
  outcomes: readonly AttemptOutcome[],
  { breakerFailures, breakerMs }: DestinationContract,
): BreakerState {
  let { failures, closedForMs } = before
  for (const outcome of outcomes) {
    const failed = isFailure(outcome)
    if (failed === null) continue
    if (!failed) {
      failures = 0
      closedForMs = null
      continue
    }
    failures = Math.min(failures + 1, 1_000_000)
    // those that were under way when it opened do not prolong it
    if (failures >= breakerFailures && (closedForMs === null || closedForMs <= 0))
      closedForMs = breakerMs
  }
  return { failures, closedForMs }
}
