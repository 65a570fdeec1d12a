/**
 * Random histories that a provider can produce, random workflows whose state is a function of the
 * facts, and the oracle: what must be at the end, computed from the facts alone. The oracle shares no
 * code with the engine or with the workflows; both sides of a comparison are plain records, so that a
 * run in memory and rows of a database are held to the same.
 */
import fc from 'fast-check'
import { usd } from './pay-events.ts'
import type { Money } from '../../src/core/money.ts'

/** What a payment must at least be, in cents. */
export const price = 4900

/** What happened at the provider for one order. */
export interface OrderFacts {
  readonly order: string
  readonly payments: readonly PaymentFacts[]
  /** Whether its checkout expired (which a payment may follow). */
  readonly expired: boolean
}

/** A payment, and everything that happened to it. */
export interface PaymentFacts {
  readonly id: string
  /** In cents; less than the price is never accepted. */
  readonly amount: number
  /** Which events tell of it. */
  readonly told: readonly ('session' | 'intent')[]
  /** Whom its session names. */
  readonly subject: string
  /** Until when its session says that it holds, in Unix seconds. */
  readonly until: number
  readonly refunds: readonly {
    readonly id: string
    readonly amount: number
    readonly fails: boolean
  }[]
  readonly dispute: { readonly id: string; readonly closed: 'won' | 'lost' | null } | null
}

/** The states of generated workflows; `pending` is where they begin. */
export const factStates = ['lost', 'disputed', 'refunded', 'paid', 'canceled'] as const
export type FactState = (typeof factStates)[number]

/** A workflow whose state is a function of the facts. */
export interface WorkflowSpec {
  readonly opens: 'app' | 'event'
  /** The first of these that holds is the state; none: pending. */
  readonly precedence: readonly FactState[]
  readonly entitling: readonly FactState[]
  /** Whether any refund takes a payment back, or only one of everything. */
  readonly partialRefundsCount: boolean
  readonly grants: readonly ('pro' | 'seats')[]
}

/** A random workflow. */
export function workflowSpecs(): fc.Arbitrary<WorkflowSpec> {
  return fc.record({
    opens: fc.constantFrom('app', 'event'),
    precedence: fc.shuffledSubarray([...factStates], { minLength: factStates.length }),
    entitling: fc.subarray([...factStates], { minLength: 1 }),
    partialRefundsCount: fc.boolean(),
    grants: fc.subarray(['pro', 'seats'] as const, { minLength: 1 }),
  })
}

/** Random facts of one to `orders` orders. Refunds never exceed what was captured. */
export function factsOfOrders(orders: number): fc.Arbitrary<readonly OrderFacts[]> {
  return fc
    .array(
      fc.record({
        payments: fc.array(rawPayment(), { minLength: 1, maxLength: 2 }),
        expired: fc.boolean(),
      }),
      {
        minLength: 1,
        maxLength: orders,
      },
    )
    .map((list) =>
      list.map(({ payments, expired }, index) => ({
        order: `order-${index + 1}`,
        expired,
        payments: payments.map((raw, number) => paymentOf(raw, `${index + 1}-${number + 1}`)),
      })),
    )
}

type RawPayment = ReturnType<typeof rawPayment> extends fc.Arbitrary<infer T> ? T : never

function rawPayment() {
  return fc.record({
    underpaid: fc.integer({ min: 0, max: 5 }),
    told: fc.subarray(['session', 'intent'] as const, { minLength: 1 }),
    subject: fc.constantFrom('user:1', 'user:2', 'org:7'),
    until: fc.constantFrom(1_800_000_000, 1_900_000_000),
    refunds: fc.array(fc.record({ share: fc.constantFrom(0.25, 0.5, 1), fails: fc.boolean() }), {
      maxLength: 2,
    }),
    dispute: fc.option(
      fc.constantFrom('won' as const, 'lost' as const, null).map((closed) => ({ closed })),
    ),
  })
}

function paymentOf(raw: RawPayment, key: string): PaymentFacts {
  const amount = raw.underpaid === 0 ? price - 1000 : price + raw.underpaid - 1
  let left = amount
  const refunds = raw.refunds.flatMap(({ share, fails }, index) => {
    const taken = Math.ceil(left * share)
    left -= taken
    return taken === 0 ? [] : [{ id: `re_${key}-${index + 1}`, amount: taken, fails }]
  })
  const dispute = raw.dispute === null ? null : { id: `dp_${key}`, ...raw.dispute }
  return {
    id: `pi_${key}`,
    amount,
    told: raw.told,
    subject: raw.subject,
    until: raw.until,
    refunds,
    dispute,
  }
}

