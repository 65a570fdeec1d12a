/** Requests as a dispatcher hands them to a destination. */
import type {
  CallOutcome,
  Destination,
  LookupOutcome,
  OutgoingRequest,
} from '../../../src/outbox/destination.ts'

/** The operation of most tests. */
export const operationId = '0b6c1a52-7c2f-5d0a-9a6e-1f0f7c3e2b11'

/** The request of a body, encoded by the destination; under a later generation where given. */
export function outgoing<Body>(
  destination: Destination<Body>,
  body: Body,
  options: { id?: string; generation?: number; recordedAt?: Date } = {},
): OutgoingRequest {
  const { id = operationId, generation = 1, recordedAt } = options
  return {
    operationId: id,
    key: generation === 1 ? id : `${id}:${generation}`,
    request: destination.encode({ operationId: id, body, orderId: 'order-1' }),
    ...(recordedAt !== undefined && { recordedAt }),
  }
}

/** Encodes and calls, with a signal that never ends the call. */
export function callWith<Body>(
  destination: Destination<Body>,
  body: Body,
  options: { id?: string; generation?: number; signal?: AbortSignal } = {},
): Promise<CallOutcome> {
  const { signal = new AbortController().signal, ...rest } = options
  return destination.call(outgoing(destination, body, rest), signal)
}

/** Looks an operation up, with a signal that never ends it. */
export async function lookUpWith<Body>(
  destination: Destination<Body>,
  request: OutgoingRequest,
  signal: AbortSignal = new AbortController().signal,
): Promise<LookupOutcome> {
  if (destination.lookup === undefined) throw new Error('this destination has no lookup')
  return destination.lookup(request, signal)
}
