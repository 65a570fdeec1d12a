/**
 * Judges what reconciliation and repair did to a world, from what was seeded and from the provider's own
 * objects: was everything found, under its right name, and nothing invented; and does the ledger say what
 * the provider's objects add up to. It shares no code with the engine and none with `audit`.
 */
import type pg from 'pg'
import type Stripe from 'stripe'
import {
  expectedOutcomes,
  type ExpectedOutcome,
} from '../../src/testing/simulation/expected-outcome.ts'
import type { StripeDouble } from '../../src/testing/stripe-double/stripe-double.ts'
import { expectedLicenses } from './oracle-license.ts'
import type { Expectation, Sown } from './reconcile-seeds.ts'
import { eventsOf, type World, type WorldOrder } from './reconcile-world.ts'
import { shopOptions } from './shop.ts'

/** A finding as its row says it. */
export interface FindingRow {
  readonly id: string
  readonly kind: string
  readonly class: string
  readonly state: string
  readonly order: string | null
  /** Everything that it says of records: reference, evidence, and the event that it was made of. */
  readonly words: string
}

/** Something that must be found, and where it must stand after a pass. */
export interface Expected extends Expectation {
  /** `open`: it waits for somebody. `closed`: it was lag, and is mended. `any`: as the engine sees fit. */
  readonly stands: 'open' | 'closed' | 'any'
  /** False: it may be found, and need not be. */
  readonly required: boolean
  /** Any of these records, where the order is not known. */
  readonly records?: readonly string[]
}

/** What the ledger must say of an order when all is known and mended. */
export interface LedgerOrder {
  readonly state: string
  /** Who may use it now; null: nobody. */
  readonly subject: string | null
  readonly licenses: number
  /** Payments that count: id → amount and currency. */
  readonly payments: Readonly<Record<string, string>>
  /** Money given back for good: id → amount. */
  readonly refunds: Readonly<Record<string, string>>
  readonly disputes: Readonly<Record<string, 'open' | 'won' | 'lost'>>
}

const nothing: LedgerOrder = {
  state: 'pending',
  subject: null,
  licenses: 0,
  payments: {},
  refunds: {},
  disputes: {},
}

/** What the provider's objects say of every order that they name. */
export function truthOf(double: StripeDouble): ReadonlyMap<string, LedgerOrder> {
  return new Map([...expectedOutcomes(double)].map(([id, outcome]) => [id, ledgerOrder(outcome)]))
}

function ledgerOrder(outcome: ExpectedOutcome): LedgerOrder {
  const entries = <T>(pairs: readonly (readonly [string, T])[]): Record<string, T> =>
    Object.fromEntries([...pairs].sort(([a], [b]) => (a < b ? -1 : 1)))
  return {
    state: outcome.state,
    subject: outcome.entitled ? outcome.subject : null,
    licenses: outcome.licenses,
    payments: entries(
      outcome.payments
        .filter(({ refusal }) => refusal === null)
        .map(({ id, amount, currency }) => [id, `${amount} ${currency.toUpperCase()}`]),
    ),
    refunds: entries(
      outcome.refunds
        .filter(({ status }) => status === 'succeeded')
        .map(({ id, amount }) => [id, String(amount)]),
    ),
    disputes: entries(outcome.disputes.map(({ id, status }) => [id, standingOf(status)])),
  }
}

function standingOf(status: string): 'open' | 'won' | 'lost' {
  if (/needs_response|under_review/.test(status)) return 'open'
  return status === 'lost' ? 'lost' : 'won'
}

/** What the tables say of every license order. */
export async function ledgerOf(pool: pg.Pool): Promise<ReadonlyMap<string, LedgerOrder>> {
  const { rows } = await pool.query<LedgerOrder & { id: string }>(ledgerQuery)
  return new Map(rows.map(({ id, ...order }) => [id, order]))
}

const ledgerQuery = `
  select o.order_id as id, o.state,
    (select string_agg(t.subject, ',' order by t.subject) from hookledger.entitlements t where t.order_id = o.order_id and t.active and t.quantity = 1 and t.entitlement = 'pro') as subject,
    (select count(*)::int from hookledger.fulfillment_effects f where f.order_id = o.order_id and f.effect_type = 'license') as licenses,
    (select coalesce(jsonb_object_agg(p.payment_id, p.amount || ' ' || p.currency), '{}') from hookledger.ledger_payments p where p.order_id = o.order_id and p.applied) as payments,
    (select coalesce(jsonb_object_agg(f.effect_reference, f.amount::text), '{}') from hookledger.fulfillment_effects f where f.order_id = o.order_id and f.effect_type = 'refund'
       and not exists (select 1 from hookledger.fulfillment_effects r where r.order_id = f.order_id and r.effect_type = 'refund:reversed' and r.effect_reference = f.effect_reference)) as refunds,
    (select coalesce(jsonb_object_agg(f.effect_reference, coalesce(c.data ->> 'outcome', 'open')), '{}') from hookledger.fulfillment_effects f
       left join hookledger.fulfillment_effects c on c.order_id = f.order_id and c.effect_type = 'disputeClosed' and c.effect_reference = f.effect_reference
       where f.order_id = o.order_id and f.effect_type = 'disputeOpened') as disputes
  from hookledger.orders o where o.workflow = 'license'`

