/**
 * What Stripe's objects are held to before anything is made from them: amounts are exact integers, ids,
 * currencies and statuses texts, and what is nested is what it should be. One field that cannot be so is enough.
 */
import { RecordsError } from '../../workflow/records.ts'
import { keepableName } from '../event-naming.ts'
import type { Json } from './json-fields.ts'

/** Says at which field the value cannot be what it should be; null: it can. */
type Check = (value: unknown, at: string) => string | null

/** Checks of fields; what is none of them is not looked at. */
type Fields = Readonly<Record<string, Check>>

const where =
  (holds: (value: unknown) => boolean): Check =>
  (value, at) =>
    holds(value) ? null : at

/** Also absent or null: versions of the API differ in what they leave out. */
const maybe =
  (check: Check): Check =>
  (value, at) =>
    value === undefined || value === null ? null : check(value, at)

/** An id, or the whole object in its place. */
const idOr =
  (whole: Check): Check =>
  (value, at) =>
    isObject(value) ? whole(value, at) : id(value, at)

const object =
  (fields: Fields): Check =>
  (value, at) => {
    if (!isObject(value)) return at === '' ? 'the object' : at
    for (const [field, check] of Object.entries(fields)) {
      const found = check(
        Object.hasOwn(value, field) ? value[field] : undefined,
        at === '' ? field : `${at}.${field}`,
      )
      if (found !== null) return found
    }
    return null
  }

const arrayOf =
  (each: Check): Check =>
  (value, at) => {
    if (!Array.isArray(value)) return at
    for (const [index, item] of value.entries()) {
      const found = each(item, `${at}[${index}]`)
      if (found !== null) return found
    }
    return null
  }

const listOf = (each: Check): Check => object({ data: arrayOf(each) })

const text = where((value) => typeof value === 'string')
const id = where((value) => keepableName(value) !== undefined && !/\s/.test(value as string))
const status = where((value) => typeof value === 'string' && /^\w{1,100}$/.test(value))
const currency = where((value) => typeof value === 'string' && /^[A-Za-z]{3,5}$/.test(value))
const integer = where((value) => Number.isSafeInteger(value))
const amount = where((value) => Number.isSafeInteger(value) && (value as number) >= 0)
const flag = where((value) => typeof value === 'boolean')
const metadata = maybe((value, at) => {
  if (!isObject(value)) return at
  return Object.values(value).every((each) => typeof each === 'string') ? null : at
})
const named = maybe(idOr(object({ id })))

/** What every object has. */
const common: Fields = { created: maybe(amount), livemode: maybe(flag), metadata, customer: named }

type Level = (check: Check) => Check
const strict: Level = (check) => check

function paymentShapes(always: Level): Readonly<Record<string, Check>> {
  const refund = object({
    ...common,
    id: always(id),
    amount: always(amount),
    currency: always(currency),
    status: maybe(status),
    payment_intent: named,
    charge: maybe(idOr((value, at) => charge(value, at))),
  })
  const charge: Check = object({
    ...common,
    id: always(id),
    amount: always(amount),
    amount_captured: maybe(amount),
    amount_refunded: maybe(amount),
    currency: always(currency),
    status: always(status),
    captured: maybe(flag),
    payment_intent: named,
    invoice: named,
    refunds: maybe(listOf(refund)),
  })
  const intent = object({
    ...common,
    id: always(id),
    amount: always(amount),
    amount_received: maybe(amount),
    currency: always(currency),
    status: always(status),
    latest_charge: maybe(idOr(charge)),
    charges: maybe(listOf(charge)),
    invoice: named,
    payment_details: maybe(object({ order_reference: maybe(text) })),
    canceled_at: maybe(amount),
    last_payment_error: maybe(object({})),
  })
  const session = object({
    ...common,
    id: always(id),
    amount_total: maybe(amount),
    currency: maybe(currency),
    status: maybe(status),
    payment_status: maybe(status),
    mode: maybe(status),
    client_reference_id: maybe(text),
    expires_at: maybe(amount),
    payment_intent: maybe(idOr(intent)),
    invoice: named,
    subscription: named,
  })
  return { 'checkout.session': session, payment_intent: intent, charge, refund }
}

