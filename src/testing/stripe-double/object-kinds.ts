/**
 * The kinds of objects that the simulated provider keeps, under the names that Stripe gives them in the
 * `object` field, with the SDK's own types: a builder that forgets a field does not compile.
 */
import type Stripe from 'stripe'

/** From the value of `object` to the type of the object. */
export interface ObjectKinds {
  'checkout.session': Stripe.Checkout.Session
  payment_intent: Stripe.PaymentIntent
  charge: Stripe.Charge
  refund: Stripe.Refund
  dispute: Stripe.Dispute
  customer: Stripe.Customer
  product: Stripe.Product
  price: Stripe.Price
  subscription: Stripe.Subscription
  invoice: Stripe.Invoice
  invoice_payment: Stripe.InvoicePayment
  event: Stripe.Event
  session_plan: SessionPlan
}

/** What an open session will do when it completes; Stripe knows it too and shows it nowhere. */
export interface SessionPlan {
  /** `plan_` and the session's id. */
  id: string
  object: 'session_plan'
  /** The `payment_intent_data.metadata` that the intent will get. */
  paymentIntentMetadata: Metadata
  description: string | null
  price: string | null
  quantity: number
}

/** The value of an object's `object` field. */
export type ObjectKind = keyof ObjectKinds

/** Any object that is kept. */
export type StoredObject = ObjectKinds[ObjectKind]

/** Keys and values that the merchant attaches to an object. */
export type Metadata = Record<string, string>

/** The version of Stripe's API that the objects follow (that of the SDK 23.1). */
export const apiVersion = '2026-10-28.endive'
