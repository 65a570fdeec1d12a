/**
 * How much a source, and each account of it, may be asked now: rate and breaker, over all gatherers. Pure; the
 * figures are read and written under the rows' locks.
 */
import type { FetchOutcome, GatherSettings } from './gather-context.ts'

/** A budget's row, by the database's clock. */
export interface BudgetFigures {
  readonly tokens: number
  /** Milliseconds since the tokens were counted. */
  readonly sinceRefillMs: number
  /** In a row. */
  readonly failures: number
  /** Milliseconds until anything may be asked again; null: nothing is in the way. */
  readonly closedForMs: number | null
}

/** What one budget goes by. */
export interface BudgetRules {
  readonly ratePerSecond: number
  /** Failures in a row after which one request at a time finds out whether it is over. */
  readonly breakerFailures: number
  readonly breakerMs: number
  readonly maxBreakerMs: number
  /** A lone request is waited for so long. */
  readonly leaseMs: number
}

/** How many requests there may be now, and when to ask again. */
export interface Allowance {
  readonly most: number
  /** Milliseconds until it is worth asking again; null where something may be asked. */
  readonly waitMs: number | null
  readonly tokens: number
  readonly isProbe: boolean
}

/** The rules of a source as a whole. */
export function sourceRules(settings: GatherSettings): BudgetRules {
  // twice as many: one account whose requests fail is left alone before the others suffer from it
  return {
    ...settings,
    ratePerSecond: settings.callsPerSecond,
    breakerFailures: settings.breakerFailures * 2,
  }
}

/** The rules of one account. */
export function accountRules(settings: GatherSettings): BudgetRules {
  return { ...settings, ratePerSecond: settings.callsPerSecondPerAccount }
}

/** Tokens that gather while nothing is asked: half a second's worth, one at least. */
export function capacityOf({ ratePerSecond }: BudgetRules): number {
  return Math.max(1, ratePerSecond / 2)
}

/** What may be asked at this moment. */
export function allowanceOf(figures: BudgetFigures, rules: BudgetRules): Allowance {
  const { sinceRefillMs, failures, closedForMs } = figures
  const earned = (Math.max(0, sinceRefillMs) / 1000) * rules.ratePerSecond
  const tokens = Math.min(capacityOf(rules), Math.max(0, figures.tokens) + earned)
  const isProbe = failures >= rules.breakerFailures
  if (closedForMs !== null && closedForMs > 0)
    return { most: 0, waitMs: closedForMs, tokens, isProbe }
  const most = isProbe ? Math.min(1, Math.floor(tokens)) : Math.floor(tokens)
  const waitMs = most > 0 ? null : Math.ceil(((1 - tokens) / rules.ratePerSecond) * 1000)
  return { most, waitMs, tokens, isProbe }
}

/** The figures after so many requests were taken from it. A lone one shuts everybody else out meanwhile. */
export function afterTaking(
  figures: BudgetFigures,
  { tokens, isProbe }: Allowance,
  taken: number,
  { leaseMs }: BudgetRules,
): BudgetFigures {
  return {
    ...figures,
    tokens: tokens - taken,
    sinceRefillMs: 0,
    closedForMs: isProbe && taken > 0 ? leaseMs : figures.closedForMs,
  }
}

/** How an outcome counts: whether the provider is there and lets itself be asked. */
export interface BudgetResult {
  readonly counts: 'good' | 'bad' | 'nothing'
  /** It says that it is asked too much: nothing for so long, in milliseconds. */
  readonly restMs: number | null
  readonly isProbe: boolean
}

/** How an outcome counts for its account. */
export function accountResult(outcome: FetchOutcome, isProbe: boolean): BudgetResult {
  if (outcome.kind === 'answered') return { counts: 'good', restMs: null, isProbe }
  if (outcome.kind === 'released') return { counts: 'nothing', restMs: null, isProbe }
  const { failure } = outcome
  if (failure.kind === 'unknown')
    return { counts: isProbe ? 'bad' : 'nothing', restMs: null, isProbe }
  const restMs =
    failure.kind === 'later' && failure.isRateLimit ? (failure.retryAfterMs ?? 1000) : null
  return { counts: 'bad', restMs, isProbe }
}

/**
 * How it counts for the source as a whole: what only says something about the account, or comes from one that
 * is known to be in trouble, does not.
 */
export function sourceResult(
  outcome: FetchOutcome,
  {
    isProbe,
    isAccountTroubled,
  }: { readonly isProbe: boolean; readonly isAccountTroubled: boolean },
): BudgetResult {
  const { counts } = accountResult(outcome, isProbe)
  if (counts !== 'bad' || isProbe) return { counts, restMs: null, isProbe }
  const isOwn =
    outcome.kind === 'failed' && outcome.failure.kind === 'later' && !outcome.failure.isRateLimit
  return { counts: isOwn && !isAccountTroubled ? 'bad' : 'nothing', restMs: null, isProbe }
}

/** The figures after an outcome. */
export function afterResult(
  figures: BudgetFigures,
  { counts, restMs, isProbe }: BudgetResult,
  rules: BudgetRules,
): BudgetFigures {
  const wasOpen = figures.failures >= rules.breakerFailures
  const closedForMs =
    figures.closedForMs !== null && figures.closedForMs > 0 ? figures.closedForMs : null
  if (counts === 'nothing') return isProbe && wasOpen ? { ...figures, closedForMs: null } : figures
  if (counts === 'good')
    return { ...figures, failures: 0, closedForMs: wasOpen ? null : closedForMs }
  // those that were under way when it opened do not prolong it
  if (wasOpen && closedForMs !== null && !isProbe) return figures
  const failures = Math.min(figures.failures + 1, 1_000_000)
  const doublings = Math.min(failures - rules.breakerFailures, 30)
  const pauseMs = doublings < 0 ? 0 : Math.min(rules.maxBreakerMs, rules.breakerMs * 2 ** doublings)
  const forMs = Math.max(pauseMs, restMs ?? 0, isProbe ? 0 : (closedForMs ?? 0))
  return { ...figures, failures, closedForMs: forMs > 0 ? forMs : null }
}
