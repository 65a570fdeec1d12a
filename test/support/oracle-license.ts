/**
 * What the shop's license orders must come to, computed from the provider's events as a set: their
 * order, their repetition and the doors that they came through cannot matter. It is written from the
 * description of the shop, and shares no code with the engine or with the shop's workflow.
 */
import type { AskedEffect } from './oracle.ts'

interface StripeLike {
  readonly id: string
  readonly type: string
  readonly data: { readonly object: unknown }
}

interface Facts {
  readonly payments: Map<string, { amount: number; enough: boolean }>
  readonly refunds: Map<string, { amount: number; payment: string; came: boolean; failed: boolean }>
  readonly disputes: Map<string, { payment: string; opened: boolean; closed: string | null }>
  /** Who is to have the license; an intent without an address leaves that to its session. */
  readonly buyers: Map<
    string,
    { by: 'session' | 'intent'; subject: string | null; enough: boolean }
  >
  readonly expired: Set<string>
}

/** What the tables must show of one order. */
export interface ExpectedOrder {
  readonly state: string
  /** `type/reference`, sorted. */
  readonly effects: readonly string[]
  /** Active entitlements, `subject entitlement`. */
  readonly entitlements: readonly string[]
}

const price = 4900

/** The expected orders by id. Every event must name its order, or a payment intent that another one names. */
export function expectedLicenses(events: readonly object[]): ReadonlyMap<string, ExpectedOrder> {
  const orders = new Map<string, Facts>()
  for (const { event, order } of located(events)) {
    const facts = orders.get(order) ?? {
      payments: new Map(),
      refunds: new Map(),
      disputes: new Map(),
      buyers: new Map(),
      expired: new Set(),
    }
    orders.set(order, facts)
    note(facts, event)
  }
  return new Map(
    [...orders].map(([id, facts]) => [
      id,
      { state: stateOf(facts), effects: effectsOf(facts), entitlements: entitlementsOf(facts) },
    ]),
  )
}

/** Which effects each event may have. */
export function askedEffects(events: readonly object[]): readonly AskedEffect[] {
  return located(events).flatMap(({ event, order }) => {
    const object = event.data.object as Readonly<Record<string, unknown>>
    const ask = (effectType: string, reference = ''): AskedEffect => ({
      eventId: event.id,
      orderId: order,
      effectType,
      reference,
    })
    const id = String(object['id'])
    switch (event.type) {
      case 'checkout.session.completed':
      case 'payment_intent.succeeded':
        return [ask('license'), ask('buyer', id)]
      case 'checkout.session.expired':
        return [ask('expired', id)]
      case 'refund.created':
      case 'refund.updated':
      case 'refund.failed':
        return [ask(object['status'] === 'failed' ? 'refund:reversed' : 'refund', id)]
      case 'charge.dispute.created':
        return [ask('disputeOpened', id)]
      case 'charge.dispute.closed':
        return [ask('disputeClosed', id)]
      default:
        return []
    }
  })
}

/** Events with the order that they belong to, found through payment intents where they do not say. */
function located(
  events: readonly object[],
): { readonly event: StripeLike; readonly order: string }[] {
  const byIntent = new Map<string, string>()
  const all = events as readonly StripeLike[]
  const own = (event: StripeLike): string | undefined => {
    const object = event.data.object as {
      client_reference_id?: string
      metadata?: { order_id?: string }
    }
    return object.client_reference_id ?? object.metadata?.order_id
  }
  const intentOf = (event: StripeLike): string => {
    const object = event.data.object as { object: string; id: string; payment_intent?: string }
    return object.object === 'payment_intent' ? object.id : (object.payment_intent ?? '')
  }
  for (const event of all) {
    const order = own(event)
    if (order !== undefined && intentOf(event) !== '') byIntent.set(intentOf(event), order)
  }
  return all.flatMap((event) => {
    const order = own(event) ?? byIntent.get(intentOf(event))
    return order === undefined ? [] : [{ event, order }]
  })
}

interface AnyObject {
  readonly id: string
  readonly amount: number
  readonly amount_total: number
  readonly amount_received: number
  readonly currency: string
  readonly status: string
  readonly payment_status: string
  readonly payment_intent: string
  readonly customer_details: { readonly email: string | null } | null
  readonly metadata: { readonly email?: string }
}

