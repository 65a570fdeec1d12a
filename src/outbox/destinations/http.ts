/**
 * Operations as HTTP requests: the bytes that were stored with the operation, under its key, signed as
 * Standard Webhooks where a secret is given; sent once an attempt to an address that was checked, and
 * judged by what the answer proves.
 */
import { HookledgerError, isPermanent, PermanentError } from '../../core/errors.ts'
import type {
  CallOutcome,
  Destination,
  EncodedSend,
  LookupOutcome,
  OutgoingRequest,
} from '../destination.ts'
import { withDeferredProblem } from './deferred-problem.ts'
import { readableAnswer, verdict, type HttpAnswer } from './http-answer.ts'
import type { HttpOptions, HttpRequestShape, ResolvedHttpOptions } from './http-options.ts'
import { resolveHttpOptions } from './http-options.ts'
import type { StoredHttpRequest } from './http-request.ts'
import {
  httpMethods,
  isHeaderValue,
  readHttpRequest,
  targetUrl,
  writeHttpRequest,
} from './http-request.ts'
import { checkHeaders } from './header-rules.ts'
import { jsonBody } from './json-body.ts'
import { checkedLookup } from './lookup-outcome.ts'
import type { Resolve } from './pinned-connect.ts'
import { createRedactor, type Redactor } from './redact.ts'
import { withDeadline } from './ended.ts'
import { createTransport, type Transport } from './transport.ts'

/** What a test replaces. */
export interface HttpWorld {
  readonly resolve?: Resolve
  readonly nowMs?: () => number
}

const json = 'application/json'
const readAnswerBytes = 64 * 1024

/**
 * A destination that takes HTTP requests. A bad option becomes its `problem`, at which the start stops.
 * @example
 * http({ url: process.env.EMAIL_URL, secretHeaders: { authorization: `Bearer ${token}` } })
 */
export function http<Body = unknown>(
  options: HttpOptions<Body>,
  world: HttpWorld = {},
): Destination<Body> {
  return withDeferredProblem<Body>('http', () => {
    const resolved = resolveHttpOptions(options)
    const { encode, call, lookup, close } = new HttpDestination(resolved, world)
    return Object.freeze({
      kind: 'http',
      contract: resolved.contract,
      encode,
      call,
      ...(resolved.lookup !== undefined && { lookup }),
      close,
    })
  })
}

class HttpDestination<Body> {
  readonly #options: ResolvedHttpOptions<Body>
  readonly #transport: Transport
  readonly #redactor: Redactor
  readonly #nowMs: () => number

