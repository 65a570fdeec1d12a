/**
 * Signatures as the providers put them on, for tests and the simulated provider.
 */
import { Buffer } from 'node:buffer'
import { hmacSha256 } from '../providers/signature.ts'

/** The headers of a signed delivery, with the content type that the provider sends. */
export type SignedHeaders = Readonly<Record<string, string>>

function nowSeconds(): number {
  return Math.floor(Date.now() / 1000)
}

function toBytes(body: string | Uint8Array): Uint8Array {
  return typeof body === 'string' ? Buffer.from(body, 'utf8') : body
}

/**
 * Stripe's headers: one `v1` for each secret. `timestamp` is in Unix seconds; now.
 *
 * @example fetch(url, { method: 'POST', body, headers: signStripe(body, secret) })
 */
export function signStripe(
  body: string | Uint8Array,
  secret: string | readonly string[],
  timestamp: number = nowSeconds(),
): SignedHeaders {
  const content = { prefix: `${timestamp}.`, body: toBytes(body) }
  const secrets = typeof secret === 'string' ? [secret] : secret
  const signatures = secrets.map((one) => `v1=${hmacSha256(one, content).toString('hex')}`)
  return {
    'content-type': 'application/json; charset=utf-8',
    'stripe-signature': [`t=${timestamp}`, ...signatures].join(','),
  }
}

/** Options of `signStandardWebhook()`. */
export interface StandardWebhookOptions {
  /** The event's id; the same for every attempt to deliver it. */
  readonly id: string
  /** Unix seconds of this attempt; now. */
  readonly timestamp?: number
  /** Which names the headers have; `webhook`. */
  readonly names?: 'webhook' | 'svix'
}

/** The headers of Standard Webhooks: one `v1` for each secret (`whsec_<base64>`). */
export function signStandardWebhook(
  body: string | Uint8Array,
  secret: string | readonly string[],
  { id, timestamp = nowSeconds(), names = 'webhook' }: StandardWebhookOptions,
): SignedHeaders {
  const content = { prefix: `${id}.${timestamp}.`, body: toBytes(body) }
  const secrets = typeof secret === 'string' ? [secret] : secret
  const signatures = secrets.map((one) => {
    const key = Buffer.from(one.replace(/^whsec_/, ''), 'base64')
    return `v1,${hmacSha256(key, content).toString('base64')}`
  })
  return {
    'content-type': 'application/json',
    [`${names}-id`]: id,
    [`${names}-timestamp`]: String(timestamp),
    [`${names}-signature`]: signatures.join(' '),
  }
}
