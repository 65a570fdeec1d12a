/**
 * What an HTTP answer says about an operation. Only a 2xx says that it was done, and only an answer
 * that the destination gives after looking at the operation says that it was not; the rest is nobody's
 * knowledge.
 */
import type { CallOutcome, DestinationContract, Receipt } from '../destination.ts'
import type { Answered } from './pending-exchange.ts'
import { keptReceipt, pickReceipt } from './receipt.ts'
import type { Redactor } from './redact.ts'
import { retryAfterMs } from './retry-after.ts'

/** An answer as a person's functions see it. */
export interface HttpAnswer {
  readonly status: number
  /** A header's value, or undefined; the name in any case. */
  header(name: string): string | undefined
  /** The beginning of the body, at most 64 KiB; 4 KiB of it are kept. */
  readonly text: string
  /** The body as JSON; undefined when it is none, or is not complete. */
  readonly json: unknown
  /** Whether `text` is the whole body. */
  readonly isComplete: boolean
}

/** The operation that an answer is about. */
export interface AnsweredOperation {
  readonly operationId: string
  readonly key: string
}

/** What a person says that an answer of 2xx means; `true` is `sent` and `false` is `refused`. */
export type Acceptance = boolean | 'sent' | 'retry' | 'refused' | 'uncertain'

/** How the answers of a destination are read. */
export interface AnswerReading {
  readonly accepts?: ((answer: HttpAnswer, operation: AnsweredOperation) => Acceptance) | undefined
  readonly proves?: ((answer: HttpAnswer, operation: AnsweredOperation) => boolean) | undefined
  readonly receipt?: ((answer: HttpAnswer) => Readonly<Record<string, unknown>>) | undefined
}

/** What is needed beside the answer. */
export interface VerdictContext {
  readonly reading: AnswerReading
  readonly contract: DestinationContract
  readonly operation: AnsweredOperation
  readonly redactor: Redactor
  readonly nowMs: number
}

/** The answer for a person's functions. */
export function readableAnswer(answer: Answered): HttpAnswer {
  const text = new TextDecoder().decode(answer.body)
  const isComplete = answer.end === 'complete'
  return Object.freeze({
    status: answer.status,
    header: (name: string) => {
      const lower = name.toLowerCase()
      return Object.hasOwn(answer.headers, lower) ? answer.headers[lower] : undefined
    },
    text,
    json: isComplete ? parseJson(text) : undefined,
    isComplete,
  })
}

/** What the call came to. */
export function verdict(answer: Answered, context: VerdictContext): CallOutcome {
  const { contract, redactor, nowMs } = context
  const readable = readableAnswer(answer)
  const seen = {
    status: answer.status,
    ...(answer.body.byteLength > 0 && { answer: redactor.answer(answer.body) }),
  }
  const headers = { retryAfter: readable.header('retry-after'), date: readable.header('date') }
  const delay = retryAfterMs(headers, nowMs, contract.maxRetryMs)
  const judged = judge(answer, readable, context)
  if (judged.kind === 'sent' || judged.kind === 'refused') return { ...judged, ...seen }
  return { ...judged, ...seen, ...(delay !== undefined && { retryAfterMs: delay }) }
}

function judge(answer: Answered, readable: HttpAnswer, context: VerdictContext): CallOutcome {
  const { status } = answer
  if (status >= 200 && status < 300) return judgeSuccess(answer, readable, context)
  if (status >= 400 && isProven(readable, context)) {
    return { kind: 'sent', receipt: receiptOf(readable, context) }
  }
  return judgeFailure(status, context)
}

function judgeSuccess(
  answer: Answered,
  readable: HttpAnswer,
  context: VerdictContext,
): CallOutcome {
  const { accepts } = context.reading
  const sent = (): CallOutcome => ({ kind: 'sent', receipt: receiptOf(readable, context) })
  if (accepts === undefined) return sent()
  const error = `HTTP ${answer.status}, which accepts() did not take`
  // What would have followed could be the error that it is asked about.
  if (answer.end !== 'complete') {
    return {
      kind: 'uncertain',
      error:
        answer.end === 'cut'
          ? `HTTP ${answer.status}, and the answer is too long for accepts() to be asked`
          : `HTTP ${answer.status}, and the rest of the answer did not come`,
    }
  }
  let accepted: Acceptance
  try {
    accepted = accepts(readable, context.operation)
  } catch {
    return { kind: 'uncertain', error: `HTTP ${answer.status}, and accepts() threw` }
  }
  if (accepted === true || accepted === 'sent') return sent()
  if (accepted === false || accepted === 'refused') return refused(error, true, context)
  return accepted === 'retry' ? { kind: 'retry', error } : { kind: 'uncertain', error }
}

/** Statuses that are given before anybody looks at the operation: by a gate, a router, a parser. */
const atTheDoor: ReadonlySet<number> = new Set([
  403, 404, 405, 406, 411, 413, 414, 415, 417, 421, 426, 431, 451,
])

const notNow: ReadonlySet<number> = new Set([408, 425, 429])

/** Said of our credentials and not of the operation: what a person mends once must not end all that wait. */
const notUs: ReadonlySet<number> = new Set([401, 407])

function judgeFailure(status: number, context: VerdictContext): CallOutcome {
  const error = `HTTP ${status}`
  if (status < 400) {
    return refused(`${error}: a redirect is not followed; give the final url`, false, context)
  }
  if (notNow.has(status)) return { kind: 'retry', error }
  if (notUs.has(status)) {
    return {
      kind: 'retry',
      error: `${error}: it does not take our credentials; look at secretHeaders`,
    }
  }
  if (status === 409) {
    return { kind: 'uncertain', error: `${error}: another call with this key may be under way` }
  }
  if (status >= 500) return { kind: 'uncertain', error }
  return refused(error, !atTheDoor.has(status), context)
}

/** A destination that knows no key says nothing about an earlier call, whatever it says of this one. */
function refused(error: string, settles: boolean, { contract }: VerdictContext): CallOutcome {
  return { kind: 'refused', error, settlesEarlier: settles && contract.idempotency === 'key' }
}

function isProven(readable: HttpAnswer, { reading, operation }: VerdictContext): boolean {
  try {
    return reading.proves?.(readable, operation) === true
  } catch {
    return false
  }
}

function receiptOf(readable: HttpAnswer, { reading }: VerdictContext): Receipt {
  const status = { status: readable.status }
  if (reading.receipt === undefined) {
    return keptReceipt({ ...status, ...pickReceipt(readable.json, ['id']) })
  }
  try {
    return keptReceipt({ ...status, ...reading.receipt(readable) })
  } catch {
    return status
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}
