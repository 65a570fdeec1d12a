/**
 * What can be asked of Stripe: the kinds of records that are listed, those that are only looked up by
 * their id, and which id belongs to which kind.
 */
import type { RecordKind } from '../../workflow/records.ts'

/** A kind of Stripe's objects. */
export interface StripeKind extends RecordKind {
  readonly path: string
  /** Asked with every list: by itself Stripe's leaves some records out. */
  readonly query?: Readonly<Record<string, string>>
  /** The version of the API that has it; absent: all. */
  readonly since?: string
  /** What is put into the answer beside the object itself, and taken out again where events are made. */
  readonly expand: readonly Expansion[]
}

/** A field that is asked for whole, from the version on that has it: before, asking would be an error. */
interface Expansion {
  readonly field: string
  readonly since: string
}

/** When an intent got one charge instead of a list, and an invoice its payments instead of one. */
const oneCharge = '2022-11-15'
const manyPayments = '2025-03-31'

const day = 24 * 3_600_000

const objects = (kind: string, path: string, expand: readonly Expansion[] = []): StripeKind => ({
  kind,
  holds: 'objects',
  reachMs: null,
  path,
  expand,
})

/** The listed ones, in the order in which they are gone through: what names an order before what needs it. */
const listedKinds: readonly StripeKind[] = [
  // an event says most and costs least; past thirty days only the objects are left
  { kind: 'event', holds: 'events', reachMs: 30 * day, path: '/v1/events', expand: [] },
  objects('checkout.session', '/v1/checkout/sessions', [
    { field: 'payment_intent', since: '' },
    { field: 'payment_intent.latest_charge.refunds', since: oneCharge },
  ]),
  // without a status, canceled ones are not listed
  { ...objects('subscription', '/v1/subscriptions'), query: { status: 'all' } },
  objects('payment_intent', '/v1/payment_intents', [
    { field: 'latest_charge.refunds', since: oneCharge },
  ]),
  objects('invoice', '/v1/invoices', [{ field: 'payments', since: manyPayments }]),
  // which payment paid which invoice: a refund finds its invoice by it
  { ...objects('invoice_payment', '/v1/invoice_payments'), since: manyPayments },
  objects('refund', '/v1/refunds', [{ field: 'charge', since: '' }]),
  objects('dispute', '/v1/disputes'),
]

const lookedUpKinds: readonly StripeKind[] = [
  ...listedKinds,
  objects('charge', '/v1/charges', [{ field: 'refunds', since: '' }]),
]

/** The kinds that are listed in this version of the API; the newest where it is not known. */
export function kindsIn(version: string | undefined): readonly StripeKind[] {
  return listedKinds.filter(({ since = '' }) => version === undefined || version >= since)
}

/** The kind of this name; undefined for one that is not asked for. */
export function stripeKind(kind: string): StripeKind | undefined {
  return lookedUpKinds.find((each) => each.kind === kind)
}

/** The fields to expand in this version of the API (`2026-10-28.endive`); the newest where it is not known. */
export function expansionsOf(kind: StripeKind, version: string | undefined): readonly string[] {
  return kind.expand
    .filter(({ since }) => version === undefined || version >= since)
    .map(({ field }) => field)
}

const prefixes: Readonly<Record<string, string>> = {
  evt: 'event',
  cs: 'checkout.session',
  pi: 'payment_intent',
  ch: 'charge',
  py: 'charge',
  re: 'refund',
  pyr: 'refund',
  du: 'dispute',
  dp: 'dispute',
  in: 'invoice',
  inpay: 'invoice_payment',
  sub: 'subscription',
}

/** The kind of the object that an id of Stripe's names; undefined for any other text. */
export function kindOfId(id: string): string | undefined {
  const prefix = /^([a-z]+)_\w+$/.exec(id)?.[1]
  return prefix !== undefined && Object.hasOwn(prefixes, prefix) ? prefixes[prefix] : undefined
}
