/** A destination whose answers a test scripts, with a log of what it was asked. */
import type {
  CallOutcome,
  Destination,
  DestinationContract,
  LookupOutcome,
  OutgoingRequest,
} from '../../src/outbox/destination.ts'
import { defaultContract } from '../../src/outbox/destination.ts'

/** One call that arrived. */
export interface ArrivedCall {
  readonly kind: 'call' | 'lookup'
  readonly operationId: string
  readonly key: string
  readonly body: string
  readonly at: number
}

/** How a call is answered. */
export type Answer<T> = T | ((call: ArrivedCall, signal: AbortSignal) => T | Promise<T>)

/** A destination under a test's hand. */
export interface ScriptedDestination extends Destination {
  readonly arrived: ArrivedCall[]
  /** Answers for the next calls, in order; then `otherwise`. */
  next(...answers: Answer<CallOutcome>[]): void
  otherwise(answer: Answer<CallOutcome>): void
  nextLookup(...answers: Answer<LookupOutcome>[]): void
  /** Most calls that were under way at once since the last reset. */
  peak(): number
  reset(): void
}

/** Nothing is tried again by itself while a test looks: it says when the time has come. */
export const quickContract: DestinationContract = {
  ...defaultContract,
  callMs: 2000,
  leaseMs: 6000,
  firstRetryMs: 60_000,
  maxRetryMs: 60_000,
  breakerFailures: 1000,
}

/** The answer that most calls get. */
export const done: CallOutcome = { kind: 'sent', receipt: { id: 'receipt_1' }, status: 200 }
/** Nobody knows. */
export const unknown: CallOutcome = { kind: 'uncertain', error: 'connection reset' }
/** Certainly not done, for now. */
export const busy: CallOutcome = { kind: 'retry', error: 'busy', status: 503 }

/** Creates one; `lookup` only where it is asked for. */
export function scripted(
  contract: Partial<DestinationContract> = {},
  options: { readonly lookup?: boolean } = {},
): ScriptedDestination {
  let answers: Answer<CallOutcome>[] = []
  let lookups: Answer<LookupOutcome>[] = []
  let fallback: Answer<CallOutcome> = done
  let underWay = 0
  let peak = 0
  const arrived: ArrivedCall[] = []
  const arrive = (kind: 'call' | 'lookup', request: OutgoingRequest): ArrivedCall => {
    const call = {
      kind,
      operationId: request.operationId,
      key: request.key,
      body: Buffer.from(request.request).toString(),
      at: performance.now(),
    }
    arrived.push(call)
    return call
  }
  return {
    kind: 'function',
    contract: { ...quickContract, ...contract },
    arrived,
    encode: ({ body }) => Buffer.from(JSON.stringify(body)),
    async call(request, signal) {
      const call = arrive('call', request)
      underWay++
      peak = Math.max(peak, underWay)
      try {
        const answer = answers.shift() ?? fallback
        return await (typeof answer === 'function' ? answer(call, signal) : answer)
      } finally {
        underWay--
      }
    },
    ...(options.lookup === true && {
      async lookup(request: OutgoingRequest, signal: AbortSignal): Promise<LookupOutcome> {
        const call = arrive('lookup', request)
        const answer = lookups.shift() ?? { kind: 'no_answer', error: 'nothing scripted' }
        return typeof answer === 'function' ? answer(call, signal) : answer
      },
    }),
    next: (...more) => answers.push(...more),
    nextLookup: (...more) => lookups.push(...more),
    otherwise: (answer) => {
      fallback = answer
    },
    peak: () => peak,
    reset() {
      answers = []
      lookups = []
      fallback = done
      peak = underWay
      arrived.length = 0
    },
  }
}