function note(facts: Facts, event: StripeLike): void {
  const object = event.data.object as AnyObject
  switch (event.type) {
    case 'checkout.session.completed': {
      if (object.payment_status === 'unpaid') return
      const enough =
        object.payment_status === 'no_payment_required' ||
        (object.amount_total >= price && object.currency === 'usd')
      pay(facts, object.payment_intent ?? object.id, object.amount_total, enough)
      const email = object.customer_details?.email
      facts.buyers.set(object.id, {
        by: 'session',
        subject: email == null ? null : `email:${email.toLowerCase()}`,
        enough,
      })
      return
    }
    case 'payment_intent.succeeded': {
      const enough = object.amount_received >= price && object.currency === 'usd'
      pay(facts, object.id, object.amount_received, enough)
      const { email } = object.metadata
      if (email !== undefined)
        facts.buyers.set(object.id, {
          by: 'intent',
          subject: `email:${email.toLowerCase()}`,
          enough,
        })
      return
    }
    case 'checkout.session.expired':
      facts.expired.add(object.id)
      return
    case 'refund.created':
    case 'refund.updated':
    case 'refund.failed': {
      if (object.status !== 'succeeded' && object.status !== 'failed') return
      const refund = facts.refunds.get(object.id) ?? {
        amount: 0,
        payment: object.payment_intent,
        came: false,
        failed: false,
      }
      if (object.status === 'failed') refund.failed = true
      else Object.assign(refund, { came: true, amount: object.amount })
      facts.refunds.set(object.id, refund)
      return
    }
    case 'charge.dispute.created':
    case 'charge.dispute.closed': {
      const dispute = facts.disputes.get(object.id) ?? {
        payment: object.payment_intent,
        opened: false,
        closed: null,
      }
      if (event.type === 'charge.dispute.created') dispute.opened = true
      else dispute.closed = object.status
      facts.disputes.set(object.id, dispute)
      return
    }
  }
}

function pay(facts: Facts, id: string, amount: number, enough: boolean): void {
  facts.payments.set(id, { amount, enough: enough || facts.payments.get(id)?.enough === true })
}

function stateOf({ payments, refunds, disputes, expired }: Facts): string {
  const paid = [...payments].filter(([, { enough }]) => enough)
  if (paid.length === 0) return expired.size > 0 ? 'canceled' : 'pending'
  const known = [...disputes.values()].filter(({ opened }) => opened)
  if (known.some(({ closed }) => closed === null)) return 'disputed'
  const lost = new Set(
    known.filter(({ closed }) => closed === 'lost').map(({ payment }) => payment),
  )
  const back = (id: string): number =>
    [...refunds.values()]
      .filter((each) => each.payment === id && each.came && !each.failed)
      .reduce((sum, { amount }) => sum + amount, 0)
  const stands = paid.some(
    ([id, { amount }]) => !lost.has(id) && !(amount > 0 && back(id) >= amount),
  )
  if (stands) return 'paid'
  return lost.size > 0 ? 'lost' : 'refunded'
}

function effectsOf({ refunds, disputes, buyers, expired }: Facts): string[] {
  const effects: string[] = []
  if ([...buyers.values()].some(({ enough }) => enough)) effects.push('license/')
  for (const [id, { enough }] of buyers) if (enough) effects.push(`buyer/${id}`)
  for (const id of expired) effects.push(`expired/${id}`)
  for (const [id, { came, failed }] of refunds) {
    if (came) effects.push(`refund/${id}`)
    if (failed) effects.push(`refund:reversed/${id}`)
  }
  for (const [id, { opened, closed }] of disputes) {
    if (opened) effects.push(`disputeOpened/${id}`)
    if (opened && closed !== null) effects.push(`disputeClosed/${id}`)
  }
  return effects.sort()
}

function entitlementsOf(facts: Facts): string[] {
  if (stateOf(facts) !== 'paid') return []
  const buyers = [...facts.buyers].filter(([, { enough, subject }]) => enough && subject !== null)
  const named = buyers.filter(([, { by }]) => by === 'session')
  const [subject] = (named.length > 0 ? named : buyers).sort(([a], [b]) => (a < b ? -1 : 1))
  return subject === undefined ? [] : [`${subject[1].subject} pro`]
}

/** The query whose rows are compared with {@link expectedLicenses}. */
export const actualLicenses = `select o.order_id, o.state,
    coalesce((select array_agg(f.effect_type || '/' || f.effect_reference) from hookledger.fulfillment_effects f where f.order_id = o.order_id), '{}') as effects,
    coalesce((select array_agg(t.subject || ' ' || t.entitlement order by t.subject) from hookledger.entitlements t where t.order_id = o.order_id and t.active), '{}') as entitlements
  from hookledger.orders o where o.workflow = 'license' order by o.order_id`
