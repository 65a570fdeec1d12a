/**
 * Receiving for frameworks that speak Fetch: a Request in, a Response out. The body is read here, once,
 * as bytes and within the limits; the answer says 200 only when the delivery is stored.
 */
import { Buffer } from 'node:buffer'
import type { ErrorCode } from '../core/errors.ts'
import { reach } from '../core/failpoints.ts'
import type { Limits } from '../core/limits.ts'
import type { IngestOutcome, Receiver } from './receiver.ts'

/** How a request is received. */
export interface ReceiveOptions {
  /** The name under which the source is configured. */
  readonly source: string
  /**
   * The platform's promise to keep the process alive after the response. With it, the delivered events
   * are worked off here and now, for hosts that run no worker.
   */
  readonly waitUntil?: (work: Promise<unknown>) => void
}

/** What receiving Fetch requests needs. */
export interface RequestReceiverOptions {
  readonly receiver: Pick<Receiver, 'ingest' | 'refuse' | 'hasSource'>
  readonly limits: Pick<Limits, 'bodyBytes' | 'requestTimeoutMs'>
  /** Works off these events; what fails is tried again by the next worker. */
  readonly workOff: (eventKeys: readonly bigint[]) => Promise<unknown>
}

/** Receives one request. Never rejects. */
export type RequestReceiver = (request: Request, options: ReceiveOptions) => Promise<Response>

/** Makes `receive(request, { source, waitUntil })`. */
export function createRequestReceiver(options: RequestReceiverOptions): RequestReceiver {
  return async (request, { source, waitUntil }) => {
    try {
      const outcome = await receive(options, request, source)
      if (outcome.status === 200 && waitUntil !== undefined) {
        const keys = unfinished(outcome)
        if (keys.length > 0)
          keepAlive(
            waitUntil,
            options.workOff(keys).catch(() => {}),
          )
      }
      return toResponse(outcome)
    } catch {
      return toResponse(failedInside)
    }
  }
}

/** A platform that refuses to wait (its request context is gone) takes nothing back of what is stored. */
function keepAlive(waitUntil: (work: Promise<unknown>) => void, work: Promise<unknown>): void {
  try {
    waitUntil(work)
  } catch {
    // the work goes on as long as the process does; whatever it leaves is for the next worker
  }
}

interface RequestRefusal {
  readonly status: 400 | 404 | 405 | 408 | 413 | 415 | 503
  readonly code: ErrorCode
  readonly message: string
  readonly retryAfterSeconds?: number
}

type Outcome = IngestOutcome | RequestRefusal

async function receive(
  { receiver, limits }: RequestReceiverOptions,
  request: Request,
  source: string,
): Promise<Outcome> {
  await reach('R1')
  const objection = judge(request, limits.bodyBytes)
  if (objection !== undefined) return receiver.refuse(source, ...objection)
  // an unknown source is told so before its body is read
  if (!receiver.hasSource(source)) {
    return receiver.ingest({ source, headers: request.headers, rawBody: new Uint8Array() })
  }
  const body = await readBody(request, limits)
  if (!(body instanceof Uint8Array)) return receiver.refuse(source, ...body)
  await reach('R2')
  return receiver.ingest({ source, headers: request.headers, rawBody: body })
}

function judge(request: Request, bodyBytes: number): [string, RequestRefusal] | undefined {
  if (request.method !== 'POST') return ['method', wrongMethod]
  const encoding = request.headers.get('content-encoding')
  if (encoding !== null && encoding.trim().toLowerCase() !== 'identity') {
    return ['content_encoding', encoded]
  }
  if (Number(request.headers.get('content-length') ?? 0) > bodyBytes) return ['too_large', tooLarge]
  return request.bodyUsed ? ['body_consumed', bodyConsumed] : undefined
}

/** The exact bytes, or why there are none. */
async function readBody(
  request: Request,
  limits: RequestReceiverOptions['limits'],
): Promise<Uint8Array | [string, RequestRefusal]> {
  if (request.body === null) return new Uint8Array()
  let reader: ReadableStreamDefaultReader<Uint8Array>
  try {
    reader = request.body.getReader() as ReadableStreamDefaultReader<Uint8Array>
  } catch {
    return ['body_consumed', bodyConsumed] // somebody else holds the stream
  }
  let late = false
  const timer = setTimeout(() => {
    late = true
    reader.cancel().catch(() => {})
  }, limits.requestTimeoutMs)
  try {
    const bytes = await collect(reader, limits.bodyBytes)
    if (late) return ['too_slow', tooSlow]
    return bytes ?? ['too_large', tooLarge]
  } catch {
    return ['aborted', cutOff]
  } finally {
    clearTimeout(timer)
  }
}

/** Undefined when there is more than `most` bytes; the rest is not read. */
async function collect(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  most: number,
): Promise<Uint8Array | undefined> {
  const chunks: Uint8Array[] = []
  let size = 0
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return Buffer.concat(chunks, size)
    size += value.byteLength
    if (size > most) {
      reader.cancel().catch(() => {})
      return undefined
    }
    chunks.push(value)
  }
}

/** The events of a delivery that have no final decision yet: a duplicate may be somebody's unfinished work. */
function unfinished({ events }: Extract<IngestOutcome, { status: 200 }>): bigint[] {
  return events.flatMap(({ eventKey, decision }) =>
    eventKey === null || decision !== null ? [] : [eventKey],
  )
}

function toResponse(outcome: Outcome): Response {
  if (outcome.status === 200) return jsonResponse(200, { received: true })
  const { status, code, message } = outcome
  const headers: Record<string, string> = {}
  if (outcome.retryAfterSeconds !== undefined)
    headers['retry-after'] = String(outcome.retryAfterSeconds)
  if (status === 405) headers['allow'] = 'POST'
  return jsonResponse(status, { error: { code, message } }, headers)
}

function jsonResponse(
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Response {
  return new Response(JSON.stringify(body), {
    status,
    headers: { ...headers, 'content-type': 'application/json' },
  })
}

const wrongMethod: RequestRefusal = {
  status: 405,
  code: 'HKL_HTTP_REQUEST_REFUSED',
  message: 'deliveries are sent by POST',
}

const encoded: RequestRefusal = {
  status: 415,
  code: 'HKL_HTTP_REQUEST_REFUSED',
  message: 'send the body without content-encoding',
}

const tooLarge: RequestRefusal = {
  status: 413,
  code: 'HKL_INBOX_BODY_TOO_LARGE',
  message: 'the body is larger than this endpoint takes',
}

const tooSlow: RequestRefusal = {
  status: 408,
  code: 'HKL_HTTP_REQUEST_REFUSED',
  message: 'the body did not arrive in time',
}

const cutOff: RequestRefusal = {
  status: 400,
  code: 'HKL_HTTP_REQUEST_REFUSED',
  message: 'the body did not arrive whole',
}

/** 503, because the provider must not give the event up for a mistake in the app. */
const bodyConsumed: RequestRefusal = {
  status: 503,
  code: 'HKL_INBOX_BODY_CONSUMED',
  message:
    'the body was read before receive() was called, so its signature cannot be checked: pass the request untouched (no request.json() or request.text() before), or pass the bytes to ingest()',
  retryAfterSeconds: 60,
}

const failedInside: RequestRefusal = {
  status: 503,
  code: 'HKL_INBOX_UNAVAILABLE',
  message: 'the delivery is not stored; send it again',
  retryAfterSeconds: 5,
}
