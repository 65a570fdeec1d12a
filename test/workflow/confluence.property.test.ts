import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { checkConfluence } from '../../src/workflow/confluence.ts'
import { play, type Play } from '../../src/testing/play.ts'
import { carelessWorkflow, factWorkflow, type Carelessness } from '../support/fact-workflow.ts'
import {
  bodiesOf,
  expectedRecords,
  factsOfOrders,
  openingOf,
  price,
  schedules,
  violationsOf,
  workflowSpecs,
  type OrderFacts,
  type OrderRecord,
  type Schedule,
  type WorkflowSpec,
} from '../support/histories.ts'
import type { Workflow } from '../../src/workflow/workflow.ts'

// a bound for slow machines, not a measure
vi.setConfig({ testTimeout: 60_000 })

const seed = 20260101

/** A spec, facts, and two ways in which their events arrive. */
const cases = fc
  .record({ spec: workflowSpecs(), facts: factsOfOrders(2) })
  .chain(({ spec, facts }) => {
    const openings = spec.opens === 'app' ? facts.length : 0
    const events = bodiesOf(facts).length
    return fc.record({
      spec: fc.constant(spec),
      facts: fc.constant(facts),
      schedule: schedules(events, openings),
    })
  })

/** Delivers the facts' events as the schedule says, and returns the end as plain records. */
function run(
  workflow: Workflow,
  facts: readonly OrderFacts[],
  schedule: Schedule,
): Record<string, OrderRecord> {
  const app = play([workflow])
  const bodies = bodiesOf(facts)
  for (const batch of schedule) {
    const [first = 0] = batch
    const opened = first < 0 ? facts[-1 - first] : undefined
    if (opened !== undefined) app.open(openingOf(opened))
    else app.deliver(batch.flatMap((index) => bodies[index] ?? []))
  }
  return recordsOf(app)
}

function recordsOf(app: Play): Record<string, OrderRecord> {
  return Object.fromEntries(
    app.orders().map(({ id, state, effects, entitlements }) => [
      id,
      {
        state,
        effects: Object.fromEntries(
          effects.flatMap(({ type, reference, amount, payment, reversed }) => {
            const key = reference === '' ? type : `${type} ${reference}`
            const made: [string, string] = [key, `${amount ?? '-'} ${payment ?? '-'}`]
            return reversed ? [made, [`${type}:reversed ${reference}`, '- -']] : [made]
          }),
        ),
        entitlements: Object.fromEntries(
          entitlements
            .filter((row) => row.active)
            .map(({ subject, entitlement, quantity, validUntil }) => [
              `${subject} ${entitlement}`,
              `${quantity} ${validUntil === null ? '-' : validUntil.getTime() / 1000}`,
            ]),
        ),
      },
    ]),
  )
}

function inOrder(facts: readonly OrderFacts[], spec: WorkflowSpec): Schedule {
  const openings = spec.opens === 'app' ? facts.map((_, index) => [-1 - index]) : []
  return [...openings, ...bodiesOf(facts).map((_, index) => [index])]
}

describe('confluent workflows', () => {
  test('end as the oracle says, in any order, with repetitions, interleaved and in any batches', () => {
    const states = new Set<string>()
    fc.assert(
      fc.property(cases, ({ spec, facts, schedule }) => {
        const records = run(factWorkflow(spec), facts, schedule)
        for (const { state } of Object.values(records)) states.add(state)
        expect(violationsOf(records, expectedRecords(spec, facts))).toEqual([])
      }),
      { seed, numRuns: 1000 },
    )
    // nothing is proved by histories that go nowhere
    expect([...states].sort()).toEqual([
      'canceled',
      'disputed',
      'lost',
      'paid',
      'pending',
      'refunded',
    ])
  })

  test('leave nothing waiting, dead or contradicted but what was paid too little', () => {
    fc.assert(
      fc.property(cases, ({ spec, facts, schedule }) => {
        const app = play([factWorkflow(spec)])
        const bodies = bodiesOf(facts)
        for (const opened of spec.opens === 'app' ? facts : []) app.open(openingOf(opened))
        for (const batch of schedule) app.deliver(batch.flatMap((index) => bodies[index] ?? []))
        expect(app.inbox().filter((entry) => entry.state !== 'processed')).toEqual([])
        const underpaid = facts.some(({ payments }) =>
          payments.some((payment) => payment.amount < price),
        )
        const contradicted = app
          .findings()
          .filter((found) => !['paid_twice', 'overpaid'].includes(found.kind))
        expect(contradicted.length > 0).toBe(underpaid)
      }),
      { seed, numRuns: 300 },
    )
  })

  test('pass the confluence check', () => {
    fc.assert(
      fc.property(workflowSpecs(), factsOfOrders(1), (spec, facts) => {
        const [order] = facts
        const open = spec.opens === 'app' && order !== undefined ? openingOf(order) : undefined
        const history = { name: 'any', events: bodiesOf(facts), ...(open && { open }) }
        expect(
          checkConfluence(factWorkflow(spec), [history], { exhaustive: 4, samples: 20 }).failures,
        ).toEqual([])
      }),
      { seed, numRuns: 120 },
    )
  })
})

