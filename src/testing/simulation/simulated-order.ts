/**
 * The words of the simulated shop: what an order is, and what can happen to it.
 */

/** What happens to an order, from the purchase to the end. */
export type Scenario =
  | 'paid'
  | 'intent_only'
  | 'declined_then_paid'
  | 'refunded'
  | 'refunded_in_parts'
  | 'partly_refunded'
  | 'refund_pending'
  | 'refund_failed'
  | 'refund_returned'
  | 'dispute_won'
  | 'dispute_lost'
  | 'dispute_open'
  | 'inquiry_closed'
  | 'partly_refunded_dispute_won'
  | 'partly_refunded_dispute_lost'
  | 'refunded_dispute_won'
  | 'paid_twice'
  | 'paid_twice_one_refunded'
  | 'paid_twice_both_refunded'
  | 'underpaid'
  | 'underpaid_then_paid'
  | 'wrong_currency'
  | 'expired'
  | 'expired_then_paid'
  | 'async_paid'
  | 'async_failed'
  | 'free'

/** Which of the provider's objects name the order, and how. */
export type Naming =
  /** The session's `client_reference_id`; the intent names nothing. */
  | 'reference'
  /** The session's `metadata.order_id`; the intent names nothing. */
  | 'session_metadata'
  /** The session's reference, and the intent's `metadata.order_id` without an address. */
  | 'intent_order'
  /** The session's reference, and the intent's `metadata.order_id` and `metadata.email`. */
  | 'intent_order_and_email'
  /** As before, but the customer types another address into the payment page. */
  | 'intent_other_email'

/** Who opens the order in the shop's database. */
export type Opening =
  /** The first event that pays. */
  | 'event'
  /** The shop itself, before the customer pays. */
  | 'shop_first'
  /** The shop itself, after its events were sent. */
  | 'shop_late'

/** One order of the shop. */
export interface SimulatedOrder {
  /** `1001` and on. */
  readonly id: string
  /** What the customer types, in the customer's own capitals. */
  readonly email: string
  /** Who gets the license when the shop opens the order: `email:` and the address in lower case. */
  readonly subject: string
  /** The price of the shop's list, in minor units. */
  readonly amount: number
  /** Lower case, as Stripe writes it. */
  readonly currency: string
  readonly scenario: Scenario
  readonly naming: Naming
  readonly opening: Opening
}

/** The price of the shop's list: 49.00 USD. */
export const listPrice = { amount: 4900, currency: 'usd' } as const
