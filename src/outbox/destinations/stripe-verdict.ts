/**
 * What an error of Stripe's SDK says about an operation, by Stripe's own rules for keys: the first
 * answer of a call that began is kept and given again, failures too; what is refused before that is not.
 */
import type { CallOutcome, DestinationContract } from '../destination.ts'
import type { Redactor } from './redact.ts'
import { retryAfterMs } from './retry-after.ts'
import { ConnectionFailure } from './stripe-sdk.ts'

interface StripeFailure {
  readonly type: string
  readonly statusCode: number | undefined
  readonly code: string | undefined
  readonly param: string | undefined
  readonly requestId: string | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly detail: unknown
  readonly message: string
}

/** What is needed beside the error. */
export interface FailureContext {
  readonly contract: DestinationContract
  readonly redactor: Redactor
  readonly nowMs: number
}

/** What the call came to. */
export function stripeVerdict(error: unknown, context: FailureContext): CallOutcome {
  const failure = readFailure(error)
  if (failure === undefined) return { kind: 'uncertain', error: 'the SDK failed' }
  const { contract, redactor, nowMs } = context
  const { statusCode, headers } = failure
  const answer = statusCode === undefined ? undefined : keptAnswer(failure, redactor)
  const seen = {
    ...(statusCode !== undefined && { status: statusCode }),
    ...(answer !== undefined && { answer }),
  }
  const judged = judge(failure, redactor)
  if (judged.kind === 'sent' || judged.kind === 'refused') return { ...judged, ...seen }
  const after = { retryAfter: headers['retry-after'], date: headers['date'] }
  const delay = retryAfterMs(after, nowMs, contract.maxRetryMs)
  return { ...judged, ...seen, ...(delay !== undefined && { retryAfterMs: delay }) }
}

function judge(failure: StripeFailure, redactor: Redactor): CallOutcome {
  const { statusCode: status, detail } = failure
  if (detail instanceof ConnectionFailure && status === undefined) {
    return { kind: detail.isWritten ? 'uncertain' : 'retry', error: redactor.text(detail.message) }
  }
  const error = redactor.text(line(failure))
  if (status === undefined) return { kind: 'uncertain', error }
  // 401 is said of our key and not of the operation: what a person mends once must not end all that wait
  if (status === 429 || status === 401) return { kind: 'retry', error }
  if (status === 409 || status >= 500 || status < 300) return { kind: 'uncertain', error }
  return { kind: 'refused', error, settlesEarlier: settles(failure, status) }
}

/**
 * An earlier call under this key that was done would have its success given again. Not so where the
 * answer came before Stripe looked at the key, and not where the key is known for other parameters.
 */
function settles({ type, code }: StripeFailure, status: number): boolean {
  if (type === 'StripeIdempotencyError') return false
  if (status === 404) return code === 'resource_missing'
  return status === 400 || status === 402
}

function line({ type, statusCode, code, param, requestId }: StripeFailure): string {
  const parts = [
    statusCode === undefined ? undefined : `HTTP ${statusCode}`,
    type,
    code,
    param === undefined ? undefined : `param ${param}`,
    requestId,
  ]
  return parts.filter((part) => part !== undefined).join(' ')
}

/** The words of Stripe, for a person; not those about the key that was presented. */
function keptAnswer(failure: StripeFailure, redactor: Redactor): Uint8Array | undefined {
  const { statusCode, type, code, param, message } = failure
  if (statusCode === 401 || statusCode === 403) return undefined
  return redactor.answer(new TextEncoder().encode(JSON.stringify({ type, code, param, message })))
}

function readFailure(error: unknown): StripeFailure | undefined {
  if (typeof error !== 'object' || error === null) return undefined
  const given = error as Record<string, unknown>
  if (typeof given['type'] !== 'string' || !given['type'].startsWith('Stripe')) return undefined
  const text = (name: string): string | undefined =>
    typeof given[name] === 'string' ? given[name] : undefined
  return {
    type: given['type'],
    statusCode: typeof given['statusCode'] === 'number' ? given['statusCode'] : undefined,
    code: text('code'),
    param: text('param'),
    requestId: text('requestId'),
    headers: (typeof given['headers'] === 'object' ? (given['headers'] ?? {}) : {}) as Record<
      string,
      string
    >,
    detail: given['detail'],
    message: text('message') ?? '',
  }
}