function billingShapes(always: Level): Readonly<Record<string, Check>> {
  const invoice = object({
    ...common,
    // an upcoming one has none
    id: maybe(id),
    amount_paid: always(integer),
    amount_due: always(integer),
    currency: always(currency),
    status: maybe(status),
    attempt_count: maybe(amount),
    payment_intent: named,
    charge: named,
    subscription: named,
    payments: maybe(listOf(object({ payment: maybe(object({ payment_intent: named })) }))),
    status_transitions: maybe(
      object({
        paid_at: maybe(amount),
        finalized_at: maybe(amount),
        voided_at: maybe(amount),
        marked_uncollectible_at: maybe(amount),
      }),
    ),
  })
  const dispute = object({
    ...common,
    id: always(id),
    amount: always(amount),
    currency: always(currency),
    status: always(status),
    payment_intent: named,
    charge: named,
    balance_transactions: maybe(arrayOf(object({ amount: integer }))),
  })
  const invoicePayment = object({
    ...common,
    id: always(id),
    invoice: always(idOr(object({ id }))),
    status: always(status),
    amount_paid: maybe(integer),
    currency: always(currency),
    payment: maybe(object({ payment_intent: named, charge: named })),
    status_transitions: maybe(object({ paid_at: maybe(amount) })),
  })
  const subscription = object({
    ...common,
    id: always(id),
    status: always(status),
    cancel_at: maybe(amount),
    current_period_end: maybe(amount),
    current_period_start: maybe(amount),
    ended_at: maybe(amount),
    items: maybe(listOf(item(always))),
    latest_invoice: named,
  })
  return { dispute, invoice, invoice_payment: invoicePayment, subscription }
}

/** An item of a subscription; before 2020 it had a plan in place of a price. */
function item(always: Level): Check {
  const price = object({ id: always(id), lookup_key: maybe(text), product: named })
  return object({
    id: always(id),
    current_period_end: maybe(amount),
    current_period_start: maybe(amount),
    plan: maybe(price),
    price: maybe(price),
    quantity: maybe(amount),
  })
}

/** An event carries its object as it was, in the version of its endpoint: what is absent proves nothing there. */
function shapesAt(always: Level): Readonly<Record<string, Check>> {
  return { ...paymentShapes(always), ...billingShapes(always) }
}

const shapes = shapesAt(strict)
const shapesInEvents = shapesAt(maybe)

const carried: Check = (value, at) => {
  if (!isObject(value)) return at
  const { object: kind } = value
  const shape =
    typeof kind === 'string' && Object.hasOwn(shapesInEvents, kind)
      ? shapesInEvents[kind]
      : undefined
  return shape === undefined ? null : shape(value, at)
}

const event = object({
  type: where((value) => keepableName(value) !== undefined),
  account: maybe(id),
  api_version: maybe(where((value) => keepableName(value) !== undefined)),
  livemode: maybe(flag),
  data: object({ object: carried }),
})

/**
 * Passes an object of this kind whose fields can be what they should be. The message names kind, id and field,
 * and never the value.
 *
 * @throws RecordsError `garbage`
 */
export function requireShape(kind: string, found: Json & { readonly id: string }): void {
  const shape = kind === 'event' ? event : Object.hasOwn(shapes, kind) ? shapes[kind] : undefined
  const field = shape?.(found, '') ?? null
  if (field === null) return
  throw new RecordsError(
    'garbage',
    `Stripe: ${field} of ${kind} ${found.id} is nothing that Stripe would send: what stands between us and Stripe, and does apiVersion fit?`,
  )
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
