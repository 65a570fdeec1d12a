/**
 * Stripe's API as mirrors and `gather` ask it: the official SDK for one account, whose calls end by the signal
 * and are repeated by nobody. Only Stripe's own word that there is no such object counts as `gone`.
 */
import { HookledgerError } from '../core/errors.ts'
import type { FetchFailure, ProviderApi } from '../workflow/provider-api.ts'
import { RecordsError, type RecordsTrouble } from '../workflow/records.ts'
import { headerAccount, type ConnectOptions } from './stripe-records/connected.ts'
import { createStripeClient, NotStripes } from './stripe-records/stripe-sdk.ts'
import { fieldsOf, retryAfterMs } from './stripe-records/stripe-trouble.ts'

/** How to call Stripe. */
export interface StripeCallsApiOptions extends ConnectOptions {
  readonly base: string
  readonly key: string
  /** Undefined: the SDK's. */
  readonly apiVersion?: string | undefined
}

/** What a failure says. */
type Failure = ReturnType<ProviderApi['failureOf']>

/** The signal ends a call; this is the bound for a caller that gave none that does. In milliseconds. */
const longestCallMs = 60_000

/** Stripe's API for mirrors and `gather`. Loads the SDK with the first call. */
export function stripeCallsApi(options: StripeCallsApiOptions): ProviderApi {
  const { base, key, apiVersion } = options
  return Object.freeze({
    client: (account: string, signal: AbortSignal): unknown => {
      const stripeAccount = headerAccount(options, account)
      const reach = { base, key, callMs: longestCallMs, apiVersion, stripeAccount, isStrict: true }
      return createStripeClient(reach, signal).client
    },
    failureOf: stripeFailure,
  })
}

/** What a failed call means; never throws, and says nothing of any body, header or key. */
export function stripeFailure(error: unknown): Failure {
  if (error instanceof RecordsError) return ofTrouble(error)
  const given = (typeof error === 'object' && error !== null ? error : {}) as StripeErrorLike
  if (given.raw?.exception instanceof NotStripes) return ofOther(given.raw.exception)
  if (typeof given.statusCode === 'number') return ofStatus(given, given.statusCode)
  if (given.type === 'StripeConnectionError') {
    return later("Stripe's API: the connection failed, or no whole answer came in time")
  }
  if (given.name === 'AbortError' || given.name === 'TimeoutError') {
    return later("Stripe's API: no whole answer came in time")
  }
  if (error instanceof HookledgerError) return { kind: 'unknown', text: error.message }
  // what other code says of its failure may quote what it was given
  const name =
    typeof given.name === 'string' && /^\w{1,60}$/.test(given.name) ? given.name : 'error'
  return { kind: 'unknown', text: `${name} in the code that asks Stripe` }
}

interface StripeErrorLike {
  readonly name?: unknown
  readonly type?: unknown
  readonly code?: unknown
  readonly statusCode?: unknown
  readonly message?: unknown
  readonly headers?: unknown
  readonly requestId?: unknown
  readonly raw?: { readonly exception?: unknown } | null
}

function ofStatus(error: StripeErrorLike, status: number): Failure {
  const text = lineOf(error, status)
  const { code } = fieldsOf(error)
  const headers = textsOf(error.headers)
  if (status === 429 || code === 'rate_limit') {
    // a lock that another request holds says nothing about how much is asked
    const isRateLimit = code !== 'lock_timeout'
    return { kind: 'later', isRateLimit, retryAfterMs: retryAfterMs({ headers }), text }
  }
  if (status === 408 || status === 409 || status === 425 || status >= 500) {
    return { kind: 'later', isRateLimit: false, retryAfterMs: retryAfterMs({ headers }), text }
  }
  if (status === 401) return { kind: 'refused', text: `${text}: is apiKey still valid?` }
  if (status === 403)
    return { kind: 'refused', text: `${text}: give apiKey the right to read this` }
  if (status === 404 && code === 'resource_missing') {
    return isOfOtherMode(error)
      ? { kind: 'refused', text: `${text}: apiKey is one of the other mode (live, test)` }
      : { kind: 'gone', text }
  }
  return { kind: 'unknown', text: `${text}: Stripe does not understand the request` }
}

/** "a similar object exists in live mode, but a test mode key was used": nothing is gone. */
function isOfOtherMode({ message }: StripeErrorLike): boolean {
  return typeof message === 'string' && /exists in (?:live|test) mode/i.test(message)
}

function ofOther({ status }: NotStripes): Failure {
  const text = `HTTP ${status} is no answer of Stripe's; what stands between us and Stripe?`
  return status >= 500 || status === 429 || status === 408 ? later(text) : { kind: 'unknown', text }
}

const troubles: Readonly<Record<RecordsTrouble, FetchFailure['kind']>> = {
  unavailable: 'later',
  cursor_lost: 'later',
  refused: 'refused',
  garbage: 'unknown',
}

function ofTrouble(error: RecordsError): Failure {
  const kind = troubles[error.trouble]
  const text = error.message
  if (kind === 'later') return { ...later(text), retryAfterMs: error.retryAfterMs }
  return kind === 'refused' ? { kind, text } : { kind: 'unknown', text }
}

function later(text: string): Extract<Failure, { kind: 'later' }> {
  return { kind: 'later', isRateLimit: false, retryAfterMs: null, text }
}

/** `HTTP 403 StripePermissionError more_permissions_required req_1`. */
function lineOf(error: StripeErrorLike, status: number): string {
  const { type, code, param } = fieldsOf(error)
  const { requestId } = error
  const isId = typeof requestId === 'string' && /^req_\w{1,60}$/.test(requestId)
  return [
    `Stripe's API: HTTP ${status}`,
    type,
    code,
    ...(param === undefined ? [] : [`param ${param}`]),
    ...(isId ? [requestId] : []),
  ]
    .filter((part) => part !== undefined)
    .join(' ')
}

function textsOf(headers: unknown): Readonly<Record<string, string>> {
  if (typeof headers !== 'object' || headers === null) return {}
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      typeof value === 'string' ? [[name.toLowerCase(), value]] : [],
    ),
  )
}
