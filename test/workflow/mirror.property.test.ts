import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { defer, effect, fulfill, mirrored } from '../../src/workflow/decision.ts'
import { play, type Play } from '../../src/testing/play.ts'
import { planEvent, planWorkflow, type Plan, type PlanEvent } from '../support/plan-workflow.ts'
import type { Workflow } from '../../src/workflow/workflow.ts'

// a bound for slow machines, not a measure
vi.setConfig({ testTimeout: 60_000 })

const seed = 20261201
const statuses = ['trialing', 'active', 'past_due', 'active', 'canceled', null] as const

/** What happened to one plan, step by step: its status from then on, and what counts once. */
interface Life {
  readonly steps: readonly {
    readonly status: string | null
    readonly fact: 'paid' | 'refunded' | null
  }[]
  /** For each event in order of arrival: which step it tells of, and how many have happened by then. */
  readonly arrivals: readonly {
    readonly step: number
    readonly happened: number
    readonly joins: boolean
  }[]
}

/** Lives whose events come in any order, often twice, alone or together, while the plan goes on changing. */
const lives: fc.Arbitrary<Life> = fc
  .array(
    fc.record({
      status: fc.constantFrom(...statuses),
      fact: fc.constantFrom('paid', 'refunded', null, null),
    }),
    { minLength: 1, maxLength: 8 },
  )
  .chain((steps) =>
    fc.record({
      steps: fc.constant(steps),
      arrivals: fc
        .array(
          fc.record({
            step: fc.nat(steps.length - 1),
            delay: fc.nat(steps.length),
            joins: fc.boolean(),
          }),
          { maxLength: 6 },
        )
        .chain((again) =>
          fc
            .record({
              delays: fc.array(fc.nat(steps.length), {
                minLength: steps.length,
                maxLength: steps.length,
              }),
              joined: fc.array(fc.boolean(), {
                minLength: steps.length,
                maxLength: steps.length,
              }),
            })
            .map(({ delays, joined }) => {
              const each = steps.map((_, step) => ({
                step,
                delay: delays[step] ?? 0,
                joins: joined[step] ?? false,
              }))
              // an event comes when its step has happened, or any number of steps later
              return [...each, ...again]
                .map(({ step, delay, joins }) => ({
                  step,
                  joins,
                  happened: Math.min(step + 1 + delay, steps.length),
                }))
                .sort((a, b) => a.happened - b.happened)
            }),
        ),
    }),
  )

function workflow(
  decide?: (input: { event: PlanEvent; current: Plan | null }) => unknown,
): Workflow {
  return planWorkflow({
    ...(decide !== undefined && { decide }),
    on: {
      'invoice.paid': ({ event }) =>
        fulfill({ effects: [{ type: 'credits', reference: event.id }] }),
      'refund.created': ({ event, effects }) =>
        effects.some((each) => each.type === 'credits')
          ? fulfill({ effects: [{ type: 'refund', reference: event.id }] })
          : defer({ missing: effect('credits', 'any') }),
    },
  })
}

function planAt(life: Life, happened: number): Plan | null {
  const status = life.steps[happened - 1]?.status ?? null
  return status === null ? null : { id: 'p1', status, seats: happened }
}

function run(life: Life, of: Workflow): { readonly app: Play; readonly looks: number } {
  let happened = 0
  let looks = 0
  const present = (): Plan | null => {
    looks += 1
    return planAt(life, happened)
  }
  const app = play([of], { sources: { pay: { present } } })
  const batches: { happened: number; events: PlanEvent[] }[] = []
  for (const arrival of life.arrivals) {
    const { status, fact } = life.steps[arrival.step] ?? { status: null, fact: null }
    const shown: Plan = { id: 'p1', status: status ?? 'canceled', seats: arrival.step + 1 }
    const events = [planEvent('plan.updated', shown, `look_${arrival.step}`)]
    if (fact === 'paid') events.push(planEvent('invoice.paid', shown, `in_${arrival.step}`))
    if (fact === 'refunded') events.push(planEvent('refund.created', shown, `re_${arrival.step}`))
    const last = batches.at(-1)
    if (last !== undefined && arrival.joins && last.happened === arrival.happened)
      last.events.push(...events)
    else batches.push({ happened: arrival.happened, events })
  }
  for (const batch of batches) {
    happened = batch.happened
    app.deliver(batch.events)
  }
  return { app, looks }
}

function problemsOf(life: Life, app: Play): string[] {
  const truth = planAt(life, life.steps.length)
  const order = app.order('p1')
  const entitled = ['trialing', 'active', 'past_due'].includes(truth?.status ?? '')
  const facts = (kind: string): string[] =>
    life.steps.flatMap(({ fact }, step) =>
      fact === kind ? [`${kind === 'paid' ? 'in' : 're'}_${step}`] : [],
    )
  const made = (type: string): string[] =>
    order.effects.flatMap((each) => (each.type === type ? [each.reference] : [])).sort()
  const seats = app.entitlements('org:1').map((each) => each.quantity)
  const expected = {
    state: truth?.status ?? 'gone',
    seats: entitled ? [life.steps.length] : [],
    credits: facts('paid').sort(),
    refunds: facts('paid').length > 0 ? facts('refunded').sort() : [],
  }
  const found = { state: order.state, seats, credits: made('credits'), refunds: made('refund') }
  return JSON.stringify(found) === JSON.stringify(expected)
    ? []
    : [`${JSON.stringify(found)}, not ${JSON.stringify(expected)}`]
}

describe('orders that follow a mirror', () => {
  test('end as the provider has it, whatever comes late, twice, together or in another order', () => {
    fc.assert(
      fc.property(lives, (life) => {
        expect(problemsOf(life, run(life, workflow()).app)).toEqual([])
      }),
      { numRuns: 500, seed },
    )
  })

  test('are looked at no more often than their events come in batches', () => {
    fc.assert(
      fc.property(lives, (life) => {
        const { app, looks } = run(life, workflow())
        expect(looks).toBeLessThanOrEqual(new Set(life.arrivals.map((each) => each.step)).size)
        const numbers = app
          .order('p1')
          .decisions.flatMap(({ text }) => /answer (\d+)/.exec(text)?.[1] ?? [])
          .map(Number)
        expect(numbers).toEqual([...numbers].sort((a, b) => a - b))
      }),
      { numRuns: 200, seed },
    )
  })

  test('end wrong where the event is believed instead: the check can fail', () => {
    const naive = workflow(({ event }) => mirrored({ to: event.data.object.status }))
    const wrong = fc
      .sample(lives, { numRuns: 200, seed })
      .filter((life) => problemsOf(life, run(life, naive).app).length > 0)
    expect(wrong.length).toBeGreaterThan(20)
  })
})
