/**
 * A handler for node:http: reads the body's exact bytes within limits, hands them to `ingest` and
 * answers what it says. It never rejects, and it never answers 2xx by itself.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { areStepsPlanned, reach } from '../core/failpoints.ts'
import type { Limits } from '../core/limits.ts'
import type { IngestAnswer, Refusal } from './answer.ts'
import { answerOf, send } from './answer.ts'
import { sendUnread } from './linger.ts'
import type { RawBody } from './raw-body.ts'
import { readRawBody } from './raw-body.ts'
import {
  bodyConsumed,
  bodyTooLarge,
  bodyTooSlow,
  failedInside,
  judgeHead,
  judgeMethod,
  sourceUnknown,
} from './request-rules.ts'

/** Stores one delivery; the receiver's `ingest` fits. */
export type Ingest = (request: {
  readonly source: string
  readonly headers: (name: string) => string | undefined
  readonly rawBody: Uint8Array
}) => Promise<IngestAnswer>

/** What every mount needs. */
export interface MountOptions {
  readonly ingest: Ingest
  readonly limits: Pick<Limits, 'bodyBytes' | 'requestTimeoutMs'>
  /** Lets an unknown source be refused before its body is read. */
  readonly hasSource?: (name: string) => boolean
  /** Told of what was refused before `ingest` saw it: a word for counters. */
  readonly onRefused?: (source: string, reason: string, status: number) => void
}

/** Options of `createNodeHandler`. */
export interface NodeHandlerOptions extends MountOptions {
  /** The configured name of the source, or how to find it; undefined is answered 404. */
  readonly source: string | ((request: IncomingMessage) => string | undefined)
}

/** Handles one request. */
export type NodeHandler = (request: IncomingMessage, response: ServerResponse) => Promise<void>

/**
 * A handler for `http.createServer`, and what the other mounts are made of.
 *
 * @example createServer(createNodeHandler({ ingest, limits, source: 'stripe' }))
 */
export function createNodeHandler(options: NodeHandlerOptions): NodeHandler {
  return async (request, response) => {
    // a sender that leaves in the middle must not become an unhandled error
    request.on('error', ignore)
    response.on('error', ignore)
    const { source: given } = options
    const source = (typeof given === 'string' ? given : given(request)) ?? ''
    try {
      await receive(options, source, request, response)
    } catch {
      refuse(options, source, request, response, failedInside)
    }
  }
}

async function receive(
  options: MountOptions,
  source: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const begun = reach('R1')
  if (begun !== undefined) await begun
  const unknown = source === '' || options.hasSource?.(source) === false
  const objection =
    judgeMethod(request) ?? judgeHead(request) ?? (unknown ? sourceUnknown : undefined)
  if (objection !== undefined) return refuse(options, source, request, response, objection)

  const body = await readRawBody(request, options.limits)
  if ('failure' in body) return refuseBody(options, source, request, response, body.failure)
  const read = reach('R2')
  if (read !== undefined) await read

  const { headers } = request
  const outcome = await options.ingest({
    source,
    headers: (name) => singleText(headers[name]),
    rawBody: body.bytes,
  })
  if (request.complete) send(response, answerOf(outcome))
  else sendUnread(request, response, answerOf(outcome))
  if (areStepsPlanned()) await afterAnswer(response)
}

/** The steps after an answer; what fails here must not be answered again. */
async function afterAnswer(response: ServerResponse): Promise<void> {
  try {
    await reach('R9')
    if (!response.writableFinished) response.once('finish', () => void flushed(response))
    else await flushed(response)
  } catch {
    response.destroy()
  }
}

async function flushed(response: ServerResponse): Promise<void> {
  try {
    await reach('R10')
  } catch {
    response.destroy()
  }
}

function refuseBody(
  options: MountOptions,
  source: string,
  request: IncomingMessage,
  response: ServerResponse,
  failure: Extract<RawBody, { failure: unknown }>['failure'],
): void {
  if (failure === 'aborted') {
    options.onRefused?.(source, 'aborted', 499)
    response.destroy()
    return
  }
  const refusals = { too_large: bodyTooLarge, too_slow: bodyTooSlow, consumed: bodyConsumed }
  refuse(options, source, request, response, refusals[failure])
}

function refuse(
  options: MountOptions,
  source: string,
  request: IncomingMessage,
  response: ServerResponse,
  { reason, answer }: Refusal,
): void {
  options.onRefused?.(source, reason, answer.status)
  sendUnread(request, response, answer)
}

function singleText(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === 'object' ? value.join(', ') : value
}

function ignore(): void {}
