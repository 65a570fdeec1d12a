/**
 * What Stripe's objects allow: which calls make an object that carries metadata, in which list it can
 * be found again, and whether its absence from that list proves that it was never made.
 */

/** How the object of a call is found again. */
export interface StripeFinding {
  /** The SDK's method, with the same ids before its parameters as the call. */
  readonly list: string
  /** Parameters of the call that the list takes as a filter, by their name. */
  readonly filters: readonly string[]
  /** What the list needs to show all of them. */
  readonly always?: Readonly<Record<string, string>>
  /** Whether the list can begin at a time. */
  readonly byTime: boolean
  /** Whether nothing removes an object from the list: one that can be deleted may have been there. */
  readonly isComplete: boolean
}

const kept = (list: string, filters: readonly string[], byTime = true): StripeFinding => ({
  list,
  filters,
  byTime,
  isComplete: true,
})

const deletable = (list: string, filters: readonly string[]): StripeFinding => ({
  list,
  filters,
  byTime: true,
  isComplete: false,
})

const findings: Readonly<Record<string, StripeFinding>> = {
  'applicationFees.createRefund': kept('applicationFees.listRefunds', [], false),
  'charges.create': kept('charges.list', ['customer', 'transfer_group']),
  'checkout.sessions.create': kept('checkout.sessions.list', ['customer']),
  'coupons.create': deletable('coupons.list', []),
  'creditNotes.create': kept('creditNotes.list', ['invoice']),
  'customers.create': deletable('customers.list', ['email']),
  'customers.createBalanceTransaction': kept('customers.listBalanceTransactions', [], false),
  'invoiceItems.create': deletable('invoiceItems.list', ['customer']),
  'invoices.create': deletable('invoices.list', ['customer']),
  'paymentIntents.create': kept('paymentIntents.list', ['customer']),
  'paymentLinks.create': kept('paymentLinks.list', [], false),
  'payouts.create': kept('payouts.list', ['destination']),
  'prices.create': kept('prices.list', ['product', 'currency']),
  'products.create': deletable('products.list', []),
  'promotionCodes.create': kept('promotionCodes.list', ['coupon']),
  'quotes.create': kept('quotes.list', ['customer'], false),
  'refunds.create': kept('refunds.list', ['payment_intent', 'charge']),
  'setupIntents.create': kept('setupIntents.list', ['customer', 'payment_method']),
  'subscriptionSchedules.create': kept('subscriptionSchedules.list', ['customer']),
  'subscriptions.create': {
    ...kept('subscriptions.list', ['customer']),
    // Without it the canceled ones are left out.
    always: { status: 'all' },
  },
  'taxRates.create': kept('taxRates.list', []),
  'topups.create': kept('topups.list', []),
  'transfers.create': kept('transfers.list', ['destination', 'transfer_group']),
  'transfers.createReversal': kept('transfers.listReversals', [], false),
}

/** The metadata key under which the object of an operation carries its id. */
export const operationMetadata = 'hookledger_operation'

/** How to find what a call made; undefined for calls that make nothing that carries metadata. */
export function stripeFinding(call: string): StripeFinding | undefined {
  return Object.hasOwn(findings, call) ? findings[call] : undefined
}
