/**
 * Events made from objects, as Stripe's webhooks would have carried them: what led to the state that the
 * object is in now. An id names type, object and, where a type comes more than once, which time it was.
 */
import type { MadeEvent, ProviderRecord } from '../../workflow/records.ts'
import { chargeOf } from './stripe-facts.ts'
import { amountOf, idIn, recordIn, recordsIn, textIn, type Json } from './json-fields.ts'

/** What made events need beside the record. */
export interface EventMaking {
  /** The version in which the object was asked for. */
  readonly apiVersion: string | null
  /** The connected account, as Connect's events name it; null: the source's own. */
  readonly stripeAccount: string | null
}

/** An event to be made. */
interface Making {
  readonly type: string
  readonly object: Json
  /** Which of several: a status, a charge, a sum. */
  readonly fact?: string | null
  /** Seconds; the object's own where absent. */
  readonly at?: unknown
}

/** The events that led to the record's present state, in Stripe's order. */
export function stripeEventsOf(record: ProviderRecord, making: EventMaking): readonly MadeEvent[] {
  if (record.kind === 'event') return [listedEvent(record, making)]
  const makers: Readonly<Record<string, (object: Json) => readonly Making[]>> = {
    'checkout.session': sessionEvents,
    payment_intent: intentEvents,
    charge: chargeEvents,
    refund: refundEvents,
    dispute: disputeEvents,
    invoice: invoiceEvents,
    invoice_payment: invoicePaymentEvents,
    subscription: subscriptionEvents,
  }
  const make = Object.hasOwn(makers, record.kind) ? makers[record.kind] : undefined
  return make === undefined ? [] : make(record.object).map((each) => madeEvent(each, making))
}

/** The event itself, under its own id. */
function listedEvent(record: ProviderRecord, making: EventMaking): MadeEvent {
  const { object, id, createdAt } = record
  const names = making.stripeAccount !== null && textIn(object, 'account') === null
  return {
    eventId: id,
    eventType: textIn(object, 'type') ?? 'unknown',
    occurredAt: createdAt,
    apiVersion: textIn(object, 'api_version'),
    body: names ? { ...object, account: making.stripeAccount } : object,
  }
}

function madeEvent({ type, object, fact, at }: Making, making: EventMaking): MadeEvent {
  const id = textIn(object, 'id') ?? ''
  const eventId = `object:${type}:${id}${fact === undefined || fact === null ? '' : `:${fact}`}`
  const seconds = secondsOf(at) ?? secondsOf(object['created'])
  const body = {
    id: eventId,
    object: 'event',
    ...(making.stripeAccount !== null && { account: making.stripeAccount }),
    api_version: making.apiVersion,
    created: seconds,
    data: { object },
    livemode: object['livemode'] === true,
    pending_webhooks: 0,
    request: { id: null, idempotency_key: null },
    type,
  }
  const occurredAt = seconds === null ? null : new Date(seconds * 1000)
  return { eventId, eventType: type, occurredAt, apiVersion: making.apiVersion, body }
}

function sessionEvents(session: Json): readonly Making[] {
  const object = collapsed(session, ['payment_intent'])
  const status = textIn(session, 'status')
  if (status === 'expired') {
    return [{ type: 'checkout.session.expired', object, at: session['expires_at'] }]
  }
  if (status !== 'complete') return []
  const standing = textIn(session, 'payment_status')
  const intent = recordIn(session, 'payment_intent') ?? {}
  const at = chargeOf(intent)?.['created'] ?? intent['created']
  const completed = { type: 'checkout.session.completed', object, fact: standing, at }
  // a debit under way ends on its intent: the session itself stays unpaid
  const ended = textIn(intent, 'status')
  const hasFailed =
    standing === 'unpaid' && (ended === 'requires_payment_method' || ended === 'canceled')
  return hasFailed
    ? [completed, { type: 'checkout.session.async_payment_failed', object }]
    : [completed]
}

function intentEvents(intent: Json): readonly Making[] {
  const object = collapsed(intent, ['latest_charge'])
  const charge = chargeOf(intent)
  const ofCharge = charge === null ? [] : chargeEvents(charge)
  const tried = textIn(charge ?? {}, 'id') ?? idIn(intent, 'latest_charge')
  switch (textIn(intent, 'status')) {
    case 'succeeded': {
      const [made, ...later] = ofCharge
      const own = { type: 'payment_intent.succeeded', object, at: charge?.['created'] }
      return made === undefined ? [own] : [made, own, ...later]
    }
    case 'processing':
      return [...ofCharge, { type: 'payment_intent.processing', object, fact: tried }]
    case 'requires_capture':
      return [
        ...ofCharge,
        { type: 'payment_intent.amount_capturable_updated', object, fact: tried },
      ]
    case 'canceled':
      return [{ type: 'payment_intent.canceled', object, at: intent['canceled_at'] }]
    default:
      return recordIn(intent, 'last_payment_error') === null
        ? []
        : [...ofCharge, { type: 'payment_intent.payment_failed', object, fact: tried }]
  }
}