  constructor(options: ResolvedHttpOptions<Body>, { resolve, nowMs = Date.now }: HttpWorld) {
    const { target, contract, secrets, ca } = options
    this.#options = options
    this.#nowMs = nowMs
    this.#redactor = createRedactor(secrets)
    this.#transport = createTransport({
      origin: target.url.origin,
      connections: contract.concurrency,
      isListed: target.isListed,
      timeoutMs: Math.min(contract.callMs, 5000),
      ca,
      resolve,
    })
  }

  readonly encode = (send: EncodedSend<Body>): Uint8Array => {
    const { key, headers, method } = this.#options
    const shape: HttpRequestShape = this.#options.request?.(send) ?? { body: send.body }
    // a promise has no body, and an empty request would be sent in its place
    if (typeof (shape as { then?: unknown }).then === 'function')
      throw new PermanentError('request() must answer at once: it cannot be asynchronous')
    const chosen = shape.method ?? method
    if (!httpMethods.includes(chosen)) throw new PermanentError('the method is not one to send')
    const { path = '', contentType = json } = shape
    targetUrl(this.#options.target.url, path)
    if (!isHeaderValue(contentType)) throw new PermanentError('the content type is not a header')
    const field = 'field' in key ? { name: key.field, operationId: send.operationId } : undefined
    return writeHttpRequest({
      method: chosen,
      path,
      contentType,
      headers: { ...headers, ...addedHeaders(shape.headers, key) },
      body: bodyText(shape.body, contentType, field),
    })
  }

  readonly call = async (request: OutgoingRequest, signal: AbortSignal): Promise<CallOutcome> => {
    const stored = readHttpRequest(request.request)
    if (stored === undefined) return unreadable
    try {
      const { contract, reading } = this.#options
      const body = new TextEncoder().encode(stored.body)
      const answer = await this.#transport.exchange(
        {
          method: stored.method,
          url: targetUrl(this.#options.target.url, stored.path),
          headers: this.#headers(request, stored, body),
          body,
          maxAnswerBytes: readAnswerBytes,
          deadlineMs: contract.callMs,
          isAlone: contract.idempotency === 'none',
        },
        signal,
      )
      if (answer.kind === 'unanswered') {
        const error = this.#redactor.text(answer.error)
        return { kind: answer.isWritten ? 'uncertain' : 'retry', error }
      }
      const operation = { operationId: request.operationId, key: request.key }
      const context = { reading, contract, operation, redactor: this.#redactor }
      return verdict(answer, { ...context, nowMs: this.#nowMs() })
    } catch (error) {
      if (isPermanent(error)) return unreadable
      return { kind: 'uncertain', error: 'the call failed inside the destination' }
    }
  }

  readonly lookup = (request: OutgoingRequest, signal: AbortSignal): Promise<LookupOutcome> =>
    withDeadline(signal, this.#options.contract.callMs, (until) =>
      checkedLookup(until, this.#redactor, () => {
        const stored = readHttpRequest(request.request)
        const { operationId, key } = request
        const get = (path: string): Promise<HttpAnswer> => this.#get(path, until)
        return this.#options.lookup?.({ operationId, key, body: stored?.body ?? '', get })
      }),
    )

  readonly close = (): Promise<void> => this.#transport.close()

  async #get(path: string, signal: AbortSignal): Promise<HttpAnswer> {
    const answer = await this.#transport.exchange(
      {
        method: 'GET',
        url: targetUrl(this.#options.target.url, path),
        headers: { ...common, ...this.#options.secretHeaders },
        body: new Uint8Array(),
        maxAnswerBytes: readAnswerBytes,
        deadlineMs: this.#options.contract.callMs,
        isAlone: false,
      },
      signal,
    )
    if (answer.kind === 'answered') return readableAnswer(answer)
    throw new HookledgerError(
      'HKL_HTTP_REQUEST_REFUSED',
      `the lookup had no answer: ${answer.error}`,
    )
  }

  #headers(
    { key: operationKey }: OutgoingRequest,
    stored: StoredHttpRequest,
    body: Uint8Array,
  ): Readonly<Record<string, string>> {
    const { key, secretHeaders, signer } = this.#options
    return {
      ...common,
      ...stored.headers,
      ...secretHeaders,
      ...(body.byteLength > 0 && { 'content-type': stored.contentType }),
      ...('header' in key && { [key.header]: operationKey }),
      ...signer?.headers(operationKey, Math.floor(this.#nowMs() / 1000), body),
    }
  }
}

const common: Readonly<Record<string, string>> = {
  accept: 'application/json, */*;q=0.5',
  'accept-encoding': 'identity',
  'user-agent': 'hookledger',
}

const unreadable: CallOutcome = Object.freeze({
  kind: 'refused',
  error: 'the stored request cannot be sent by this version, or by this configuration',
  settlesEarlier: false,
})

function addedHeaders(
  headers: HttpRequestShape['headers'],
  key: ResolvedHttpOptions<unknown>['key'],
): Readonly<Record<string, string>> {
  try {
    return checkHeaders('request()', 'headers', headers, 'header' in key ? key.header : null)
  } catch (cause) {
    throw new PermanentError(cause instanceof Error ? cause.message : 'bad headers', { cause })
  }
}

function bodyText(
  body: unknown,
  contentType: string,
  field: { name: string; operationId: string } | undefined,
): string {
  const isJson = /^application\/(?:[\w.-]+\+)?json\b/i.test(contentType)
  if (field === undefined) {
    if (body === undefined) return ''
    if (isJson) return jsonBody(body)
    if (typeof body === 'string') return body.toWellFormed()
    throw new PermanentError('the body must be a text, or the content type JSON')
  }
  const isObject = typeof body === 'object' && body !== null && !Array.isArray(body)
  if (!isJson || !isObject) {
    throw new PermanentError('the body must be a JSON object, since the key is one of its fields')
  }
  if (Object.hasOwn(body, field.name)) {
    throw new PermanentError(`the body has a field ${field.name}, which is the key's`)
  }
  return jsonBody({ ...body, [field.name]: field.operationId })
}