describe('workflows that are not confluent', () => {
  /** Two events tell of the payment, and a refund of it stands: only then must the last event not win. */
  const telling = factsOfOrders(1).filter((facts) =>
    facts.some(
      ({ payments: [payment] }) =>
        payment !== undefined &&
        payment.amount >= price &&
        payment.told.length === 2 &&
        payment.refunds.some((refund) => !refund.fails),
    ),
  )

  test('in which the last event wins are named by the check', () => {
    fc.assert(
      fc.property(workflowSpecs(), telling, (spec, facts) => {
        const workflow = carelessWorkflow({ ...spec, opens: 'event' }, 'last event wins')
        const history = { name: 'told twice', events: bodiesOf(facts) }
        const { failures } = checkConfluence(workflow, [history], { samples: 150 })
        expect(failures).toMatchObject([{ history: 'told twice' }])
        expect(failures[0]?.differs.length).toBeGreaterThan(0)
      }),
      { seed, numRuns: 25 },
    )
  })
})

describe('the oracle', () => {
  const mutations: readonly (readonly [string, (record: OrderRecord) => OrderRecord])[] = [
    [
      'another state',
      (record) => ({ ...record, state: record.state === 'paid' ? 'refunded' : 'paid' }),
    ],
    [
      'an effect too many',
      (record) => ({ ...record, effects: { ...record.effects, 'license again': '- -' } }),
    ],
    ['an effect that is missing', (record) => ({ ...record, effects: without(record.effects) })],
    [
      'another amount',
      (record) => ({ ...record, effects: mapFirst(record.effects, () => '1 pi_other') }),
    ],
    [
      'an entitlement too many',
      (record) => ({ ...record, entitlements: { ...record.entitlements, 'user:9 pro': '1 -' } }),
    ],
    [
      'an entitlement that is missing',
      (record) => ({ ...record, entitlements: without(record.entitlements) }),
    ],
    [
      'another quantity',
      (record) => ({
        ...record,
        entitlements: mapFirst(record.entitlements, (value) => `9${value}`),
      }),
    ],
  ]

  test.each(mutations)('sees %s in the end of any run', (_, mutate) => {
    let seen = 0
    fc.assert(
      fc.property(cases, ({ spec, facts }) => {
        const expected = expectedRecords(spec, facts)
        for (const [order, record] of Object.entries(expected)) {
          const changed = mutate(record)
          if (JSON.stringify(changed) === JSON.stringify(record)) continue
          seen += 1
          expect(violationsOf({ ...expected, [order]: changed }, expected).length).toBeGreaterThan(
            0,
          )
        }
      }),
      { seed, numRuns: 100 },
    )
    expect(seen).toBeGreaterThan(20)
  })

  test('sees an order that is missing, and one that nobody expects', () => {
    const expected = { a: { state: 'paid', effects: {}, entitlements: {} } }
    expect(violationsOf({}, expected)).toEqual(['a is missing'])
    expect(violationsOf({ ...expected, b: expected.a }, expected)).toEqual(['b is not expected'])
  })

  test.each<Carelessness>([
    'last event wins',
    'reversals are forgotten',
    'partial refunds are whole',
  ])('sees the mistake of a workflow in which %s', (mistake) => {
    const wrong = fc
      .sample(fc.record({ spec: workflowSpecs(), facts: factsOfOrders(2) }), { seed, numRuns: 300 })
      .filter(({ spec, facts }) => {
        const records = run(carelessWorkflow(spec, mistake), facts, inOrder(facts, spec))
        return violationsOf(records, expectedRecords(spec, facts)).length > 0
      })
    expect(wrong.length).toBeGreaterThan(3)
  })

  test('shares no code with the engine: a workflow without mistakes satisfies it event by event', () => {
    const samples = fc.sample(fc.record({ spec: workflowSpecs(), facts: factsOfOrders(2) }), {
      seed,
      numRuns: 300,
    })
    for (const { spec, facts } of samples) {
      const records = run(factWorkflow(spec), facts, inOrder(facts, spec))
      expect(violationsOf(records, expectedRecords(spec, facts))).toEqual([])
    }
  })
})

function without(record: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(record).slice(1))
}

function mapFirst(
  record: Readonly<Record<string, string>>,
  change: (value: string) => string,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(record).map(([key, value], index) => [key, index === 0 ? change(value) : value]),
  )
}
