/**
 * The reading side of the API: which objects can be retrieved and listed, and by which filters.
 */
import type Stripe from 'stripe'
import { invalidRequest, missing } from './api-error.ts'
import type { Parameters } from './form-parameters.ts'
import {
  isListed,
  page,
  pageParameters,
  type ListLag,
  type ListSource,
  type Page,
} from './list-pages.ts'
import type { ObjectKind, ObjectKinds, StoredObject } from './object-kinds.ts'
import { eventRetentionMs, type ObjectState, type StoredRecord } from './object-state.ts'
import { allowOnly, flag, nested, text, textList } from './parameter-readers.ts'

/** A kind of object that the API serves. */
interface Collection<K extends ObjectKind> {
  kind: K
  /** The names of the filters, beside those that every list knows. */
  filters: readonly string[]
  /** From the parameters to the test that an object of the list passes. */
  filter(parameters: Parameters, view: ReadView): (object: ObjectKinds[K]) => boolean
}

/** What reading needs to know. */
export interface ReadView {
  state: ObjectState
  account: string
  lag: ListLag
  /** Whether an event was delivered. */
  isAcknowledged(eventId: string): boolean
}

const collections = new Map<string, Collection<ObjectKind>>()

function serve<K extends ObjectKind>(path: string, collection: Collection<K>): void {
  collections.set(path, collection as unknown as Collection<ObjectKind>)
}

/** A filter by fields of the same name with an id or a text in them. */
function byFields<K extends ObjectKind>(
  kind: K,
  fields: readonly (keyof ObjectKinds[K] & string)[],
): Collection<K> {
  return {
    kind,
    filters: fields,
    filter: (parameters) => {
      const wanted = fields.flatMap((field) => {
        const value = text(parameters, field)
        return value === undefined ? [] : [[field, value] as const]
      })
      return (object) => wanted.every(([field, value]) => String(object[field]) === value)
    },
  }
}

serve('/v1/payment_intents', byFields('payment_intent', ['customer']))
serve('/v1/charges', byFields('charge', ['customer', 'payment_intent']))
serve('/v1/refunds', byFields('refund', ['charge', 'payment_intent']))
serve('/v1/disputes', byFields('dispute', ['charge', 'payment_intent']))
serve('/v1/customers', byFields('customer', ['email']))
serve('/v1/products', byFields('product', ['active']))

serve('/v1/checkout/sessions', {
  kind: 'checkout.session',
  filters: ['customer', 'customer_details', 'payment_intent', 'status', 'subscription'],
  filter: (parameters, view) => {
    const fields = byFields('checkout.session', [
      'customer',
      'payment_intent',
      'status',
      'subscription',
    ])
    const matches = fields.filter(parameters, view)
    const email = text(nested(parameters, 'customer_details'), 'email')
    return (session) =>
      matches(session) && (email === undefined || session.customer_details?.email === email)
  },
})

serve('/v1/prices', {
  kind: 'price',
  filters: ['active', 'currency', 'lookup_keys', 'product', 'type'],
  filter: (parameters, view) => {
    const matches = byFields('price', ['active', 'currency', 'product', 'type']).filter(
      parameters,
      view,
    )
    const keys = textList(parameters, 'lookup_keys')
    return (price) =>
      matches(price) && (keys === undefined || keys.includes(price.lookup_key ?? ''))
  },
})

serve('/v1/subscriptions', {
  kind: 'subscription',
  filters: ['customer', 'price', 'status'],
  filter: (parameters) => {
    const customer = text(parameters, 'customer')
    const price = text(parameters, 'price')
    const status = text(parameters, 'status')
    return (subscription) =>
      (customer === undefined || subscription.customer === customer) &&
      (price === undefined || subscription.items.data.some((item) => item.price.id === price)) &&
      hasStatus(subscription, status)
  },
})

serve('/v1/invoices', {
  kind: 'invoice',
  filters: ['customer', 'status', 'subscription'],
  filter: (parameters, view) => {
    const matches = byFields('invoice', ['customer', 'status']).filter(parameters, view)
    const subscription = text(parameters, 'subscription')
    return (invoice) =>
      matches(invoice) &&
      (subscription === undefined ||
        invoice.parent?.subscription_details?.subscription === subscription)
  },
})

