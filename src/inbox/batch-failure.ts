/**
 * Why a batch was rolled back, and what that means for its events.
 */
import { HookledgerError, isPermanent, RetryAfter } from '../core/errors.ts'
import { backoffMs } from '../core/backoff.ts'
import { classify, describeDatabaseError, sqlstateOf } from '../postgres/sqlstate.ts'

/** The SQL or the function of one known event failed: the others can go on without it. */
export class EventFailure extends Error {
  readonly key: bigint

  constructor(key: bigint, cause: unknown) {
    super('one event of the batch failed', { cause })
    this.name = 'EventFailure'
    this.key = key
  }
}

/** Something was written meanwhile that decides differently: the batch is read and decided again. */
export class BatchOutdated extends Error {
  constructor() {
    super('the ledger changed under the batch')
    this.name = 'BatchOutdated'
  }
}

/** What to do with a batch that failed. */
export type BatchRemedy =
  'without_event' | 'decide_again' | 'without_new_orders' | 'run_again' | 'split' | 'give_up'

/** Judges the failure of a batch. */
export function remedyOf(error: unknown): BatchRemedy {
  if (error instanceof EventFailure) return 'without_event'
  if (error instanceof BatchOutdated) return 'decide_again'
  if (error instanceof HookledgerError) {
    if (error.code === 'HKL_LEDGER_CLAIM_LOST') return 'decide_again'
    if (error.code === 'HKL_TRANSACTION_UNKNOWN') return 'run_again'
    return 'give_up'
  }
  if (sqlstateOf(error) === '55P03') return 'without_new_orders'
  switch (classify(error)) {
    case 'retry':
    case 'unknown':
    case 'reconnect':
      return 'run_again'
    case 'poison':
      return 'split'
    default:
      return 'give_up'
  }
}

/** What becomes of an event whose own function or SQL failed. */
export type EventVerdict =
  /** `poison`: only an operator may try it again; a redelivery brings the same input. */
  | { readonly dead: true; readonly reason: string; readonly poison?: true }
  | { readonly dead: false; readonly delayMs: number; readonly error: string }

/** Judges the failure of one event, given how often it failed before. */
export function judgeEventFailure(
  thrown: unknown,
  failures: number,
  limits: {
    readonly maxAttempts: number
    readonly firstRetryMs: number
    readonly maxRetryMs: number
  },
): EventVerdict {
  const { error, message } = readable(thrown)
  if (isPermanent(error)) return { dead: true, reason: message }
  if (isHopeless(error)) return { dead: true, reason: message, poison: true }
  if (error instanceof HookledgerError && !error.retryable) return { dead: true, reason: message }
  if (failures + 1 >= limits.maxAttempts)
    return { dead: true, reason: `failed ${failures + 1} times, last: ${message}` }
  const options = { firstMs: limits.firstRetryMs, maxMs: limits.maxRetryMs }
  return {
    dead: false,
    delayMs:
      askedDelay(error, limits.maxRetryMs) ?? backoffMs(failures + 1, Math.random(), options),
    error: message,
  }
}

/** Anything can be thrown, also what throws when it is looked at: that must not fail the batch around it. */
function readable(thrown: unknown): { readonly error: unknown; readonly message: string } {
  try {
    isPermanent(thrown)
    return { error: thrown, message: describe(thrown) }
  } catch {
    return { error: null, message: 'an error that cannot be read was thrown' }
  }
}

/** The delay that the user's code asked for; null where it asked for none, or for something else than a number. */
function askedDelay(error: unknown, mostMs: number): number | null {
  if (!(error instanceof RetryAfter) || !Number.isFinite(error.delayMs)) return null
  return Math.min(Math.max(error.delayMs, 0), mostMs)
}

/**
 * Whether the same input can never be written. A key that is taken, or not there yet, is not: another
 * transaction may free it or bring it.
 */
function isHopeless(error: unknown): boolean {
  return (
    isSql(error) &&
    classify(error) === 'poison' &&
    !['23503', '23505', '23P01'].includes(sqlstateOf(error) ?? '')
  )
}

function isSql(error: unknown): boolean {
  return sqlstateOf(error) !== undefined
}

/**
 * What may be stored of an error: a database error without its details, a message of ours or of the
 * user's cut short. Users are told not to put bodies into messages.
 */
function describe(error: unknown): string {
  if (isSql(error)) return describeDatabaseError(error)
  if (error instanceof Error)
    return clean(`${error.name === 'Error' ? '' : `${error.name}: `}${error.message}`)
  return 'a value that is not an error was thrown'
}

function clean(text: string): string {
  const flat = text
    .toWellFormed()
    .replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]+/g, ' ')
    .trim()
  return flat === '' ? 'an error without a message' : flat.slice(0, 500)
}
