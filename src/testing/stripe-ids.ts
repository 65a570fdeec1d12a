/**
 * Ids in Stripe's form, made from what they identify: the same order gives the same session, payment
 * intent and charge in every factory, so that separate events fit together without being told.
 */
import { createHash } from 'node:crypto'

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** An id like `pi_3Q…`: the prefix, and 24 characters that follow from the parts alone. */
export function stripeId(prefix: string, ...parts: readonly (string | number)[]): string {
  const digest = createHash('sha256')
    .update(JSON.stringify([prefix, ...parts]))
    .digest()
  let text = ''
  for (const byte of digest.subarray(0, 24)) text += alphabet[byte % alphabet.length]
  return `${prefix}_${text}`
}

/** What identifies a purchase: the shop's order id, and which attempt to pay for it. */
export interface PurchaseKey {
  /** The shop's own order id; `order_1`. */
  readonly order?: string
  /** Each attempt to pay for the same order has a session, payment intent and charge of its own; 1. */
  readonly attempt?: number
  /** Live ids look different (`cs_live_…`); false. */
  readonly livemode?: boolean
}

/** The order id that factories assume when none is given. */
export const defaultOrder: string = 'order_1'

/** The session of a purchase. */
export function sessionId(key: PurchaseKey = {}): string {
  return stripeId(key.livemode === true ? 'cs_live' : 'cs_test', ...parts(key))
}

/** The payment intent of a purchase. */
export function paymentIntentId(key: PurchaseKey = {}): string {
  return stripeId('pi', ...parts(key))
}

/** The charge of a purchase. */
export function chargeId(key: PurchaseKey = {}): string {
  return stripeId('ch', ...parts(key))
}

function parts({ order = defaultOrder, attempt = 1 }: PurchaseKey): [string, number] {
  return [order, attempt]
}
