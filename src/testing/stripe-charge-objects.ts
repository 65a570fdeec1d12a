/**
 * Charges, refunds and disputes with the fields that Stripe's have, as its package types them. A
 * charge lists its refunds only when told to, as in current versions of the API.
 */
import type Stripe from 'stripe'
import type { PurchaseOptions } from './stripe-checkout-objects.ts'
import { defaultCreated } from './stripe-checkout-objects.ts'
import { chargeId, paymentIntentId, stripeId } from './stripe-ids.ts'

/** Options of `charge()`. */
export interface ChargeOptions extends PurchaseOptions {
  readonly id?: string
  /** What was refunded so far; the sum of `refunds`, else 0. */
  readonly amountRefunded?: number
  /** The list that older versions of the API include; left out when not given. */
  readonly refunds?: readonly Stripe.Refund[]
  readonly disputed?: boolean
  readonly metadata?: Stripe.Metadata
}

/** What a plain charge leaves empty. */
const plainCharge = {
  application: null,
  application_fee: null,
  application_fee_amount: null,
  description: null,
  failure_balance_transaction: null,
  failure_code: null,
  failure_message: null,
  on_behalf_of: null,
  receipt_email: null,
  receipt_number: null,
  review: null,
  shipping: null,
  source: null,
  source_transfer: null,
  statement_descriptor: null,
  statement_descriptor_suffix: null,
  transfer_data: null,
  transfer_group: null,
} satisfies Partial<Stripe.Charge>

/** A captured card charge. */
export function charge(options: ChargeOptions = {}): Stripe.Charge {
  const { amount = 4900, created = defaultCreated, currency = 'usd', refunds } = options
  const id = options.id ?? chargeId(options)
  const listed = (refunds ?? []).reduce((sum, one) => sum + one.amount, 0)
  const amountRefunded = options.amountRefunded ?? listed
  return {
    id,
    object: 'charge',
    ...plainCharge,
    amount,
    amount_captured: amount,
    amount_refunded: amountRefunded,
    balance_transaction: stripeId('txn', id),
    billing_details: {
      address: {
        city: null,
        country: 'US',
        line1: null,
        line2: null,
        postal_code: '94110',
        state: null,
      },
      email: options.email ?? 'ada@example.com',
      name: 'Ada Example',
      phone: null,
      tax_id: null,
    },
    calculated_statement_descriptor: 'SHOP.EXAMPLE',
    captured: true,
    created,
    currency,
    customer: options.customer ?? null,
    disputed: options.disputed ?? false,
    fraud_details: {},
    livemode: options.livemode ?? false,
    metadata: options.metadata ?? {},
    outcome: {
      advice_code: null,
      network_advice_code: null,
      network_decline_code: null,
      network_status: 'approved_by_network',
      reason: null,
      risk_level: 'normal',
      risk_score: 12,
      seller_message: 'Payment complete.',
      type: 'authorized',
    },
    paid: true,
    payment_intent: intentOf(options),
    payment_method: stripeId('pm', id),
    payment_method_details: { card: cardDetails(amount), type: 'card' },
    receipt_url: `https://pay.stripe.com/receipts/payment/${stripeId('rcpt', id)}`,
    refunded: amountRefunded >= amount,
    ...(refunds !== undefined && {
      refunds: {
        object: 'list',
        data: [...refunds],
        has_more: false,
        url: `/v1/charges/${id}/refunds`,
      },
    }),
    status: 'succeeded',
  }
}

function intentOf(options: PurchaseOptions): string | null {
  return options.paymentIntent === undefined ? paymentIntentId(options) : options.paymentIntent
}

function cardDetails(amount: number): Stripe.Charge.PaymentMethodDetails.Card {
  return {
    amount_authorized: amount,
    authorization_code: '123456',
    brand: 'visa',
    checks: {
      address_line1_check: null,
      address_postal_code_check: 'pass',
      cvc_check: 'pass',
    },
    country: 'US',
    electronic_commerce_indicator: null,
    exp_month: 12,
    exp_year: 2034,
    fingerprint: 'tO0Kqv1QhGdZ4mYn',
    funding: 'credit',
    installments: null,
    last4: '4242',
    mandate: null,
    network: 'visa',
    network_transaction_id: '104102978678771',
    regulated_status: 'unregulated',
    three_d_secure: null,
    transaction_link_id: null,
    wallet: null,
  }
}