serve('/v1/invoice_payments', {
  kind: 'invoice_payment',
  filters: ['invoice', 'payment', 'status'],
  filter: (parameters, view) => {
    const matches = byFields('invoice_payment', ['invoice', 'status']).filter(parameters, view)
    const intent = text(nested(parameters, 'payment'), 'payment_intent')
    return (payment) =>
      matches(payment) && (intent === undefined || payment.payment.payment_intent === intent)
  },
})

serve('/v1/events', {
  kind: 'event',
  filters: ['delivery_success', 'type', 'types'],
  filter: (parameters, view) => {
    const types = textList(parameters, 'types')
    const pattern = text(parameters, 'type')
    if (types && pattern !== undefined)
      throw invalidRequest('You may not use both type and types.', { param: 'types' })
    if (types && types.length > 20)
      throw invalidRequest('You may give up to 20 types.', { param: 'types' })
    const delivered = flag(parameters, 'delivery_success')
    return (event) =>
      (types === undefined || types.includes(event.type)) &&
      (pattern === undefined || matchesType(event.type, pattern)) &&
      (delivered === undefined || view.isAcknowledged(event.id) === delivered)
  },
})

/** The object of a path such as `/v1/refunds/re_1`, or undefined when the path is none of these. */
export function retrieve(view: ReadView, path: string, parameters: Parameters): object | undefined {
  const slash = path.lastIndexOf('/')
  const collection = collections.get(path.slice(0, slash))
  if (!collection) return undefined
  allowOnly(parameters, [])
  const id = decodeURIComponent(path.slice(slash + 1))
  const at = view.state.position(view.account, collection.kind, id)
  const record =
    at === undefined ? undefined : view.state.records(view.account, collection.kind)[at]
  if (!record || isForgotten(view, record)) throw missing(collection.kind, id, 'id')
  return present(view, record.object)
}

/** A page of a path such as `/v1/refunds`, or undefined when the path is none of these. */
export function listPage(
  view: ReadView,
  path: string,
  parameters: Parameters,
): Page<object> | undefined {
  const collection = collections.get(path)
  if (!collection) return undefined
  const { kind, filters } = collection
  allowOnly(parameters, [...pageParameters, ...filters])
  const nowMs = view.state.clock()
  const source: ListSource<StoredObject> = {
    url: path,
    kind,
    records: view.state.records(view.account, kind),
    positionOf: (id) => view.state.position(view.account, kind, id),
    shows: (record) => isListed(record, view.lag, nowMs) && !isForgotten(view, record),
    matches: collection.filter(parameters, view),
  }
  const found = page(source, parameters)
  return { ...found, data: found.data.map((object) => present(view, object)) }
}

/** The first object ever made of a list's kind, whatever the list was asked for. */
export function oldestOf(view: ReadView, path: string): object | undefined {
  const kind = collections.get(path)?.kind
  return kind === undefined ? undefined : view.state.records(view.account, kind)[0]?.object
}

/** Events are kept for 30 days only. */
function isForgotten(view: ReadView, record: StoredRecord): boolean {
  const isEvent = record.object.object === 'event'
  return isEvent && view.state.clock() - record.createdMs >= eventRetentionMs
}

/** What is true only at the moment of the answer: whether an event still waits to be delivered. */
function present(view: ReadView, object: object): object {
  const event = object as Stripe.Event
  if (event.object !== 'event') return object
  return { ...event, pending_webhooks: view.isAcknowledged(event.id) ? 0 : 1 }
}

function hasStatus(subscription: Stripe.Subscription, status: string | undefined): boolean {
  if (status === 'all') return true
  if (status === 'ended')
    return subscription.status === 'canceled' || subscription.status === 'incomplete_expired'
  return status === undefined ? subscription.status !== 'canceled' : subscription.status === status
}

/** `charge.*` means every type of the group. */
function matchesType(type: string, pattern: string): boolean {
  return pattern.endsWith('*') ? type.startsWith(pattern.slice(0, -1)) : type === pattern
}
