/**
 * Refunds: pending → succeeded, failed or canceled, and succeeded → failed when the bank sends the money
 * back. A pending refund already counts as refunded on its charge, and a failed one no longer does.
 */
import type Stripe from 'stripe'
import { invalidRequest, refused } from './api-error.ts'
import { mergeMetadata } from './metadata.ts'
import type { Metadata } from './object-kinds.ts'
import { latestCharge } from './payment-verbs.ts'
import { buildRefund } from './refund-objects.ts'
import type { Transaction } from './transaction.ts'

/** What is given back. */
export interface RefundInput {
  /** The charge, or the intent whose charge it is. */
  charge?: string
  paymentIntent?: string
  /** Minor units; everything that is left when absent. */
  amount?: number
  /** `succeeded` when absent; a `pending` one is ended by a verb of its own. */
  status?: 'succeeded' | 'pending'
  reason?: 'duplicate' | 'fraudulent' | 'requested_by_customer'
  metadata?: Metadata
}

/**
 * Gives money back: `refund.created` and `charge.refunded`, whose charge has no `refunds` list (as in
 * every API version since 2022-11-15).
 */
export function refund(tx: Transaction, input: RefundInput): Stripe.Refund {
  const charge = chargeOf(tx, input)
  const left = charge.amount_captured - charge.amount_refunded
  const amount = input.amount ?? left
  refuseImpossible(tx, charge, amount, left)
  const made = tx.create(
    buildRefund(tx, charge, {
      amount,
      metadata: input.metadata ?? {},
      reason: input.reason ?? null,
      status: input.status ?? 'succeeded',
    }),
  )
  const charged = countRefund(tx, charge, amount)
  tx.emit('refund.created', made)
  tx.emit('charge.refunded', charged)
  return made
}

/** A pending refund arrives: `refund.updated`, `charge.refund.updated`. */
export function succeedRefund(tx: Transaction, id: string): Stripe.Refund {
  const pending = pendingRefund(tx, id)
  const { pending_reason: _, ...settled } = pending
  const done = replace(tx, pending, {
    ...settled,
    status: 'succeeded',
    balance_transaction: tx.id('transaction'),
  })
  tx.emit('refund.updated', done)
  tx.emit('charge.refund.updated', done)
  return done
}

/** The bank sends the money back: `refund.updated`, `charge.refund.updated`, `refund.failed`. */
export function failRefund(tx: Transaction, id: string): Stripe.Refund {
  const before = tx.get('refund', id)
  if (before.status !== 'pending' && before.status !== 'succeeded') throw wrongState(before)
  const { pending_reason: _, ...settled } = before
  const failed = replace(tx, before, {
    ...settled,
    status: 'failed',
    failure_reason: 'lost_or_stolen_card',
    failure_balance_transaction: tx.id('transaction'),
  })
  countRefund(tx, tx.get('charge', failed.charge as string), -failed.amount)
  tx.emit('refund.updated', failed)
  tx.emit('charge.refund.updated', failed)
  tx.emit('refund.failed', failed)
  return failed
}

/** The merchant takes a pending refund back: `refund.updated`, `charge.refund.updated`. */
export function cancelRefund(tx: Transaction, id: string): Stripe.Refund {
  const pending = pendingRefund(tx, id)
  const { pending_reason: _, ...settled } = pending
  const canceled = replace(tx, pending, { ...settled, status: 'canceled' })
  countRefund(tx, tx.get('charge', canceled.charge as string), -canceled.amount)
  tx.emit('refund.updated', canceled)
  tx.emit('charge.refund.updated', canceled)
  return canceled
}

/**
 * The card network answers with a reference number, days after a refund has succeeded: the same
 * `refund.updated`, `charge.refund.updated` again, with nothing new about the money.
 */
export function referenceRefund(tx: Transaction, id: string): Stripe.Refund {
  const before = tx.get('refund', id)
  const card = before.destination_details?.card
  if (before.status !== 'succeeded' || !card) throw wrongState(before)
  const known = tx.change(before, {
    destination_details: {
      type: 'card',
      card: { ...card, reference: tx.id('transaction'), reference_status: 'available' },
    },
  })
  tx.emit('refund.updated', known)
  tx.emit('charge.refund.updated', known)
  return known
}

/** Writes metadata onto a refund: `refund.updated`, `charge.refund.updated`. */
export function updateRefund(tx: Transaction, id: string, metadata: Metadata | ''): Stripe.Refund {
  const before = tx.get('refund', id)
  const changed = tx.change(before, { metadata: mergeMetadata(before.metadata, metadata) })
  tx.emit('refund.updated', changed)
  tx.emit('charge.refund.updated', changed)
  return changed
}

function chargeOf(tx: Transaction, input: RefundInput): Stripe.Charge {
  if (input.charge !== undefined) return tx.get('charge', input.charge, 'charge')
  if (input.paymentIntent === undefined) {
    throw invalidRequest(
      'One of the following params should be provided for this request: payment_intent or charge.',
    )
  }
  return tx.get(
    'charge',
    latestCharge(tx.get('payment_intent', input.paymentIntent, 'payment_intent')),
  )
}

function refuseImpossible(
  tx: Transaction,
  charge: Stripe.Charge,
  amount: number,
  left: number,
): void {
  if (!charge.paid) throw refused(`Charge ${charge.id} is not paid: there is nothing to refund.`)
  const disputed = tx
    .list('dispute')
    .some((dispute) => dispute.charge === charge.id && takesMoney(dispute))
  if (disputed) {
    throw refused(`Charge ${charge.id} has been charged back; cannot issue a refund.`, {
      code: 'charge_disputed',
    })
  }
  if (left === 0) {
    throw refused(`Charge ${charge.id} has already been refunded.`, {
      code: 'charge_already_refunded',
    })
  }
  if (amount > left) {
    throw refused(
      `Refund amount (${amount}) is greater than unrefunded amount on charge (${left})`,
      { param: 'amount' },
    )
  }
}

function takesMoney(dispute: Stripe.Dispute): boolean {
  return ['needs_response', 'under_review', 'lost'].includes(dispute.status)
}

function countRefund(tx: Transaction, charge: Stripe.Charge, amount: number): Stripe.Charge {
  const refunded = charge.amount_refunded + amount
  return tx.change(charge, {
    amount_refunded: refunded,
    refunded: refunded === charge.amount_captured,
  })
}

function pendingRefund(tx: Transaction, id: string): Stripe.Refund {
  const found = tx.get('refund', id)
  if (found.status !== 'pending') throw wrongState(found)
  return found
}

/** Unlike a change of fields, this can also take fields away. */
function replace(tx: Transaction, before: Stripe.Refund, next: Stripe.Refund): Stripe.Refund {
  return tx.create({ ...next, id: before.id })
}

function wrongState(found: Stripe.Refund): Error {
  return refused(`This refund has a status of ${found.status}: it cannot do that.`)
}
