/**
 * Why a request to Stripe came to nothing, in the words that reconciliation acts by. The messages name
 * what was asked, Stripe's codes and its request id, and nothing of any body, header or key.
 */
import { RecordsError, type RecordsTrouble } from '../../workflow/records.ts'
import { largestAnswerBytes, type SeenAnswer } from './stripe-sdk.ts'

/** No provider is asked to be patient for longer than this, in milliseconds. */
const longestWaitMs = 3_600_000

/** What was asked for. */
export interface Asked {
  /** `GET /v1/events`. */
  readonly what: string
  readonly callMs: number
  readonly signal: AbortSignal
  /** The page is asked for after this record; it may be gone. */
  readonly isContinued: boolean
}

/** Stripe says that there is no such object: an answer, and no trouble. */
export class NoSuchObject extends Error {}

/** The trouble of a request that failed in the SDK (`error`), or that was answered with no success. */
export function stripeTrouble(
  error: unknown,
  seen: SeenAnswer,
  asked: Asked,
): RecordsError | NoSuchObject {
  if (error instanceof RecordsError) return error
  const { status } = seen
  const make = (trouble: RecordsTrouble, said: string): RecordsError =>
    new RecordsError(trouble, `Stripe, ${asked.what}: ${said}`, {
      // what Stripe said in its own words may quote what was sent to it
      ...(status === undefined && { cause: error }),
      retryAfterMs: trouble === 'unavailable' ? retryAfterMs(seen) : null,
    })
  if (seen.failure?.kind === 'too_long' && !asked.signal.aborted) {
    return make('garbage', `the answer is longer than ${largestAnswerBytes / 1024 / 1024} MiB`)
  }
  if (status === undefined) return make('unavailable', unanswered(asked, seen))
  const line = lineOf(error, seen)
  if (status === 429 || status === 408 || status === 409 || status >= 500) {
    return make('unavailable', `${line}: asked again later`)
  }
  if (!seen.isJson || status < 400) {
    return make('garbage', `${line} is no answer of Stripe's; what stands between us and Stripe?`)
  }
  const { code, param } = fieldsOf(error)
  if (status === 401) return make('refused', `${line}: is apiKey still valid?`)
  if (status === 403) return make('refused', `${line}: give apiKey the right to read this`)
  if (code === 'rate_limit') return make('unavailable', `${line}: asked again later`)
  if (code === 'resource_missing') {
    if (asked.isContinued && (param === undefined || param === 'starting_after')) {
      return make('cursor_lost', `${line}: the record that the page begins after is gone`)
    }
    return new NoSuchObject()
  }
  return make('refused', `${line}: Stripe does not understand the request`)
}

function unanswered({ signal, callMs }: Asked, { failure }: SeenAnswer): string {
  if (signal.aborted) return 'stopped before it was answered'
  if (failure?.kind !== 'connection') return `no whole answer within ${callMs} ms`
  const code = failure.code === undefined ? '' : ` (${failure.code})`
  return failure.hasBegun
    ? `the connection was closed before the answer was whole${code}`
    : `the connection failed or was closed before an answer came${code}`
}

/** `HTTP 403 StripePermissionError more_permissions_required_for_application req_1`. */
function lineOf(error: unknown, { status, headers }: SeenAnswer): string {
  const { type, code, param } = fieldsOf(error)
  const parts = [
    `HTTP ${status}`,
    type,
    code,
    param === undefined ? undefined : `param ${param}`,
    headers['request-id'],
  ]
  return parts.filter((part) => part !== undefined).join(' ')
}

/** Type, code and parameter of an error of the SDK, where they have the form of such words. */
export function fieldsOf(error: unknown): {
  type: string | undefined
  code: string | undefined
  param: string | undefined
} {
  const given = (typeof error === 'object' && error !== null ? error : {}) as Record<
    string,
    unknown
  >
  // Only what has the form of a code: other texts may quote what was sent.
  const word = (name: string): string | undefined => {
    const value = given[name]
    return typeof value === 'string' && /^[\w.[\]-]{1,80}$/.test(value) ? value : undefined
  }
  return { type: word('type'), code: word('code'), param: word('param') }
}

/** How long the answer asks to wait, in milliseconds; null where it does not say. */
export function retryAfterMs({ headers }: Pick<SeenAnswer, 'headers'>): number | null {
  const text = headers['retry-after']?.trim() ?? ''
  if (/^\d{1,9}$/.test(text)) return Math.min(Number(text) * 1000, longestWaitMs)
  const at = Date.parse(text)
  if (text === '' || Number.isNaN(at)) return null
  const from = Date.parse(headers['date'] ?? '')
  return Math.min(Math.max(0, at - (Number.isNaN(from) ? Date.now() : from)), longestWaitMs)
}
