/**
 * Checkout sessions as Stripe's API writes them. The session's metadata is its own: the payment intent
 * gets `payment_intent_data.metadata` only, which is why so many intents name no order.
 */
import type Stripe from 'stripe'
import type { Metadata } from './object-kinds.ts'
import type { Transaction } from './transaction.ts'

/** What a session sells and to whom. */
export interface SessionInput {
  /** Minor units before the discount. */
  amount: number
  /** Minor units taken off; the whole amount makes a session that needs no payment. */
  discount: number
  currency: string
  clientReferenceId: string | null
  customerEmail: string | null
  customer: string | null
  metadata: Metadata
  /** Seconds until an unfinished session expires. */
  expiresInSeconds: number
  successUrl: string | null
}

/** A new, open session. */
export function buildSession(tx: Transaction, input: SessionInput): Stripe.Checkout.Session {
  const id = tx.id('checkout_session')
  return {
    id,
    object: 'checkout.session',
    adaptive_pricing: { enabled: false },
    after_expiration: null,
    allow_promotion_codes: null,
    allowed_payment_method_types: null,
    amount_subtotal: input.amount,
    amount_total: input.amount - input.discount,
    automatic_tax: { enabled: false, liability: null, provider: null, status: null },
    billing_address_collection: null,
    cancel_url: null,
    client_reference_id: input.clientReferenceId,
    client_secret: null,
    collected_information: null,
    consent: null,
    consent_collection: null,
    created: tx.now,
    currency: input.currency,
    currency_conversion: null,
    custom_fields: [],
    custom_text: {
      after_submit: null,
      shipping_address: null,
      submit: null,
      terms_of_service_acceptance: null,
    },
    customer: input.customer,
    customer_account: null,
    customer_creation: input.customer === null ? 'if_required' : null,
    customer_details:
      input.customerEmail === null ? null : customerDetails(input.customerEmail, null),
    customer_email: input.customer === null ? input.customerEmail : null,
    discounts: [],
    expires_at: tx.now + input.expiresInSeconds,
    integration_identifier: null,
    invoice: null,
    invoice_creation: null,
    livemode: tx.livemode,
    locale: null,
    managed_payments: null,
    metadata: input.metadata,
    mode: 'payment',
    origin_context: null,
    payment_intent: null,
    payment_link: null,
    payment_method_collection: 'if_required',
    payment_method_configuration_details: null,
    payment_method_options: {},
    payment_method_types: ['card', 'us_bank_account'],
    payment_status: 'unpaid',
    permissions: null,
    phone_number_collection: { enabled: false },
    recovered_from: null,
    saved_payment_method_options: null,
    setup_intent: null,
    shipping_address_collection: null,
    shipping_cost: null,
    shipping_options: [],
    status: 'open',
    submit_type: null,
    subscription: null,
    success_url: input.successUrl,
    total_details: { amount_discount: input.discount, amount_shipping: 0, amount_tax: 0 },
    ui_mode: 'hosted_page',
    url: `https://checkout.stripe.com/c/pay/${id}`,
    wallet_options: null,
  }
}

/** What the customer typed into the payment page. */
export function customerDetails(
  email: string,
  name: string | null,
): Stripe.Checkout.Session.CustomerDetails {
  return {
    address: {
      city: null,
      country: 'US',
      line1: null,
      line2: null,
      postal_code: '12345',
      state: null,
    },
    business_name: null,
    email,
    individual_name: null,
    name,
    phone: null,
    tax_exempt: 'none',
    tax_ids: [],
  }
}
