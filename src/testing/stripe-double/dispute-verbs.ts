/**
 * Disputes: a chargeback takes the money at once and ends won or lost; an inquiry asks first, takes
 * nothing and ends as `warning_closed`.
 */
import type Stripe from 'stripe'
import { refused } from './api-error.ts'
import { latestCharge } from './payment-verbs.ts'
import { buildDispute } from './refund-objects.ts'
import type { Transaction } from './transaction.ts'

/** What the customer's bank claims. */
export interface OpenDisputeInput {
  /** The charge, or the intent whose charge it is. */
  charge?: string
  paymentIntent?: string
  /** Minor units; what was captured when absent. */
  amount?: number
  reason?: string
  /** An inquiry (early warning) instead of a chargeback. */
  inquiry?: boolean
}

/** How a dispute ends. */
export type DisputeOutcome = 'won' | 'lost' | 'warning_closed'

/** A bank disputes a charge: `charge.dispute.created`, and `charge.dispute.funds_withdrawn` for a chargeback. */
export function openDispute(tx: Transaction, input: OpenDisputeInput): Stripe.Dispute {
  const charge =
    input.charge === undefined
      ? tx.get(
          'charge',
          latestCharge(tx.get('payment_intent', input.paymentIntent ?? '', 'payment_intent')),
        )
      : tx.get('charge', input.charge, 'charge')
  if (!charge.paid) throw refused(`Charge ${charge.id} is not paid: nobody can dispute it.`)
  const inquiry = input.inquiry ?? false
  const dispute = tx.create(
    buildDispute(tx, charge, {
      amount: input.amount ?? charge.amount_captured,
      reason: input.reason ?? 'fraudulent',
      inquiry,
    }),
  )
  tx.change(charge, { disputed: true })
  tx.emit('charge.dispute.created', dispute)
  if (!inquiry) tx.emit('charge.dispute.funds_withdrawn', dispute)
  return dispute
}

/** A dispute ends: `charge.dispute.closed`, and `charge.dispute.funds_reinstated` when it was won. */
export function closeDispute(tx: Transaction, id: string, outcome: DisputeOutcome): Stripe.Dispute {
  const dispute = tx.get('dispute', id)
  const inquiry = dispute.status.startsWith('warning_')
  if (!isOpenDispute(dispute)) throw refused(`This dispute is already closed: ${dispute.status}.`)
  if (inquiry !== (outcome === 'warning_closed')) {
    throw refused(`A dispute with a status of ${dispute.status} cannot end as ${outcome}.`)
  }
  const closed = tx.change(dispute, { status: outcome, is_charge_refundable: outcome !== 'lost' })
  tx.emit('charge.dispute.closed', closed)
  if (outcome === 'won') tx.emit('charge.dispute.funds_reinstated', closed)
  return closed
}

/** Whether a dispute waits for its end. */
function isOpenDispute(dispute: Stripe.Dispute): boolean {
  return /^(warning_)?(needs_response|under_review)$/.test(dispute.status)
}
