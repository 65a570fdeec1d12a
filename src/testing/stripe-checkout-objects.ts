/**
 * Checkout sessions and payment intents with the fields that Stripe's have, as its package types
 * them: what a workflow reads in a test is where it will be in production.
 */
import type Stripe from 'stripe'
import type { PurchaseKey } from './stripe-ids.ts'
import { chargeId, defaultOrder, paymentIntentId, sessionId, stripeId } from './stripe-ids.ts'

/** What the objects of one purchase have in common. Amounts are in minor units. */
export interface PurchaseOptions extends PurchaseKey {
  /** What is to be paid; 4900. */
  readonly amount?: number
  /** ISO code in lower case; `usd`. */
  readonly currency?: string
  /** Unix seconds; the start of 2026. */
  readonly created?: number
  /** The customer's address; `ada@example.com`. */
  readonly email?: string
  /** The customer's id, for a customer that Stripe knows. */
  readonly customer?: string | null
  /** The payment intent's id, where it is not the one that follows from the order. */
  readonly paymentIntent?: string | null
}

/** The start of 2026 in Unix seconds: when everything happens unless told otherwise. */
export const defaultCreated: number = 1_767_225_600

/** Options of `checkoutSession()`. */
export interface CheckoutSessionOptions extends PurchaseOptions {
  readonly id?: string
  readonly paymentStatus?: Stripe.Checkout.Session.PaymentStatus
  readonly status?: Stripe.Checkout.Session.Status
  /** The order id as the shop gave it; the order. */
  readonly clientReferenceId?: string | null
  readonly metadata?: Stripe.Metadata
}

/** What a plain session leaves empty. */
const plainSession = {
  after_expiration: null,
  allow_promotion_codes: null,
  allowed_payment_method_types: null,
  billing_address_collection: null,
  client_secret: null,
  collected_information: null,
  consent: null,
  consent_collection: null,
  currency_conversion: null,
  customer_account: null,
  customer_email: null,
  integration_identifier: null,
  invoice: null,
  invoice_creation: null,
  locale: null,
  origin_context: null,
  payment_link: null,
  payment_method_configuration_details: null,
  permissions: null,
  recovered_from: null,
  saved_payment_method_options: null,
  setup_intent: null,
  shipping_address_collection: null,
  shipping_cost: null,
  submit_type: null,
  subscription: null,
  wallet_options: null,
} satisfies Partial<Stripe.Checkout.Session>

/** A checkout session in mode `payment`: complete and paid unless told otherwise. */
export function checkoutSession(options: CheckoutSessionOptions = {}): Stripe.Checkout.Session {
  const { created = defaultCreated, currency = 'usd', status = 'complete' } = options
  const { paymentStatus = status === 'complete' ? 'paid' : 'unpaid' } = options
  const free = paymentStatus === 'no_payment_required'
  const amount = options.amount ?? (free ? 0 : 4900)
  const id = options.id ?? sessionId(options)
  const intent = free || status === 'expired' ? null : paymentIntentId(options)
  return {
    id,
    object: 'checkout.session',
    ...plainSession,
    custom_fields: [],
    discounts: [],
    shipping_options: [],
    adaptive_pricing: { enabled: true },
    amount_subtotal: amount,
    amount_total: amount,
    automatic_tax: { enabled: false, liability: null, provider: null, status: null },
    cancel_url: 'https://shop.example/cart',
    client_reference_id:
      options.clientReferenceId === undefined
        ? (options.order ?? defaultOrder)
        : options.clientReferenceId,
    created,
    currency,
    custom_text: {
      after_submit: null,
      shipping_address: null,
      submit: null,
      terms_of_service_acceptance: null,
    },
    customer: options.customer ?? null,
    customer_creation: 'if_required',
    customer_details: status === 'complete' ? customerDetails(options) : null,
    expires_at: created + 86_400,
    livemode: options.livemode ?? false,
    managed_payments: { enabled: false },
    metadata: options.metadata ?? {},
    mode: 'payment',
    payment_intent: options.paymentIntent === undefined ? intent : options.paymentIntent,
    payment_method_collection: 'if_required',
    payment_method_options: { card: { request_three_d_secure: 'automatic' } },
    payment_method_types: ['card'],
    payment_status: paymentStatus,
    phone_number_collection: { enabled: false },
    status,
    success_url: 'https://shop.example/thanks?session_id={CHECKOUT_SESSION_ID}',
    total_details: { amount_discount: 0, amount_shipping: 0, amount_tax: 0 },
    ui_mode: 'hosted_page',
    url: status === 'open' ? `https://checkout.stripe.com/c/pay/${id}` : null,
  }
}

