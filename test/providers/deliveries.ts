/**
 * Deliveries for the tests of providers: bytes and headers as a receiver has them.
 */
import type { RawRequest } from '../../src/providers/provider.ts'

/** The receiver's clock in most tests, in Unix seconds. */
export const now: number = 1_700_000_000

/** The same, in milliseconds. */
export const nowMs: number = now * 1000

/** A Stripe signing secret of the form and length of a real one. */
export const stripeSecret: string = 'whsec_Q4hYbN2v8LkT0sWcX6mJr1DfPzE9aGui'

/** Another one. */
export const otherStripeSecret: string = 'whsec_7uRk3BvZ5nXqLw0TfYs8CdHjMp2GaEiO'

/** A Standard Webhooks secret of 32 bytes. */
export const sharedSecret: string = `whsec_${Buffer.from('0123456789abcdef0123456789abcdef').toString('base64')}`

/** Another one. */
export const otherSharedSecret: string = `whsec_${Buffer.from('fedcba9876543210fedcba9876543210').toString('base64')}`

/** A request from what is sent; header names in any case. */
export function delivery(
  body: string | Uint8Array,
  headers: Readonly<Record<string, string | undefined>>,
): RawRequest {
  const rawBody = typeof body === 'string' ? Buffer.from(body, 'utf8') : body
  const sent = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
  return { rawBody, headers: (name) => sent.get(name) }
}
