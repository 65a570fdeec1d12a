/**
 * Stripe's events as they arrive, for tests, histories and the simulated provider: typed, complete,
 * and the same bytes and ids for the same options.
 */
import type Stripe from 'stripe'
import type { StripeEvents } from '../providers/stripe-event-types.ts'
import type { CustomerOptions, InvoiceOptions } from './stripe-billing-objects.ts'
import { customer, invoice } from './stripe-billing-objects.ts'
import type { ChargeOptions, DisputeOptions, RefundOptions } from './stripe-charge-objects.ts'
import { charge, dispute, refund } from './stripe-charge-objects.ts'
import type { CheckoutSessionOptions, PaymentIntentOptions } from './stripe-checkout-objects.ts'
import { checkoutSession, defaultCreated, paymentIntent } from './stripe-checkout-objects.ts'
import { stripeId } from './stripe-ids.ts'
import type { InvoicePaymentOptions, SubscriptionOptions } from './stripe-subscription-objects.ts'
import { invoicePayment, subscription } from './stripe-subscription-objects.ts'

/** The version of Stripe's API whose shapes the factories make. */
export const stripeApiVersion: string = '2026-10-28.endive'

/** What the envelope of an event says. */
export interface StripeEventOptions {
  /** `evt_…`; otherwise it follows from type, object, time and account. */
  readonly eventId?: string
  /** Unix seconds; the object's own. */
  readonly created?: number
  /** The connected account, for an event of Connect. */
  readonly account?: string
  /** The object's own, else false. */
  readonly livemode?: boolean
  readonly apiVersion?: string | null
  /** What an update changed, with the values before it. */
  readonly previousAttributes?: Readonly<Record<string, unknown>>
}

/** The object that an event of this type carries; anything for a type that Stripe does not have. */
export type StripeObject<Type extends string> = Type extends keyof StripeEvents
  ? StripeEvents[Type]['data']['object']
  : Readonly<Record<string, unknown>>

/** The event of this type. */
export type StripeEvent<Type extends string> = Type extends keyof StripeEvents
  ? StripeEvents[Type]
  : Omit<Stripe.Event, 'type' | 'data'> & { type: Type; data: { object: StripeObject<Type> } }

/**
 * An event of any type around an object.
 *
 * @example stripeEvent('refund.created', refund({ order: '1001', amount: 900 }))
 */
export function stripeEvent<Type extends string>(
  type: Type,
  object: StripeObject<Type>,
  options: StripeEventOptions = {},
): StripeEvent<Type> {
  const facts = object as { readonly created?: unknown; readonly livemode?: unknown }
  const created =
    options.created ?? (typeof facts.created === 'number' ? facts.created : defaultCreated)
  const id =
    options.eventId ?? stripeId('evt', type, JSON.stringify(object), created, options.account ?? '')
  const event = {
    id,
    object: 'event',
    ...(options.account !== undefined && { account: options.account }),
    api_version: options.apiVersion === undefined ? stripeApiVersion : options.apiVersion,
    created,
    data: {
      object,
      ...(options.previousAttributes !== undefined && {
        previous_attributes: options.previousAttributes,
      }),
    },
    livemode: options.livemode ?? facts.livemode === true,
    pending_webhooks: 1,
    request: { id: stripeId('req', id), idempotency_key: null },
    type,
  }
  return event as unknown as StripeEvent<Type>
}

/** The bytes as Stripe writes them, indented by two spaces. */
export function stripeBody(event: object): string {
  return JSON.stringify(event, null, 2)
}

/** `checkout.session.completed`: paid, unless `paymentStatus` says `unpaid` or nothing to pay. */
export function checkoutSessionCompleted(
  options: CheckoutSessionOptions & StripeEventOptions = {},
): StripeEvents['checkout.session.completed'] {
  return stripeEvent('checkout.session.completed', checkoutSession(options), options)
}

/** `checkout.session.async_payment_succeeded`: a delayed method has paid. */
export function checkoutSessionAsyncPaymentSucceeded(
  options: CheckoutSessionOptions & StripeEventOptions = {},
): StripeEvents['checkout.session.async_payment_succeeded'] {
  return stripeEvent('checkout.session.async_payment_succeeded', checkoutSession(options), options)
}