function customerDetails(options: PurchaseOptions): Stripe.Checkout.Session.CustomerDetails {
  return {
    address: {
      city: null,
      country: 'US',
      line1: null,
      line2: null,
      postal_code: '94110',
      state: null,
    },
    business_name: null,
    email: options.email ?? 'ada@example.com',
    individual_name: null,
    name: 'Ada Example',
    phone: null,
    tax_exempt: 'none',
    tax_ids: [],
  }
}

/** Options of `paymentIntent()`. */
export interface PaymentIntentOptions extends PurchaseOptions {
  readonly id?: string
  readonly status?: Stripe.PaymentIntent.Status
  /** What was captured; the amount when the status is `succeeded`, else 0. */
  readonly amountReceived?: number
  /** The charge's id, where it is not the one that follows from the order. */
  readonly charge?: string | null
  /** `{ order_id: <the order> }`: what a shop passes on in `payment_intent_data.metadata`. */
  readonly metadata?: Stripe.Metadata
}

/** What a plain payment intent leaves empty. */
const plainIntent = {
  allowed_payment_method_types: null,
  application: null,
  application_fee_amount: null,
  automatic_payment_methods: null,
  cancellation_reason: null,
  customer_account: null,
  description: null,
  excluded_payment_method_types: null,
  last_payment_error: null,
  managed_payments: null,
  next_action: null,
  on_behalf_of: null,
  payment_method_configuration_details: null,
  payment_record: null,
  processing: null,
  receipt_email: null,
  review: null,
  setup_future_usage: null,
  shipping: null,
  source: null,
  statement_descriptor: null,
  statement_descriptor_suffix: null,
  transfer_data: null,
  transfer_group: null,
} satisfies Partial<Stripe.PaymentIntent>

/** A payment intent: succeeded and captured in full unless told otherwise. */
export function paymentIntent(options: PaymentIntentOptions = {}): Stripe.PaymentIntent {
  const { amount = 4900, created = defaultCreated, status = 'succeeded' } = options
  const id = options.id ?? options.paymentIntent ?? paymentIntentId(options)
  const done = status === 'succeeded'
  return {
    id,
    object: 'payment_intent',
    ...plainIntent,
    amount,
    amount_capturable: 0,
    amount_details: { tip: {} },
    amount_received: options.amountReceived ?? (done ? amount : 0),
    canceled_at: status === 'canceled' ? created : null,
    capture_method: 'automatic_async',
    client_secret: `${id}_secret_${stripeId('x', id).slice(2)}`,
    confirmation_method: 'automatic',
    created,
    currency: options.currency ?? 'usd',
    customer: options.customer ?? null,
    latest_charge:
      options.charge === undefined && done ? chargeId(options) : (options.charge ?? null),
    livemode: options.livemode ?? false,
    metadata: options.metadata ?? { order_id: options.order ?? defaultOrder },
    payment_method: done ? stripeId('pm', id) : null,
    payment_method_options: {
      card: {
        installments: null,
        mandate_options: null,
        network: null,
        request_three_d_secure: 'automatic',
      },
    },
    payment_method_types: ['card'],
    status,
  }
}