/** Where ledger and truth differ, by order: a line for each wrong part. */
export function ledgerDifferences(
  actual: ReadonlyMap<string, LedgerOrder>,
  truth: ReadonlyMap<string, LedgerOrder>,
): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>()
  for (const id of new Set([...actual.keys(), ...truth.keys()])) {
    const [is, must] = [actual.get(id) ?? nothing, truth.get(id) ?? nothing]
    const lines = (Object.keys(nothing) as (keyof LedgerOrder)[]).flatMap((part) => {
      const [one, other] = [written(is[part]), written(must[part])]
      return one === other ? [] : [`${part} is ${one}, must be ${other}`]
    })
    if (lines.length > 0) found.set(id, lines)
  }
  return found
}

function written(value: unknown): string {
  if (typeof value !== 'object' || value === null) return String(value)
  return JSON.stringify(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
}

/**
 * Everything that a pass over this world must and may find, from what was seeded and from what was lost;
 * `different` are the orders that are not what the provider says when it has ended.
 */
export function expectedFindings(
  world: World,
  sown: readonly Sown[],
  different: ReadonlySet<string> = new Set(),
): readonly Expected[] {
  const outcomes = expectedOutcomes(world.double)
  return [
    ...sown.map((each) => seededFinding(world, each, different)),
    ...missingEvents(world),
    ...world.orders.flatMap((each) => hiddenEvents(world, each, outcomes.get(each.order.id))),
    ...[...outcomes.values()].flatMap(decidedFindings),
    ...hiddenInvoices(world),
  ]
}

/**
 * What was done to an order that lost some of its events can be undone by those that a pass brings back, or look
 * like something else; but where it is not what the provider says, somebody must be told.
 */
function seededFinding(world: World, each: Sown, different: ReadonlySet<string>): Expected {
  const { order, events } = world.orders.find((one) => one.order.id === each.into) as WorldOrder
  const isMixed = events.some(({ id }) => world.fates.get(id) !== 'delivered')
  if (!isMixed) return { ...each, stands: 'open', required: true }
  const required = different.has(order.id)
  return {
    ...each,
    order: order.id,
    records: recordsOf(events),
    kinds: contradictions,
    stands: required ? 'open' : 'any',
    required,
  }
}

/** The ids of everything that these events tell of. */
function recordsOf(events: readonly Stripe.Event[]): readonly string[] {
  return [...new Set(events.map(({ data }) => (data.object as { readonly id: string }).id))]
}

const contradictions = [
  'tampered',
  'entitlement_without_state',
  'amount_differs',
  'effect_without_event',
  'paid_here',
  'paid_there',
  'refunded_there',
  'dispute_unseen',
  'order_stuck',
  'payment_without_order',
  'fulfilled_twice',
  'two_claims',
  'name_of_other_order',
]

/** What the shop has code for. */
const handledTypes: ReadonlySet<string> = new Set([
  ...shopOptions.workflows.flatMap(({ handlers }) => [...handlers.keys()]),
  ...shopOptions.handlers.flatMap(({ types }) => types),
])

/** Each event that its provider still lists, and that should have been delivered; one that races may come first. */
function missingEvents(world: World): readonly Expected[] {
  return eventsOf(world).flatMap((event): Expected[] => {
    const fate = world.fates.get(event.id)
    if ((fate !== 'dropped' && fate !== 'racing') || !handledTypes.has(event.type)) return []
    // an intent that pays an invoice waits for a session that never comes, until its deadline
    const waits = world.others.includes(event) && event.type.startsWith('payment_intent')
    return [
      {
        kinds: ['event_missing'],
        class: 'lag',
        order: null,
        record: event.id,
        stands: waits ? 'any' : 'closed',
        required: fate === 'dropped',
      },
    ]
  })
}

/**
 * An order whose hidden events say nothing that the others do not say needs no event made for it. A payment that
 * counts for nothing leaves no trace in what orders come to; but somebody must hear of it.
 */
function hiddenEvents(
  world: World,
  { order, events, seed }: WorldOrder,
  outcome: ExpectedOutcome | undefined,
): readonly Expected[] {
  const listed = events.filter(({ id }) => world.fates.get(id) !== 'hidden')
  const [told, all] = [listed, events].map((some) => [...expectedLicenses(some.map(settled))])
  const isRefused = outcome?.payments.some(({ refusal }) => refusal !== null) === true
  const isRacing = events.some(({ id }) => world.fates.get(id) === 'racing')
  const isKnown = JSON.stringify(told) === JSON.stringify(all)
  if (isKnown && !isRacing && !(isRefused && listed.length < events.length)) return []
  const [without, whole] = [told, all].map((some) =>
    JSON.stringify(
      some
        ?.filter(([, { state }]) => state !== 'pending')
        .map(([id, { state, entitlements }]) => [id, state, entitlements]),
    ),
  )
  return [
    {
      kinds: ['event_missing'],
      class: 'lag',
      order: order.id,
      records: recordsOf(events),
      stands: 'closed',
      // of an order that a contradiction was seeded into, either may be what is told
      required: seed === null && without !== whole,
    },
  ]
}

/** A debit that succeeded at last completes its session, as a payment at once does. */
function settled(event: Stripe.Event): object {
  return event.type === 'checkout.session.async_payment_succeeded'
    ? { ...event, type: 'checkout.session.completed' }
    : event
}

/** What deciding finds by itself, whichever door an event came through. */
function decidedFindings(outcome: ExpectedOutcome): readonly Expected[] {
  const { orderId: order, payments, paidAgain } = outcome
  const refused = payments.filter(({ refusal }) => refusal !== null)
  const found: Expected[] = refused.map(({ id }) => ({
    kinds: ['not_accepted', 'underpaid', 'currency_differs'],
    class: 'contradiction',
    order,
    record: id,
    stands: 'any',
    required: true,
  }))
  if (paidAgain > 0)
    found.push({
      kinds: ['paid_twice'],
      class: 'contradiction',
      order,
      stands: 'any',
      required: true,
    })
  return found
}

/** Paid invoices, and what paid them, that nobody told of; whether one earns anything the credits tell. */
function hiddenInvoices({ others, fates }: World): readonly Expected[] {
  return others.flatMap((event): Expected[] => {
    if (fates.get(event.id) !== 'hidden') return []
    if (event.type === 'invoice_payment.paid') {
      const { id } = event.data.object
      return [
        {
          kinds: ['event_missing'],
          class: 'lag',
          order: null,
          record: id,
          stands: 'closed',
          required: false,
        },
      ]
    }
    if (event.type !== 'invoice.paid') return []
    const { id, parent } = event.data.object
    const subscription = parent?.subscription_details?.subscription
    return [
      {
        kinds: ['event_missing'],
        class: 'lag',
        order: typeof subscription === 'string' ? subscription : null,
        ...(id !== undefined && { record: id }),
        stands: 'closed',
        required: false,
      },
    ]
  })
}

/** What was missed, and what was invented; a line for each. */
export function judgeFindings(
  expected: readonly Expected[],
  found: readonly FindingRow[],
): readonly string[] {
  const wrong: string[] = []
  for (const each of expected) {
    if (!each.required) continue
    const named = found.filter((row) => each.kinds.includes(row.kind) && isAbout(each, row))
    const where = `${each.kinds.join(' or ')} of ${each.order ?? each.record}`
    if (named.length === 0) wrong.push(`missed: ${where}`)
    else if (!named.some((row) => row.class === each.class))
      wrong.push(`not ${each.class}: ${where}`)
    else if (!named.some((row) => stands(each, row)))
      wrong.push(`not ${each.stands}: ${where} (${named.map(({ state }) => state).join(', ')})`)
  }
  for (const row of found) {
    const known = expected.some(
      (each) => [...each.kinds, ...(each.besides ?? [])].includes(row.kind) && isAbout(each, row),
    )
    if (!known) wrong.push(`invented: ${row.kind} of ${row.order} (${row.state}) ${row.words}`)
  }
  return wrong
}

function isAbout({ order, record, records = [] }: Expected, row: FindingRow): boolean {
  if (order !== null && row.order === order) return true
  if (record !== undefined && row.words.includes(record)) return true
  return row.order === null && records.some((id) => row.words.includes(id))
}

function stands(each: Expected, { state }: FindingRow): boolean {
  if (each.stands === 'any') return true
  return each.stands === 'closed' ? state === 'closed' : state === 'open' || state === 'repairing'
}

/** All findings. */
export async function findingsOf(pool: pg.Pool): Promise<readonly FindingRow[]> {
  const { rows } = await pool.query<FindingRow>(
    `select f.finding_id::text as id, f.kind, f.class, f.state, f.order_id as order,
       coalesce(f.reference::text, '') || f.evidence::text || coalesce(e.event_id, '') as words
     from hookledger.findings f left join hookledger.inbox_events e on e.event_key = f.event_key order by f.kind, f.finding_id`,
  )
  return rows
}
