/**
 * Ids that look like Stripe's and depend on the seed and a counter only. The counter is kept with the
 * objects, so an id is never given twice, whatever was killed in between.
 */
import { createHash } from 'node:crypto'

/** What an id stands for. */
export type IdKind =
  | 'charge'
  | 'checkout_session'
  | 'customer'
  | 'dispute'
  | 'event'
  | 'invoice'
  | 'invoice_line'
  | 'invoice_payment'
  | 'payment_intent'
  | 'payment_method'
  | 'price'
  | 'product'
  | 'refund'
  | 'request'
  | 'subscription'
  | 'subscription_item'
  | 'transaction'

const shapes: Readonly<Record<IdKind, readonly [prefix: string, length: number]>> = {
  charge: ['ch_3', 23],
  checkout_session: ['cs_test_a1', 56],
  customer: ['cus_', 14],
  dispute: ['du_1', 23],
  event: ['evt_1', 23],
  invoice: ['in_1', 23],
  invoice_line: ['il_1', 23],
  invoice_payment: ['inpay_1', 23],
  payment_intent: ['pi_3', 23],
  payment_method: ['pm_1', 23],
  price: ['price_1', 23],
  product: ['prod_', 14],
  refund: ['re_3', 23],
  request: ['req_', 14],
  subscription: ['sub_1', 23],
  subscription_item: ['si_', 14],
  transaction: ['txn_3', 23],
}

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** The id that the seed gives to the `counter`-th thing made. */
export function objectId(seed: string, kind: IdKind, counter: number): string {
  const [prefix, length] = shapes[kind]
  return prefix + base62(`${seed}\n${kind}\n${counter}`, length)
}

function base62(input: string, length: number): string {
  // One byte gives one character: slightly uneven, and far from ever colliding at 14 characters.
  const bytes = createHash('sha512').update(input).digest()
  let text = ''
  for (let at = 0; at < length; at++) text += alphabet[bytes[at]! % 62]
  return text
}
