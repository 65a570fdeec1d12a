/**
 * What can happen to a payment intent and its charges. Each verb makes the events that Stripe makes,
 * in Stripe's order; in which order they arrive is a matter of delivery.
 */
import type Stripe from 'stripe'
import { refused } from './api-error.ts'
import { mergeMetadata } from './metadata.ts'
import type { Metadata } from './object-kinds.ts'
import {
  buildCharge,
  buildPaymentIntent,
  type Payer,
  type PaymentMethodType,
} from './payment-objects.ts'
import type { Transaction } from './transaction.ts'

/** What a new payment intent asks for. */
export interface CreatePaymentIntentInput {
  /** Minor units. */
  amount: number
  /** Lower case; `usd` when absent. */
  currency?: string
  metadata?: Metadata
  customer?: string
  description?: string
  receiptEmail?: string
  paymentMethodType?: PaymentMethodType
  /** The invoice that the intent pays. */
  orderReference?: string
}

/** Makes a payment intent: `payment_intent.created`. */
export function createPaymentIntent(
  tx: Transaction,
  input: CreatePaymentIntentInput,
): Stripe.PaymentIntent {
  if (input.customer !== undefined) tx.get('customer', input.customer, 'customer')
  const intent = tx.create(
    buildPaymentIntent(tx, {
      amount: input.amount,
      currency: input.currency ?? 'usd',
      metadata: input.metadata ?? {},
      customer: input.customer ?? null,
      description: input.description ?? null,
      receiptEmail: input.receiptEmail ?? null,
      paymentMethodType: input.paymentMethodType ?? 'card',
      ...(input.orderReference !== undefined && { orderReference: input.orderReference }),
    }),
  )
  tx.emit('payment_intent.created', intent)
  return intent
}

/** How a customer's attempt to pay an intent goes. */
export interface PayInput {
  /** `processing` is a bank debit under way, to be settled later; `succeeded` when absent. */
  outcome?: 'succeeded' | 'processing' | 'failed'
  email?: string
  name?: string
}

/**
 * A customer pays an intent. Succeeded: `charge.succeeded`, `payment_intent.succeeded`; processing:
 * `payment_intent.processing`, `charge.pending`; failed: `charge.failed`, `payment_intent.payment_failed`.
 */
export function payPaymentIntent(
  tx: Transaction,
  id: string,
  input: PayInput = {},
): Stripe.PaymentIntent {
  const intent = tx.get('payment_intent', id)
  if (intent.status !== 'requires_payment_method') throw unexpectedState(intent)
  const payer: Payer = { email: input.email ?? null, name: input.name ?? null }
  const outcome = input.outcome ?? 'succeeded'
  const status = outcome === 'processing' ? 'pending' : outcome
  const charge = tx.create(buildCharge(tx, intent, payer, status))
  const linked = tx.change(intent, {
    latest_charge: charge.id,
    payment_method: charge.payment_method,
  })
  if (outcome === 'succeeded') return succeed(tx, linked, charge)
  if (outcome === 'failed') return fail(tx, linked, charge)
  const processing = tx.change(linked, { status: 'processing' })
  tx.emit('payment_intent.processing', processing)
  tx.emit('charge.pending', charge)
  return processing
}

/** A bank debit under way comes to its end. */
export function settlePaymentIntent(
  tx: Transaction,
  id: string,
  outcome: 'succeeded' | 'failed',
): Stripe.PaymentIntent {
  const intent = tx.get('payment_intent', id)
  if (intent.status !== 'processing') throw unexpectedState(intent)
  const charge = tx.get('charge', latestCharge(intent))
  if (outcome === 'failed') {
    const failed = tx.change(charge, {
      status: 'failed',
      failure_code: 'insufficient_funds',
      failure_message: 'The account does not cover the amount.',
    })
    return fail(tx, intent, failed)
  }
  const paid = tx.change(charge, {
    status: 'succeeded',
    paid: true,
    captured: true,
    amount_captured: charge.amount,
  })
  return succeed(tx, intent, paid)
}

/** Books the charge on the merchant's balance, some time after it succeeded: `charge.updated`. */
export function bookCharge(tx: Transaction, id: string): Stripe.Charge {
  const charge = tx.change(tx.get('charge', id), { balance_transaction: tx.id('transaction') })
  tx.emit('charge.updated', charge)
  return charge
}

/** Gives up an intent that was not paid: `payment_intent.canceled`. */
export function cancelPaymentIntent(tx: Transaction, id: string): Stripe.PaymentIntent {
  const intent = tx.get('payment_intent', id)
  if (intent.status !== 'requires_payment_method') throw unexpectedState(intent)
  const canceled = tx.change(intent, { status: 'canceled', canceled_at: tx.now })
  tx.emit('payment_intent.canceled', canceled)
  return canceled
}

/** Writes metadata or a description onto an intent; Stripe makes no event of that. */
export function updatePaymentIntent(
  tx: Transaction,
  id: string,
  fields: { metadata?: Metadata | ''; description?: string },
): Stripe.PaymentIntent {
  const intent = tx.get('payment_intent', id)
  return tx.change(intent, {
    ...(fields.metadata !== undefined && {
      metadata: mergeMetadata(intent.metadata, fields.metadata),
    }),
    ...(fields.description !== undefined && { description: fields.description }),
  })
}

/** The id of the charge that an intent names last. */
export function latestCharge(intent: Stripe.PaymentIntent): string {
  const charge = intent.latest_charge
  if (typeof charge !== 'string') {
    throw refused(`This PaymentIntent (${intent.id}) does not have a successful charge to refund.`)
  }
  return charge
}

function succeed(
  tx: Transaction,
  intent: Stripe.PaymentIntent,
  charge: Stripe.Charge,
): Stripe.PaymentIntent {
  const paid = tx.change(intent, { status: 'succeeded', amount_received: intent.amount })
  tx.emit('charge.succeeded', charge)
  tx.emit('payment_intent.succeeded', paid)
  return paid
}

function fail(
  tx: Transaction,
  intent: Stripe.PaymentIntent,
  charge: Stripe.Charge,
): Stripe.PaymentIntent {
  const failed = tx.change(intent, {
    status: 'requires_payment_method',
    payment_method: null,
    last_payment_error: {
      charge: charge.id,
      code: 'card_declined',
      message: charge.failure_message ?? 'The payment failed.',
      type: 'card_error',
    },
  })
  tx.emit('charge.failed', charge)
  tx.emit('payment_intent.payment_failed', failed)
  return failed
}

function unexpectedState(intent: Stripe.PaymentIntent): Error {
  return refused(`This PaymentIntent has a status of ${intent.status}: it cannot do that.`, {
    code: 'payment_intent_unexpected_state',
  })
}