/** A body of the generated provider, as a delivery carries it. */
export interface FactBody {
  readonly id: string
  readonly type: string
  readonly created: number
  readonly livemode: false
  readonly order?: string
  readonly payment?: string
  readonly amount?: number
  readonly reference?: string
  readonly subject?: string
  readonly until?: number
  readonly outcome?: 'won' | 'lost'
}

/** The events of the facts, in an order in which they can happen. */
export function bodiesOf(facts: readonly OrderFacts[]): FactBody[] {
  const bodies: FactBody[] = []
  const tell = (
    type: string,
    key: string,
    fields: Omit<FactBody, 'id' | 'type' | 'created' | 'livemode'>,
  ): void => {
    bodies.push({
      id: `evt_${type}_${key}`,
      type,
      created: 1_767_225_600 + bodies.length,
      livemode: false,
      ...fields,
    })
  }
  for (const { order, payments, expired } of facts) {
    if (expired) tell('session.expired', order, { order })
    for (const { id, amount, told, subject, until, refunds, dispute } of payments) {
      const paid = { order, payment: id, amount }
      if (told.includes('session')) tell('session.paid', id, { ...paid, subject, until })
      if (told.includes('intent')) tell('intent.paid', id, paid)
      for (const refund of refunds) {
        const fields = { payment: id, reference: refund.id, amount: refund.amount }
        tell('refund.succeeded', refund.id, fields)
        if (refund.fails) tell('refund.failed', refund.id, fields)
      }
      if (dispute === null) continue
      tell('dispute.opened', dispute.id, { payment: id, reference: dispute.id })
      if (dispute.closed === null) continue
      tell('dispute.closed', dispute.id, {
        payment: id,
        reference: dispute.id,
        outcome: dispute.closed,
      })
    }
  }
  return bodies
}

/** What the app opens its orders with, where the workflow lets only the app open them. */
export function openingOf({ order }: OrderFacts): { id: string; subject: string; expected: Money } {
  return { id: order, subject: `buyer:${order}`, expected: usd(price) }
}

/** The end of an order, as plain records: of the oracle, of a run in memory, of rows. */
export interface OrderRecord {
  readonly state: string
  /** `type` or `type reference` → `amount payment`, each `-` where there is none. */
  readonly effects: Readonly<Record<string, string>>
  /** `subject entitlement` → `quantity until`, active ones only. */
  readonly entitlements: Readonly<Record<string, string>>
}

/** The oracle: what must be at the end, whatever the order of arrival, by order id. */
export function expectedRecords(
  spec: WorkflowSpec,
  facts: readonly OrderFacts[],
): Record<string, OrderRecord> {
  return Object.fromEntries(facts.map((order) => [order.order, expectedRecord(spec, order)]))
}

function expectedRecord(spec: WorkflowSpec, facts: OrderFacts): OrderRecord {
  const good = facts.payments.filter((payment) => payment.amount >= price)
  const standing = good.filter((payment) => stands(spec, payment))
  const disputes = good.flatMap((payment) => (payment.dispute === null ? [] : [payment.dispute]))
  const holds: Record<FactState, boolean> = {
    lost: disputes.some((dispute) => dispute.closed === 'lost'),
    disputed: disputes.some((dispute) => dispute.closed === null),
    refunded: good.length > 0 && standing.length === 0,
    paid: standing.length > 0,
    canceled: facts.expired,
  }
  const state = spec.precedence.find((each) => holds[each]) ?? 'pending'
  const entitles = state !== 'pending' && spec.entitling.includes(state)
  return {
    state,
    effects: expectedEffects(facts, good),
    entitlements: entitles ? expectedEntitlements(spec, facts, good, standing.length) : {},
  }
}

function stands(spec: WorkflowSpec, payment: PaymentFacts): boolean {
  let returned = 0
  for (const refund of payment.refunds) if (!refund.fails) returned += refund.amount
  return spec.partialRefundsCount ? returned === 0 : returned < payment.amount
}

