/**
 * What goes back to the caller: an answer, an error in Stripe's words, or nothing at all where a planted
 * fault cuts the connection.
 */
import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { StripeApiError } from './api-error.ts'
import type { FaultRule } from './faults.ts'
import { apiVersion } from './object-kinds.ts'

/** An answer. */
export interface Answer {
  status: number
  body: string
  headers?: Record<string, string>
  /** Whether it came from the idempotency store. */
  replayed?: boolean
  /** Whether the endpoint did its work. */
  executed?: boolean
}

/** Thrown inside a call to cut its connection. */
export class Cut extends Error {
  readonly executed: boolean

  constructor(executed: boolean) {
    super('connection cut')
    this.executed = executed
  }
}

/** Waits, cuts or answers as the fault says; undefined when the call goes on. */
export async function suffer(fault: FaultRule, executed: boolean): Promise<Answer | undefined> {
  if (fault.delayMs !== undefined) await sleep(fault.delayMs)
  if (fault.reset) throw new Cut(executed)
  if (!fault.respond) return undefined
  const { status, body, headers } = fault.respond
  const planted = body ?? {
    error: { type: 'api_error', message: 'An error planted by the simulation.' },
  }
  return {
    status,
    body: typeof planted === 'string' ? planted : JSON.stringify(planted),
    ...(headers && { headers }),
  }
}

/** Writes the answer, unless the caller has gone. */
export function send(
  response: ServerResponse,
  answer: Answer,
  head: { requestId: string; key: string | null; account: string | null },
): void {
  if (response.destroyed) return
  response.writeHead(answer.status, {
    'content-type': 'application/json',
    'request-id': head.requestId,
    'stripe-version': apiVersion,
    ...(head.key !== null && { 'idempotency-key': head.key }),
    ...(head.account !== null && { 'stripe-account': head.account }),
    ...answer.headers,
  })
  response.end(answer.body)
}

/** The answer of a call that failed. */
export function errorAnswer(error: unknown): Answer {
  if (error instanceof StripeApiError) {
    return { status: error.status, body: JSON.stringify({ error: error.body }, null, 2) }
  }
  const message = error instanceof Error ? error.message : 'unknown'
  const body = {
    error: { type: 'api_error', message: `The simulated provider failed: ${message}` },
  }
  return { status: 500, body: JSON.stringify(body, null, 2) }
}
