/**
 * Operations as calls of a person's function, under the contract that the person declares. What it
 * throws means that nobody knows, unless it says otherwise.
 */
import { HookledgerError, isPermanent } from '../../core/errors.ts'
import { reach } from '../../core/failpoints.ts'
import type {
  CallOutcome,
  Destination,
  DestinationContract,
  EncodedSend,
  LookupOutcome,
  OutgoingRequest,
} from '../destination.ts'
import type { DeclaredContract } from './declared-contract.ts'
import { declaredContract } from './declared-contract.ts'
import { withDeferredProblem } from './deferred-problem.ts'
import { early, ended, withDeadline } from './ended.ts'
import { bigintsAsText, jsonBody, requestBytes } from './json-body.ts'
import { checkedLookup } from './lookup-outcome.ts'
import { isNotDone } from './not-done.ts'
import { keptReceipt } from './receipt.ts'
import { createRedactor } from './redact.ts'

/** What the function gets: the same body and id at every attempt. */
export interface CustomCall<Body = unknown> {
  readonly operationId: string
  /** What the other side is to recognize the operation by. */
  readonly key: string
  readonly body: Body
  /** Ends the call: what is not done by then is uncertain. */
  readonly signal: AbortSignal
}

/** Options of `custom()`. */
export interface CustomOptions<Body = unknown> {
  /**
   * Does the operation and gives ids and figures for its receipt. Throw `NotDone` where it certainly
   * did nothing, `PermanentError` where it will never be accepted; anything else thrown is uncertain.
   */
  readonly call: (call: CustomCall<Body>) => Promise<Readonly<Record<string, unknown>> | void>
  /** Looks whether it was done; `absent` only by proof. */
  readonly lookup?: ((call: CustomCall<Body>) => Promise<LookupOutcome>) | undefined
  /** What the function promises; `idempotency` must be said. */
  readonly contract: DeclaredContract & Pick<DestinationContract, 'idempotency'>
}

const maker = 'custom()'
const nothing = createRedactor([])

/**
 * A destination that is a function. A bad option becomes its `problem`, at which the start stops.
 * @example
 * custom({ contract: { idempotency: 'none' }, call: async ({ body, signal }) => print(body, signal) })
 */
export function custom<Body = unknown>(options: CustomOptions<Body>): Destination<Body> {
  return withDeferredProblem<Body>('function', () => {
    const contract = checkOptions(options)
    return Object.freeze({
      kind: 'function',
      contract,
      encode: (send: EncodedSend<Body>) => requestBytes(jsonBody(send.body, bigintsAsText)),
      call: (request: OutgoingRequest, signal: AbortSignal) =>
        withDeadline(signal, contract.callMs, (until) => callOnce(options, request, until)),
      ...(options.lookup !== undefined && {
        lookup: (request: OutgoingRequest, signal: AbortSignal) =>
          withDeadline(signal, contract.callMs, (until) =>
            checkedLookup(until, nothing, () => options.lookup?.(toCall(request, until))),
          ),
      }),
    })
  })
}

function checkOptions<Body>(options: CustomOptions<Body>): DestinationContract {
  const given = options as { readonly [Name in keyof CustomOptions]?: unknown }
  if (typeof given.call !== 'function') throw wrong('call must be a function')
  if (given.lookup !== undefined && typeof given.lookup !== 'function') {
    throw wrong('lookup must be a function')
  }
  const declared = given.contract as DeclaredContract | undefined
  if (declared?.idempotency === undefined) {
    throw wrong(
      "contract.idempotency must be said: 'key' if the function honors the key that it gets, else 'none'",
    )
  }
  return declaredContract(maker, declared)
}

async function callOnce<Body>(
  options: CustomOptions<Body>,
  request: OutgoingRequest,
  until: AbortSignal,
): Promise<CallOutcome> {
  let call: CustomCall<Body>
  try {
    call = toCall<Body>(request, until)
  } catch {
    return { kind: 'refused', error: 'the stored request cannot be read', settlesEarlier: false }
  }
  try {
    await reach('D1')
    if (until.aborted) return { kind: 'retry', error: 'not called in time' }
    const result = await ended(until, async () => {
      const working = options.call(call)
      await reach('D2')
      return working
    })
    if (result === early) return { kind: 'uncertain', error: 'no answer in time' }
    await reach('D3')
    await reach('D4')
    return { kind: 'sent', receipt: keptReceipt(result) }
  } catch (error) {
    return thrown(error)
  }
}

function thrown(error: unknown): CallOutcome {
  if (isNotDone(error)) {
    const said = `not done: ${messageOf(error)}`
    if (error.forGood === true) return { kind: 'refused', error: said, settlesEarlier: true }
    return { kind: 'retry', error: said, ...delayOf(error.retryAfterMs) }
  }
  // It speaks of this call: an earlier one may have been done all the same.
  if (isPermanent(error)) return { kind: 'refused', error: messageOf(error), settlesEarlier: false }
  // Any other message is not ours, and may quote what must not be stored.
  const name = error instanceof Error && /^\w{1,60}$/.test(error.name) ? error.name : 'something'
  const asked = delayOf((error as { delayMs?: unknown } | null | undefined)?.delayMs)
  return { kind: 'uncertain', error: `the function threw ${name}`, ...asked }
}

function delayOf(value: unknown): { retryAfterMs?: number } {
  return typeof value === 'number' && value >= 0 && Number.isFinite(value)
    ? { retryAfterMs: value }
    : {}
}

function messageOf(error: unknown): string {
  const message: unknown = (error as { message?: unknown }).message
  return typeof message === 'string' ? nothing.text(message) : 'without a message'
}

function toCall<Body>(
  { operationId, key, request }: OutgoingRequest,
  signal: AbortSignal,
): CustomCall<Body> {
  const text = new TextDecoder('utf-8', { fatal: true }).decode(request)
  return Object.freeze({ operationId, key, body: JSON.parse(text) as Body, signal })
}

function wrong(problem: string): HookledgerError {
  return new HookledgerError('HKL_CONFIG_INVALID', `${maker}: ${problem}`)
}