function expectedEffects(facts: OrderFacts, good: readonly PaymentFacts[]): Record<string, string> {
  const effects: Record<string, string> = {}
  if (facts.expired) effects['expired'] = '- -'
  if (good.length > 0) effects['license'] = '- -'
  for (const { id, told } of good) {
    effects[`credit ${id}`] = '- -'
    if (told.includes('session')) effects[`session ${id}`] = '- -'
  }
  for (const { id, refunds, dispute } of facts.payments) {
    for (const refund of refunds) {
      effects[`refund ${refund.id}`] = `${refund.amount} ${id}`
      if (refund.fails) effects[`refund:reversed ${refund.id}`] = '- -'
    }
    if (dispute !== null) effects[`disputeOpened ${dispute.id}`] = `- ${id}`
    if (dispute !== null && dispute.closed !== null)
      effects[`disputeClosed ${dispute.id}`] = `- ${id}`
  }
  return effects
}

function expectedEntitlements(
  spec: WorkflowSpec,
  facts: OrderFacts,
  good: readonly PaymentFacts[],
  standing: number,
): Record<string, string> {
  const named = good.filter((payment) => payment.told.includes('session'))
  const subjects = named.map((payment) => payment.subject)
  // what the app opened belongs to whom the app said, whatever a session says
  if (spec.opens === 'app' && good.length > 0)
    subjects.splice(0, subjects.length, `buyer:${facts.order}`)
  const until =
    named.length === 0 ? '-' : String(Math.max(...named.map((payment) => payment.until)))
  const entitlements: Record<string, string> = {}
  for (const subject of subjects) {
    if (spec.grants.includes('pro')) entitlements[`${subject} pro`] = `1 ${until}`
    if (spec.grants.includes('seats') && standing > 0)
      entitlements[`${subject} seats`] = `${standing} -`
  }
  return entitlements
}

/** What is wrong with the end of a run, a line for each wrong part; none when it is as expected. */
export function violationsOf(
  actual: Readonly<Record<string, OrderRecord>>,
  expected: Readonly<Record<string, OrderRecord>>,
): string[] {
  const found: string[] = []
  for (const order of new Set([...Object.keys(expected), ...Object.keys(actual)])) {
    const [is, must] = [actual[order], expected[order]]
    if (is === undefined || must === undefined) {
      found.push(`${order} is ${is === undefined ? 'missing' : 'not expected'}`)
      continue
    }
    if (is.state !== must.state) found.push(`${order} is ${is.state}, must be ${must.state}`)
    for (const part of ['effects', 'entitlements'] as const) {
      for (const key of new Set([...Object.keys(must[part]), ...Object.keys(is[part])])) {
        if (is[part][key] !== must[part][key]) {
          found.push(`${order}, ${part}, ${key}: is ${is[part][key]}, must be ${must[part][key]}`)
        }
      }
    }
  }
  return found
}

/** How the events of a history arrive: batches of event numbers, -1-n for the opening of order n. */
export type Schedule = readonly (readonly number[])[]

/** Any order, with repetitions, in batches of any size; openings come at any moment. */
export function schedules(events: number, openings: number): fc.Arbitrary<Schedule> {
  const steps = [
    ...Array.from({ length: events }, (_, index) => index),
    ...Array.from({ length: openings }, (_, index) => -1 - index),
  ]
  return fc
    .record({
      order: fc.shuffledSubarray(steps, { minLength: steps.length }),
      again: fc.shuffledSubarray(steps, { maxLength: steps.length }),
      places: fc.array(fc.nat(), { minLength: steps.length, maxLength: steps.length }),
      cuts: fc.array(fc.boolean(), { minLength: 2 * steps.length, maxLength: 2 * steps.length }),
    })
    .map(({ order, again, places, cuts }) => {
      const arrivals = [...order]
      again.forEach((step, index) =>
        arrivals.splice((places[index] ?? 0) % (arrivals.length + 1), 0, step),
      )
      const batches: number[][] = []
      for (const [index, step] of arrivals.entries()) {
        const last = batches.at(-1)
        if (last === undefined || step < 0 || (last[0] ?? 0) < 0 || cuts[index] === true)
          batches.push([step])
        else last.push(step)
      }
      return batches
    })
}