/** `checkout.session.expired`: nobody paid in time. */
export function checkoutSessionExpired(
  options: CheckoutSessionOptions & StripeEventOptions = {},
): StripeEvents['checkout.session.expired'] {
  const session = checkoutSession({ status: 'expired', ...options })
  return stripeEvent('checkout.session.expired', session, options)
}

/** `payment_intent.succeeded`: captured in full, unless `amountReceived` says otherwise. */
export function paymentIntentSucceeded(
  options: PaymentIntentOptions & StripeEventOptions = {},
): StripeEvents['payment_intent.succeeded'] {
  return stripeEvent('payment_intent.succeeded', paymentIntent(options), options)
}

/** `refund.created`: of the whole amount and succeeded, unless told otherwise. */
export function refundCreated(
  options: RefundOptions & StripeEventOptions = {},
): StripeEvents['refund.created'] {
  return stripeEvent('refund.created', refund(options), options)
}

/** `refund.updated`: succeeded after it was pending, unless told otherwise. */
export function refundUpdated(
  options: RefundOptions & StripeEventOptions = {},
): StripeEvents['refund.updated'] {
  const previousAttributes = { status: 'pending' }
  return stripeEvent('refund.updated', refund(options), { previousAttributes, ...options })
}

/** `refund.failed`: the bank sent it back. */
export function refundFailed(
  options: RefundOptions & StripeEventOptions = {},
): StripeEvents['refund.failed'] {
  return stripeEvent('refund.failed', refund({ status: 'failed', ...options }), options)
}

/** `charge.refunded`: the whole amount, unless `amountRefunded` or `refunds` say otherwise. */
export function chargeRefunded(
  options: ChargeOptions & StripeEventOptions = {},
): StripeEvents['charge.refunded'] {
  const whole = options.refunds === undefined ? { amountRefunded: options.amount ?? 4900 } : {}
  return stripeEvent('charge.refunded', charge({ ...whole, ...options }), options)
}

/** `charge.dispute.created`: of the whole amount, unless told otherwise. */
export function chargeDisputeCreated(
  options: DisputeOptions & StripeEventOptions = {},
): StripeEvents['charge.dispute.created'] {
  return stripeEvent('charge.dispute.created', dispute(options), options)
}

/** `charge.dispute.closed`: won, unless `status` says `lost` or `warning_closed`. */
export function chargeDisputeClosed(
  options: DisputeOptions & StripeEventOptions = {},
): StripeEvents['charge.dispute.closed'] {
  return stripeEvent('charge.dispute.closed', dispute({ status: 'won', ...options }), options)
}

/** `invoice.paid`: of a subscription, unless told otherwise. */
export function invoicePaid(
  options: InvoiceOptions & StripeEventOptions = {},
): StripeEvents['invoice.paid'] {
  return stripeEvent('invoice.paid', invoice(options), options)
}

/** `customer.updated`: another name, unless `previousAttributes` say what else. */
export function customerUpdated(
  options: CustomerOptions & StripeEventOptions = {},
): StripeEvents['customer.updated'] {
  const previousAttributes = { name: 'Ada' }
  return stripeEvent('customer.updated', customer(options), { previousAttributes, ...options })
}

/** `customer.subscription.created`: active at once, unless `status` says `incomplete` or `trialing`. */
export function subscriptionCreated(
  options: SubscriptionOptions & StripeEventOptions = {},
): StripeEvents['customer.subscription.created'] {
  return stripeEvent('customer.subscription.created', subscription(options), options)
}

/** `customer.subscription.updated`: the subscription as it was at that moment. */
export function subscriptionUpdated(
  options: SubscriptionOptions & StripeEventOptions = {},
): StripeEvents['customer.subscription.updated'] {
  const previousAttributes = { latest_invoice: null }
  return stripeEvent('customer.subscription.updated', subscription(options), {
    previousAttributes,
    ...options,
  })
}

/** `customer.subscription.deleted`: it has ended. */
export function subscriptionDeleted(
  options: SubscriptionOptions & StripeEventOptions = {},
): StripeEvents['customer.subscription.deleted'] {
  const ended = subscription({ status: 'canceled', ...options })
  return stripeEvent('customer.subscription.deleted', ended, options)
}

/** `invoice_payment.paid`: which payment intent has paid which invoice. */
export function invoicePaymentPaid(
  options: InvoicePaymentOptions & StripeEventOptions = {},
): StripeEvents['invoice_payment.paid'] {
  return stripeEvent('invoice_payment.paid', invoicePayment(options), options)
}