/** Options of `refund()`. */
export interface RefundOptions extends PurchaseOptions {
  readonly id?: string
  /** Which refund of the purchase this is: each has an id of its own; 1. */
  readonly number?: number
  readonly status?: 'pending' | 'requires_action' | 'succeeded' | 'failed' | 'canceled'
  readonly reason?: Stripe.Refund.Reason | null
  /** The charge's id, where it is not the one that follows from the order. */
  readonly charge?: string | null
  readonly metadata?: Stripe.Metadata
}

/** A refund: of the whole amount and succeeded unless told otherwise. */
export function refund(options: RefundOptions = {}): Stripe.Refund {
  const { amount = 4900, created = defaultCreated, status = 'succeeded' } = options
  const chargeOf = options.charge === undefined ? chargeId(options) : options.charge
  const id = options.id ?? stripeId('re', chargeOf ?? '', options.number ?? 1)
  return {
    id,
    object: 'refund',
    amount,
    balance_transaction: stripeId('txn', id),
    charge: chargeOf,
    created,
    currency: options.currency ?? 'usd',
    customer: options.customer ?? null,
    customer_account: null,
    destination_details: {
      card: {
        reference: '8547121905513722',
        reference_status: 'available',
        reference_type: 'acquirer_reference_number',
        type: 'refund',
      },
      type: 'card',
    },
    ...(status === 'failed' && {
      failure_balance_transaction: stripeId('txn', id, 'failure'),
      failure_reason: 'expired_or_canceled_card',
    }),
    metadata: options.metadata ?? {},
    payment_intent: intentOf(options),
    payment_method: stripeId('pm', chargeOf ?? ''),
    ...(status === 'pending' && { pending_reason: 'processing' as const }),
    reason: options.reason ?? 'requested_by_customer',
    receipt_number: null,
    source_transfer_reversal: null,
    status,
    transfer_reversal: null,
  }
}

/** Options of `dispute()`. */
export interface DisputeOptions extends PurchaseOptions {
  readonly id?: string
  readonly status?: Stripe.Dispute.Status
  readonly reason?: string
  /** The charge's id, where it is not the one that follows from the order. */
  readonly charge?: string
  readonly metadata?: Stripe.Metadata
}

/** A dispute: of the whole amount and waiting for evidence unless told otherwise. */
export function dispute(options: DisputeOptions = {}): Stripe.Dispute {
  const { created = defaultCreated, status = 'needs_response' } = options
  const chargeOf = options.charge ?? chargeId(options)
  const open = status === 'needs_response' || status === 'warning_needs_response'
  return {
    id: options.id ?? stripeId('du', chargeOf),
    object: 'dispute',
    amount: options.amount ?? 4900,
    balance_transactions: [],
    charge: chargeOf,
    created,
    currency: options.currency ?? 'usd',
    enhanced_eligibility_types: [],
    evidence: noEvidence(options.email ?? 'ada@example.com'),
    evidence_details: {
      due_by: open ? created + 14 * 86_400 : null,
      enhanced_eligibility: {},
      has_evidence: !open,
      past_due: false,
      submission_count: open ? 0 : 1,
      submission_method: open ? 'not_submitted' : 'manual',
    },
    intended_submission_method: null,
    is_charge_refundable: status.startsWith('warning_'),
    livemode: options.livemode ?? false,
    metadata: options.metadata ?? {},
    network_reason_code: '10.4',
    payment_intent: intentOf(options),
    payment_method_details: {
      card: {
        brand: 'visa',
        case_type: 'chargeback',
        network: 'visa',
        network_reason_code: '10.4',
      },
      type: 'card',
    },
    reason: options.reason ?? 'fraudulent',
    status,
  }
}

function noEvidence(email: string): Stripe.Dispute.Evidence {
  return {
    access_activity_log: null,
    billing_address: '94110, US',
    cancellation_policy: null,
    cancellation_policy_disclosure: null,
    cancellation_rebuttal: null,
    customer_communication: null,
    customer_email_address: email,
    customer_name: 'Ada Example',
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
