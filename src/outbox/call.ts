/**
 * One call of a destination, with an end: whatever the destination does, an outcome comes back by the
 * deadline. What went wrong before anything was sent is told apart from what nobody knows.
 */
import { checkedOutcome } from './checked-outcome.ts'
import type { Destination, OutgoingRequest } from './destination.ts'
import type { LeasedOperation } from './dispatch-context.ts'
import type { AttemptOutcome } from './next-step.ts'
import { sentKey } from './operation-id.ts'

/** After the deadline a destination that ignores its signal is no longer waited for, in milliseconds. */
const graceMs = 250

/** The calls of one lane that are under way, so that all of them can be ended. */
export class CallsUnderWay {
  readonly #ends = new Set<(why: string) => void>()
  #stopped = false

  get stopped(): boolean {
    return this.#stopped
  }

  add(end: (why: string) => void): void {
    this.#ends.add(end)
  }

  delete(end: (why: string) => void): void {
    this.#ends.delete(end)
  }

  /** Ends what is under way, and lets nothing more begin. */
  stop(): void {
    this.#stopped = true
    for (const end of this.#ends) end('no answer before the dispatcher stopped')
  }
}

/** Calls or looks up. Never rejects. */
export async function callDestination(
  destination: Destination,
  operation: LeasedOperation,
  calls: CallsUnderWay,
): Promise<AttemptOutcome> {
  const { contract } = destination
  const { operationId, request, standing, kind, recordedAt } = operation
  if (request === null) {
    const error = 'its request is no longer kept'
    return kind === 'lookup'
      ? { kind: 'no_answer', error }
      : { kind: 'refused', error, settlesEarlier: false }
  }
  // a process that was stopped meanwhile must not send under a lease that others take for lost
  const left = contract.leaseMs - (performance.now() - operation.leasedAt)
  if (left < contract.callMs) return notCalled(kind, 'its lease was too old to begin a call')
  if (calls.stopped) return notCalled(kind, 'the dispatcher stops')
  const outgoing = {
    operationId,
    key: sentKey(operationId, standing.generation),
    request,
    ...(recordedAt !== null && { recordedAt }),
  }
  try {
    return checkedOutcome(kind, await withDeadline(destination, outgoing, kind, calls))
  } catch (error) {
    return unknown(kind, textOf(error))
  }
}

/** What an attempt is that never left this process. */
export function notCalled(kind: 'call' | 'lookup', error: string): AttemptOutcome {
  return kind === 'lookup'
    ? { kind: 'no_answer', error, called: false }
    : { kind: 'retry', error: `not called: ${error}`, called: false }
}

function unknown(kind: 'call' | 'lookup', error: string): AttemptOutcome {
  return kind === 'lookup' ? { kind: 'no_answer', error } : { kind: 'uncertain', error }
}

/** The destination's own outcome, or what a call without one is. */
async function withDeadline(
  destination: Destination,
  outgoing: OutgoingRequest,
  kind: 'call' | 'lookup',
  calls: CallsUnderWay,
): Promise<AttemptOutcome> {
  const { callMs } = destination.contract
  const controller = new AbortController()
  let hard: NodeJS.Timeout | undefined
  let resolveLate: (outcome: AttemptOutcome) => void = () => {}
  const late = new Promise<AttemptOutcome>((resolve) => (resolveLate = resolve))
  const end = (why: string): void => {
    controller.abort(new Error(why))
    hard ??= setTimeout(() => {
      resolveLate(unknown(kind, why))
    }, graceMs)
  }
  calls.add(end)
  const soft = setTimeout(() => {
    end(`no answer within ${callMs} ms`)
  }, callMs)
  try {
    const call =
      kind === 'lookup' && destination.lookup !== undefined
        ? destination.lookup(outgoing, controller.signal)
        : destination.call(outgoing, controller.signal)
    return await Promise.race([call, late])
  } finally {
    clearTimeout(soft)
    clearTimeout(hard)
    calls.delete(end)
  }
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message.slice(0, 300) : 'failed without an error'
}