function chargeEvents(charge: Json): readonly Making[] {
  const object = without(charge, ['refunds'])
  const status = textIn(charge, 'status')
  if (status === 'failed') return [{ type: 'charge.failed', object }]
  if (status === 'pending') return [{ type: 'charge.pending', object }]
  if (status !== 'succeeded') return []
  return [{ type: 'charge.succeeded', object }, ...refundedCharge(charge)]
}

/** `charge.refunded`, told apart by the sum: each further refund is one more. */
function refundedCharge(charge: Json): readonly Making[] {
  const sum = amountOf(charge, 'amount_refunded')
  if (sum === 0n) return []
  const latest = recordsIn(recordIn(charge, 'refunds') ?? {}, 'data')[0]
  const object = without(charge, ['refunds'])
  return [{ type: 'charge.refunded', object, fact: String(sum), at: latest?.['created'] }]
}

function refundEvents(refund: Json): readonly Making[] {
  const object = collapsed(refund, ['charge'])
  const status = textIn(refund, 'status')
  const fact = status
  const updated = [
    { type: 'refund.updated', object, fact },
    { type: 'charge.refund.updated', object, fact },
  ]
  if (status === 'failed') return [...updated, { type: 'refund.failed', object }]
  if (status === 'canceled') return updated
  const charge = recordIn(refund, 'charge')
  const ofCharge = (charge === null ? [] : refundedCharge(charge)).map((each) => ({
    ...each,
    at: refund['created'],
  }))
  const created = { type: 'refund.created', object, fact }
  // a refund that was pending tells of its success by an update, and any one may be updated later
  return status === 'succeeded' ? [created, ...updated, ...ofCharge] : [created, ...ofCharge]
}

function disputeEvents(dispute: Json): readonly Making[] {
  const object = dispute
  const status = textIn(dispute, 'status')
  const moved = recordsIn(dispute, 'balance_transactions').map((each) => each['amount'])
  const withdrawn = moved.some((amount) => typeof amount === 'number' && amount < 0)
  const reinstated = moved.some((amount) => typeof amount === 'number' && amount > 0)
  const isClosed = ['won', 'lost', 'warning_closed'].includes(status ?? '')
  return [
    { type: 'charge.dispute.created', object },
    ...(withdrawn ? [{ type: 'charge.dispute.funds_withdrawn', object }] : []),
    ...(isClosed ? [{ type: 'charge.dispute.closed', object, fact: status }] : []),
    ...(reinstated ? [{ type: 'charge.dispute.funds_reinstated', object }] : []),
  ]
}

function invoiceEvents(invoice: Json): readonly Making[] {
  const object = without(invoice, ['payments'])
  const times = recordIn(invoice, 'status_transitions') ?? {}
  switch (textIn(invoice, 'status')) {
    case 'paid': {
      const at = times['paid_at']
      return [
        { type: 'invoice.paid', object, at },
        { type: 'invoice.payment_succeeded', object, at },
      ]
    }
    case 'open': {
      const tries = amountOf(invoice, 'attempt_count')
      const finalized = { type: 'invoice.finalized', object, at: times['finalized_at'] }
      return tries === 0n
        ? [finalized]
        : [finalized, { type: 'invoice.payment_failed', object, fact: String(tries) }]
    }
    case 'void':
      return [{ type: 'invoice.voided', object, at: times['voided_at'] }]
    case 'uncollectible':
      return [
        { type: 'invoice.marked_uncollectible', object, at: times['marked_uncollectible_at'] },
      ]
    default:
      return []
  }
}

/** An attempt that failed, or was given up, tells of no payment. */
function invoicePaymentEvents(payment: Json): readonly Making[] {
  if (textIn(payment, 'status') !== 'paid') return []
  const at = (recordIn(payment, 'status_transitions') ?? {})['paid_at']
  const object = collapsed(payment, ['invoice'])
  return [{ type: 'invoice_payment.paid', object, at }]
}

function subscriptionEvents(subscription: Json): readonly Making[] {
  const object = subscription
  const fact = textIn(subscription, 'status')
  const isOver = fact === 'canceled' || fact === 'incomplete_expired'
  return [
    { type: 'customer.subscription.created', object },
    isOver
      ? { type: 'customer.subscription.deleted', object, at: subscription['ended_at'] }
      : { type: 'customer.subscription.updated', object, fact },
  ]
}

/** The object with ids again where whole objects were asked for. */
function collapsed(object: Json, fields: readonly string[]): Json {
  const ids = fields
    .filter((field) => recordIn(object, field) !== null)
    .map((field) => [field, idIn(object, field)] as const)
  return ids.length === 0 ? object : { ...object, ...Object.fromEntries(ids) }
}

/** The object without lists that events do not carry. */
function without(object: Json, fields: readonly string[]): Json {
  if (!fields.some((field) => field in object)) return object
  return Object.fromEntries(Object.entries(object).filter(([field]) => !fields.includes(field)))
}

function secondsOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 ? value : null
}
