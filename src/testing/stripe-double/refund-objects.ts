/**
 * Refunds and disputes as Stripe's API writes them.
 */
import type Stripe from 'stripe'
import type { Metadata } from './object-kinds.ts'
import type { Transaction } from './transaction.ts'

/** What is given back, and how far it has come. */
export interface RefundInput {
  /** Minor units. */
  amount: number
  metadata: Metadata
  reason: Stripe.Refund.Reason | null
  status: 'succeeded' | 'pending'
}

/** A new refund of a charge. */
export function buildRefund(
  tx: Transaction,
  charge: Stripe.Charge,
  input: RefundInput,
): Stripe.Refund {
  const type = charge.payment_method_details?.type ?? 'card'
  const settled = input.status === 'succeeded'
  return {
    id: tx.id('refund'),
    object: 'refund',
    amount: input.amount,
    balance_transaction: settled ? tx.id('transaction') : null,
    charge: charge.id,
    created: tx.now,
    currency: charge.currency,
    customer: charge.customer,
    customer_account: null,
    destination_details:
      type === 'card'
        ? {
            type: 'card',
            card: {
              reference_status: 'pending',
              reference_type: 'acquirer_reference_number',
              type: 'refund',
            },
          }
        : { type },
    metadata: input.metadata,
    payment_intent: charge.payment_intent,
    payment_method: charge.payment_method,
    ...(!settled && { pending_reason: 'processing' }),
    reason: input.reason,
    receipt_number: null,
    source_transfer_reversal: null,
    status: input.status,
    transfer_reversal: null,
  }
}

/** A new dispute of a charge; an inquiry is a question of the bank that has taken no money yet. */
export function buildDispute(
  tx: Transaction,
  charge: Stripe.Charge,
  input: { amount: number; reason: string; inquiry: boolean },
): Stripe.Dispute {
  return {
    id: tx.id('dispute'),
    object: 'dispute',
    amount: input.amount,
    balance_transactions: [],
    charge: charge.id,
    created: tx.now,
    currency: charge.currency,
    enhanced_eligibility_types: [],
    evidence: noEvidence(),
    evidence_details: {
      due_by: tx.now + 9 * 86_400,
      enhanced_eligibility: {},
      has_evidence: false,
      past_due: false,
      submission_count: 0,
      submission_method: 'not_submitted',
    },
    intended_submission_method: null,
    is_charge_refundable: input.inquiry,
    livemode: tx.livemode,
    metadata: {},
    payment_intent: charge.payment_intent,
    payment_method_details: {
      type: 'card',
      card: {
        brand: 'visa',
        case_type: input.inquiry ? 'inquiry' : 'chargeback',
        network: 'visa',
        network_reason_code: '10.4',
      },
    },
    reason: input.reason,
    status: input.inquiry ? 'warning_needs_response' : 'needs_response',
  }
}

function noEvidence(): Stripe.Dispute.Evidence {
  return {
    access_activity_log: null,
    billing_address: null,
    cancellation_policy: null,
    cancellation_policy_disclosure: null,
    cancellation_rebuttal: null,
    customer_communication: null,
    customer_email_address: null,
    customer_name: null,
    customer_purchase_ip: null,
    customer_signature: null,
    duplicate_charge_documentation: null,
    duplicate_charge_explanation: null,
    duplicate_charge_id: null,
    enhanced_evidence: {},
    product_description: null,
    receipt: null,
    refund_policy: null,
    refund_policy_disclosure: null,
    refund_refusal_explanation: null,
    service_date: null,
    service_documentation: null,
    shipping_address: null,
    shipping_carrier: null,
    shipping_date: null,
    shipping_documentation: null,
    shipping_tracking_number: null,
    uncategorized_file: null,
    uncategorized_text: null,
  }
}
