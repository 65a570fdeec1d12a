/**
 * Payment intents and charges as Stripe's API writes them: every field is there, as null where nothing
 * is known, so that code which reads a field finds what it would find in production.
 */
import type Stripe from 'stripe'
import type { Metadata } from './object-kinds.ts'
import type { Transaction } from './transaction.ts'

/** How the customer pays: at once, or by a bank debit that succeeds or fails days later. */
export type PaymentMethodType = 'card' | 'us_bank_account'

/** What a payment intent is made for. */
export interface PaymentIntentInput {
  /** Minor units. */
  amount: number
  /** Lower case, as Stripe writes it. */
  currency: string
  metadata: Metadata
  customer: string | null
  description: string | null
  receiptEmail: string | null
  paymentMethodType: PaymentMethodType
  /** The invoice that it pays; newer API versions name it here and nowhere else on the intent. */
  orderReference?: string
}

/** A new payment intent that waits for its payment method. */
export function buildPaymentIntent(
  tx: Transaction,
  input: PaymentIntentInput,
): Stripe.PaymentIntent {
  const id = tx.id('payment_intent')
  return {
    id,
    object: 'payment_intent',
    allowed_payment_method_types: null,
    amount: input.amount,
    amount_capturable: 0,
    amount_details: { tip: {} },
    amount_received: 0,
    application: null,
    application_fee_amount: null,
    automatic_payment_methods: null,
    canceled_at: null,
    cancellation_reason: null,
    capture_method: 'automatic_async',
    client_secret: `${id}_secret_simulated`,
    confirmation_method: 'automatic',
    created: tx.now,
    currency: input.currency,
    customer: input.customer,
    customer_account: null,
    description: input.description,
    excluded_payment_method_types: null,
    last_payment_error: null,
    latest_charge: null,
    livemode: tx.livemode,
    managed_payments: null,
    metadata: input.metadata,
    next_action: null,
    on_behalf_of: null,
    ...(input.orderReference !== undefined && {
      payment_details: { customer_reference: null, order_reference: input.orderReference },
    }),
    payment_method: null,
    payment_method_configuration_details: null,
    payment_method_options: {},
    payment_method_types: [input.paymentMethodType],
    payment_record: null,
    processing: null,
    receipt_email: input.receiptEmail,
    review: null,
    setup_future_usage: null,
    shipping: null,
    source: null,
    statement_descriptor: null,
    statement_descriptor_suffix: null,
    status: 'requires_payment_method',
    transfer_data: null,
    transfer_group: null,
  }
}

/** Who pays, as the charge records it. */
export interface Payer {
  email: string | null
  name: string | null
}

/** A new charge of an intent; `pending` is a bank debit that is still under way. */
export function buildCharge(
  tx: Transaction,
  intent: Stripe.PaymentIntent,
  payer: Payer,
  status: 'succeeded' | 'pending' | 'failed',
): Stripe.Charge {
  const id = tx.id('charge')
  const paid = status === 'succeeded'
  return {
    id,
    object: 'charge',
    amount: intent.amount,
    amount_captured: paid ? intent.amount : 0,
    amount_refunded: 0,
    application: null,
    application_fee: null,
    application_fee_amount: null,
    balance_transaction: null,
    billing_details: {
      address: null,
      email: payer.email,
      name: payer.name,
      phone: null,
      tax_id: null,
    },
    calculated_statement_descriptor: 'SIMULATED SHOP',
    captured: paid,
    created: tx.now,
    currency: intent.currency,
    customer: intent.customer,
    description: intent.description,
    disputed: false,
    failure_balance_transaction: null,
    failure_code: status === 'failed' ? 'card_declined' : null,
    failure_message: status === 'failed' ? 'Your card was declined.' : null,
    fraud_details: {},
    livemode: tx.livemode,
    metadata: intent.metadata,
    on_behalf_of: null,
    outcome: outcome(status),
    paid,
    payment_intent: intent.id,
    payment_method: tx.id('payment_method'),
    payment_method_details: paymentMethodDetails(intent),
    radar_options: {},
    receipt_email: intent.receipt_email,
    receipt_number: null,
    receipt_url: null,
    refunded: false,
    review: null,
    shipping: null,
    source: null,
    source_transfer: null,
    statement_descriptor: null,
    statement_descriptor_suffix: null,
    status,
    transfer_data: null,
    transfer_group: null,
  }
}

function outcome(status: 'succeeded' | 'pending' | 'failed'): Stripe.Charge.Outcome {
  const declined = status === 'failed'
  return {
    advice_code: declined ? 'try_again_later' : null,
    network_advice_code: null,
    network_decline_code: null,
    network_status: declined ? 'declined_by_network' : 'approved_by_network',
    reason: declined ? 'generic_decline' : null,
    risk_level: 'normal',
    risk_score: 12,
    seller_message: declined ? 'The bank did not return any further details.' : 'Payment complete.',
    type: declined ? 'issuer_declined' : 'authorized',
  }
}

function paymentMethodDetails(intent: Stripe.PaymentIntent): Stripe.Charge.PaymentMethodDetails {
  if (intent.payment_method_types[0] !== 'card') {
    return {
      type: 'us_bank_account',
      us_bank_account: {
        account_holder_type: 'individual',
        account_type: 'checking',
        bank_name: 'SIMULATED BANK',
        fingerprint: null,
        last4: '6789',
        payment_reference: null,
        routing_number: '110000000',
      },
    }
  }
  return {
    type: 'card',
    card: {
      amount_authorized: intent.amount,
      authorization_code: null,
      brand: 'visa',
      checks: { address_line1_check: null, address_postal_code_check: null, cvc_check: 'pass' },
      country: 'US',
      electronic_commerce_indicator: null,
      exp_month: 12,
      exp_year: 2034,
      funding: 'credit',
      installments: null,
      last4: '4242',
      mandate: null,
      network: 'visa',
      network_transaction_id: null,
      regulated_status: 'unregulated',
      three_d_secure: null,
      transaction_link_id: null,
      wallet: null,
    },
  }
}
