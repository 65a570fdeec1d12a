/** The shop's price list. */
import type { Money } from 'hookledger'

/** A license costs 49.00 USD. */
export const licensePrice: Money = { amount: 4900n, currency: 'USD' }

/** Whether at least the list price was paid, in its currency. */
export function isListPrice(paid: Money): boolean {
  return paid.currency === licensePrice.currency && paid.amount >= licensePrice.amount
}

/** Whether Stripe itself says that nothing had to be paid (a full discount, a free trial of a product). */
export function isFree(event: object): boolean {
  const { data } = event as {
    readonly data?: { readonly object?: { readonly payment_status?: unknown } }
  }
  return data?.object?.payment_status === 'no_payment_required'
}
