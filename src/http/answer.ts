/**
 * What is said to a sender: a status, and a small JSON body that tells nothing of secrets, expected
 * signatures or the inside of the process.
 */
import { Buffer } from 'node:buffer'
import type { ServerResponse } from 'node:http'
import type { ErrorCode } from '../core/errors.ts'

/** An answer, ready to be sent. */
export interface Answer {
  readonly status: number
  readonly body: string
  readonly headers?: Readonly<Record<string, string>>
}

/** A request that is refused, why (a word for counters), and what is said. */
export interface Refusal {
  readonly reason: string
  readonly answer: Answer
}

/** What `ingest` makes of a request, as far as HTTP is concerned. */
export interface IngestAnswer {
  readonly status: number
  readonly code?: string
  readonly message?: string
  readonly retryAfterSeconds?: number
}

const received: Answer = { status: 200, body: '{"received":true}' }

/** The answer for an outcome of `ingest`. */
export function answerOf(outcome: IngestAnswer): Answer {
  if (outcome.status === 200) return received
  const { status, code = 'HKL_INBOX_UNAVAILABLE', message = '', retryAfterSeconds } = outcome
  const headers =
    retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) }
  return { status, body: errorBody(code, message), headers }
}

/** A refusal by the transport itself. */
export function refusal(
  status: number,
  reason: string,
  message: string,
  options: { code?: ErrorCode; headers?: Readonly<Record<string, string>> } = {},
): Refusal {
  const { code = 'HKL_HTTP_REQUEST_REFUSED', headers = {} } = options
  return { reason, answer: { status, body: errorBody(code, message), headers } }
}

function errorBody(code: string, message: string): string {
  return JSON.stringify({ error: { code, message } })
}

/** Sends an answer. A response whose connection is gone takes it silently. */
export function send(response: ServerResponse, answer: Answer): void {
  if (response.headersSent || response.destroyed) return
  response.writeHead(answer.status, {
    ...answer.headers,
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(answer.body),
  })
  response.end(answer.body)
}
