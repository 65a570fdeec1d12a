/**
 * What Stripe's invoices, payments, refunds and disputes say about what they belong to. Since 2025-03-31
 * invoices and payments no longer name each other: an invoice payment does. Older shapes are read as well.
 */
import type Stripe from 'stripe'
import type { Name } from '../workflow/order.ts'
import { idOf, names, type Expandable } from '../workflow/resolution.ts'

/** An invoice in the shape of any version. */
export interface InvoiceLike {
  readonly id?: string | undefined
  readonly parent?: {
    readonly subscription_details?: {
      readonly subscription?: Expandable
      readonly metadata?: Readonly<Record<string, string>> | null
    } | null
  } | null
  readonly lines?: { readonly data?: readonly InvoiceLineLike[] } | null
  readonly payments?: { readonly data?: readonly InvoicePaymentLike[] } | null | undefined
}

interface InvoiceLineLike {
  readonly subscription?: Expandable | object
  readonly metadata?: Readonly<Record<string, string>> | null
}

/** What invoices had on top before 2025-03-31. */
interface OlderInvoice {
  readonly subscription?: Expandable
  readonly subscription_details?: {
    readonly metadata?: Readonly<Record<string, string>> | null
  } | null
  readonly payment_intent?: Expandable
  readonly charge?: Expandable
}

/** What connects an invoice with what paid it. */
export interface InvoicePaymentLike {
  readonly invoice?: Expandable
  readonly payment?: {
    readonly payment_intent?: Expandable
    readonly charge?: Expandable
    readonly payment_record?: Expandable
  } | null
}

/** A payment intent, charge, refund or dispute in the shape of any version. */
export interface PaymentLike {
  readonly id?: string
  readonly object?: string
  readonly payment_intent?: Expandable
  readonly charge?: Expandable
}

/** The subscription that an invoice bills; null for any other invoice. */
export function subscriptionOf(invoice: InvoiceLike): string | null {
  const { subscription } = invoice as OlderInvoice
  return idOf(invoice.parent?.subscription_details?.subscription) ?? idOf(subscription)
}

/** The metadata that the subscription had when the invoice was made; empty where it carries none. */
export function subscriptionMetadataOf(invoice: InvoiceLike): Readonly<Record<string, string>> {
  const { subscription_details: older } = invoice as OlderInvoice
  return invoice.parent?.subscription_details?.metadata ?? older?.metadata ?? {}
}

/**
 * The ids of what an invoice was paid with, where it says so itself: older versions, or `payments` asked for.
 * Otherwise `invoice_payment.paid` says it.
 */
export function paymentsOf(invoice: InvoiceLike): readonly string[] {
  const older = invoice as OlderInvoice
  const listed = (invoice.payments?.data ?? []).map(paymentOf)
  // a charge of an intent is the same money under another id
  const own = idOf(older.payment_intent) ?? idOf(older.charge)
  return [...new Set([own, ...listed].filter((id) => id !== null))]
}

/** The invoice that an invoice payment or an older charge or intent names; null where it names none. */
export function invoiceOf(object: { readonly invoice?: Expandable } | object): string | null {
  return 'invoice' in object ? idOf(object.invoice) : null
}

/** The id of the payment: its intent's where it has one, else its charge's or its payment record's. */
export function paymentOf(object: PaymentLike | InvoicePaymentLike): string | null {
  if ('payment' in object) {
    const { payment } = object as InvoicePaymentLike
    return idOf(payment?.payment_intent) ?? idOf(payment?.charge) ?? idOf(payment?.payment_record)
  }
  const { id, object: kind, payment_intent: intent, charge } = object as PaymentLike
  if (kind === 'payment_intent') return idOf(id)
  return idOf(intent) ?? idOf(charge) ?? (kind === 'charge' ? idOf(id) : null)
}

/** All names that such an object leads to an order by, or teaches about it. */
export function stripeNames(object: object): readonly Name[] {
  const { object: kind } = object as { readonly object?: unknown }
  if (kind === 'invoice') {
    const invoice = object as InvoiceLike & OlderInvoice
    return [
      ...names({ invoice: invoice.id, subscription: subscriptionOf(invoice) }),
      ...names({ payment_intent: invoice.payment_intent, charge: invoice.charge }),
      ...(invoice.payments?.data ?? []).flatMap(namesOfPayment),
    ].filter(isFirst)
  }
  if (kind === 'invoice_payment') {
    const payment = object as InvoicePaymentLike
    return [...names({ invoice: payment.invoice }), ...namesOfPayment(payment)]
  }
  if (kind === 'subscription') return names({ subscription: (object as Stripe.Subscription).id })
  const { id, payment_intent: intent, charge } = object as PaymentLike
  const paid = names({ payment_intent: kind === 'payment_intent' ? id : intent })
  // a charge of an intent is the same money: one name suffices
  const charged = paid.length > 0 ? [] : names({ charge: kind === 'charge' ? id : charge })
  return [...paid, ...charged, ...names({ invoice: invoiceOf(object) })]
}

function namesOfPayment({ payment }: InvoicePaymentLike): readonly Name[] {
  return names({ payment_intent: payment?.payment_intent, charge: payment?.charge })
}

function isFirst(name: Name, index: number, all: readonly Name[]): boolean {
  return all.findIndex((each) => each.kind === name.kind && each.value === name.value) === index
}
