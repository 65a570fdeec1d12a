/**
 * The `Stripe-Signature` header: HMAC-SHA256 over `<seconds>.<body>` under the whole secret, one `v1`
 * for each secret that is valid at the time.
 */
import { createHmac } from 'node:crypto'

/**
 * The header for a body that is sent at `seconds` since 1970.
 *
 * @example stripeSignature(body, ['whsec_new', 'whsec_old'], Math.floor(Date.now() / 1000))
 */
export function stripeSignature(body: string, secrets: readonly string[], seconds: number): string {
  const signatures = secrets.map(
    (secret) => `v1=${createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex')}`,
  )
  return [`t=${seconds}`, ...signatures].join(',')
}
