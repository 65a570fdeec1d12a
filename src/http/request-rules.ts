/**
 * What is refused by the head of a request alone, before a byte of its body is read: what two parsers
 * could understand differently, and what would have to be undone before the signature can be checked.
 */
import type { IncomingMessage } from 'node:http'
import type { Refusal } from './answer.ts'
import { refusal } from './answer.ts'

/** Headers of which only one may exist: a signature of two values is nobody's signature. */
const singular = /^host$|signature|^(?:webhook|svix)-/

/** What a header's value may be made of; Node reads anything else as Latin-1 and hands it on. */
const plainValue = /^[\t\x20-\x7e]*$/

/** Refuses a head that no delivery needs; undefined when it may go on. */
export function judgeHead(request: IncomingMessage): Refusal | undefined {
  return judgeRawHeaders(request.rawHeaders) ?? judgeEncoding(request)
}

/** Only POST delivers. */
export function judgeMethod(request: IncomingMessage): Refusal | undefined {
  if (request.method === 'POST') return undefined
  return refusal(405, 'method', 'deliveries are sent by POST', { headers: { allow: 'POST' } })
}

function judgeRawHeaders(rawHeaders: readonly string[]): Refusal | undefined {
  let seen: Set<string> | undefined
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const value = rawHeaders[at + 1] ?? ''
    if (!plainValue.test(value)) {
      return refusal(400, 'malformed_head', 'a header has characters that are not ASCII')
    }
    const name = (rawHeaders[at] ?? '').toLowerCase()
    if (!singular.test(name)) continue
    seen ??= new Set()
    if (seen.has(name))
      return refusal(400, 'malformed_head', 'a header that must be single came twice')
    seen.add(name)
  }
  return undefined
}

function judgeEncoding(request: IncomingMessage): Refusal | undefined {
  const encoding = request.headers['content-encoding']
  if (encoding === undefined || encoding.trim().toLowerCase() === 'identity') return undefined
  return refusal(415, 'content_encoding', 'send the body without content-encoding')
}

/** The refusals that reading a body can end in. */
export const bodyTooLarge: Refusal = refusal(
  413,
  'too_large',
  'the body is larger than this endpoint takes',
  { code: 'HKL_INBOX_BODY_TOO_LARGE' },
)

/** The body did not come in time. */
export const bodyTooSlow: Refusal = refusal(408, 'too_slow', 'the body did not arrive in time')

/** Something before us read the body; 503, because the provider must not give the event up for that. */
export const bodyConsumed: Refusal = refusal(
  503,
  'body_consumed',
  'the body was read before it came here, so its signature cannot be checked: mount this route before any body parser (express.json(), express.urlencoded()), or give this route express.raw({ type: () => true })',
  { code: 'HKL_INBOX_BODY_CONSUMED', headers: { 'retry-after': '60' } },
)

/** Nobody is configured to deliver here. */
export const sourceUnknown: Refusal = refusal(
  404,
  'unknown_source',
  'no source of this name is configured',
  { code: 'HKL_INBOX_SOURCE_UNKNOWN' },
)

/** Something of ours failed; the event was not acknowledged and comes again. */
export const failedInside: Refusal = refusal(
  503,
  'unavailable',
  'the delivery is not stored; send it again',
  { code: 'HKL_INBOX_UNAVAILABLE', headers: { 'retry-after': '5' } },
)
