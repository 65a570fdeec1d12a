import { describe, expect, test } from 'vitest'
import { factsOfBody } from '../../src/workflow/body-event.ts'
import { contradict, defer, effect, fulfill, mirrored, skip } from '../../src/workflow/decision.ts'
import { linkedCustomer } from '../../src/workflow/decision.ts'
import { foldOrder } from '../../src/workflow/fold.ts'
import type { ClaimInputs, GatherAnswer, MirrorAnswer } from '../../src/workflow/gathering.ts'
import { unopenedOrder } from '../../src/workflow/opening.ts'
import type { OrderLedger } from '../../src/workflow/order.ts'
import { playOutbox } from '../../src/workflow/play-outbox.ts'
import { createRegistry } from '../../src/workflow/registry.ts'
import { resolveEvent, type Claim } from '../../src/workflow/resolve-event.ts'
import type { Workflow } from '../../src/workflow/workflow.ts'
import {
  planEvent,
  planWorkflow,
  type GatherTestInput,
  type Plan,
  type PlanEvent,
} from '../support/plan-workflow.ts'

const answered = { evidenceId: 70n, fetchedAt: new Date(0), sha256: 'ab' }

function look(current: Plan | null, number = 1n, applied = 0n): ClaimInputs {
  const object = { kind: 'plan', value: current?.id ?? '1' }
  const mirror: MirrorAnswer = { ...answered, number, applied, object, current }
  return { mirror }
}

function gathered(evidence: unknown, orderVersion: bigint | null): ClaimInputs {
  const gather: GatherAnswer = { ...answered, number: 1n, evidence, orderVersion }
  return { gather }
}

let key = 0n

function claim(workflow: Workflow, body: PlanEvent, inputs?: ClaimInputs): Claim {
  const facts = factsOfBody(body)
  key += 1n
  const resolved = resolveEvent(
    {
      key,
      sourceId: 1,
      source: { name: 'pay', provider: 'pay', account: 'pay', environment: 'test' },
      accountAllowed: true,
      eventId: facts.eventId,
      eventType: facts.eventType,
      receivedAt: new Date(0),
      occurredAt: null,
      synthetic: false,
      content: facts.content,
    },
    { registry: createRegistry([workflow], []), environment: 'test', mayIgnore: true },
  )
  if (resolved.kind !== 'claim') throw new Error(`it is ${resolved.kind}`)
  return inputs === undefined ? resolved : { ...resolved, inputs }
}

function fold(ledger: OrderLedger, ...claims: readonly Claim[]) {
  return foldOrder(ledger, claims, {
    allocate: (event) => event.key * 10n,
    ownerOf: () => null,
    payerOf: () => null,
    derive: (order, name) => `${order}/${name}`,
    outbox: playOutbox(),
  })
}

const active: Plan = { id: '1', status: 'active' }
const updated = (plan: Plan = active): PlanEvent => planEvent('plan.updated', plan)

describe('a mirror without an answer', () => {
  test('asks, and leaves no trace of the order that it would have opened', () => {
    const workflow = planWorkflow()
    const ledger = unopenedOrder('1', workflow)
    const before = structuredClone(ledger)
    const asking = claim(workflow, updated())
    const { outcomes, asks, failures } = fold(ledger, asking)
    expect({ outcomes, asks, failures }).toEqual({ outcomes: [], asks: [asking], failures: [] })
    expect(ledger).toEqual(before)
  })

  test('asks beside events that are decided, which see nothing of it', () => {
    const workflow = planWorkflow({
      on: { 'invoice.paid': ({ order }) => skip(`the order is ${order.state}`) },
    })
    const ledger = unopenedOrder('1', workflow)
    const paid = claim(workflow, planEvent('invoice.paid', active))
    const { outcomes, asks } = fold(ledger, claim(workflow, updated()), paid)
    expect(outcomes.map((each) => [each.kind, each.reason])).toEqual([
      ['skipped', 'the order is new'],
    ])
    expect(asks).toHaveLength(1)
    expect(ledger.stored).toBe(true)
  })

  test('waits for the app where only the app opens orders, without a request', () => {
    const workflow = planWorkflow({ opens: 'app' })
    const { outcomes, asks } = fold(unopenedOrder('1', workflow), claim(workflow, updated()))
    expect(asks).toEqual([])
    expect(outcomes[0]?.reason).toBe('waits for order 1 to be opened')
  })

  test('is not asked for an order of another workflow', () => {
    const workflow = planWorkflow()
    const ledger = { ...unopenedOrder('1', planWorkflow({ name: 'others' })), stored: true }
    const { outcomes, asks } = fold(ledger, claim(workflow, updated()))
    expect(asks).toEqual([])
    expect(outcomes[0]?.kind).toBe('contradicted')
    expect(outcomes[0]?.evidence['fetch']).toBeUndefined()
  })
})

describe('a mirror with an answer', () => {
  test('moves from any state into any other, transitions or not, and says what it looked at', () => {
    const workflow = planWorkflow({ transitions: { new: ['trialing'] } })
    const ledger = unopenedOrder('1', workflow)
    const first = fold(ledger, claim(workflow, updated(), look(active, 3n)))
    expect(first.outcomes[0]).toMatchObject({ kind: 'moved', from: 'new', to: 'active' })
    expect(first.outcomes[0]?.granted).toEqual(['org:1 team'])
    expect(first.outcomes[0]?.evidence['fetch']).toEqual({
      about: 'plan 1',
      number: '3',
      evidence: '70',
      fetched_at: '1970-01-01T00:00:00.000Z',
      sha256: 'ab',
    })
    const back = fold(ledger, claim(workflow, updated(), look({ ...active, status: 'new' }, 4n)))
    expect(back.outcomes[0]).toMatchObject({ kind: 'moved', from: 'active', to: 'new' })
    expect(back.outcomes[0]?.revoked).toEqual(['org:1 team'])
  })

  test('that was decided from already changes nothing once a later one was', () => {
    const workflow = planWorkflow()
    const ledger = unopenedOrder('1', workflow)
    fold(ledger, claim(workflow, updated(), look({ ...active, status: 'canceled' }, 5n)))
    const { outcomes } = fold(ledger, claim(workflow, updated(), look(active, 4n, 5n)))
    expect(outcomes[0]).toMatchObject({ kind: 'absorbed', from: 'canceled', to: 'canceled' })
    expect(outcomes[0]?.reason).toBe('already decided from a later answer than 4 about plan 1')
    expect(outcomes[0]?.evidence['fetch']).toMatchObject({ number: '4' })
  })

  test('that another event was decided from serves this one, too: what it says itself is not lost', () => {
    const workflow = planWorkflow({
      decide: ({ event, current }) =>
        event.id === 'evt_dull'
          ? skip('says nothing')
          : mirrored({ to: current?.status ?? 'gone', effects: [{ type: 'reminder' }] }),
    })
    const dull = claim(workflow, planEvent('plan.updated', active, 'evt_dull'), look(active, 2n))
    const telling = planEvent('plan.updated', active, 'evt_telling')
    const together = unopenedOrder('1', workflow)
    fold(together, dull, claim(workflow, telling, look(active, 2n)))
    const apart = unopenedOrder('1', workflow)
    fold(apart, dull)
    fold(apart, claim(workflow, telling, look(active, 2n, 2n)))
    expect(apart.state).toBe('active')
    expect(apart.effects.map((each) => each.type)).toEqual(['reminder'])
    expect([apart.state, apart.effects.length]).toEqual([together.state, together.effects.length])
  })

  test('that says what is so already is absorbed, whatever came before: no transition, no version', () => {
    const workflow = planWorkflow()
    const ledger = unopenedOrder('1', workflow)
    fold(ledger, claim(workflow, updated(), look(active, 1n)))
    const { version } = ledger
    const rows = structuredClone(ledger.entitlements)
    const { outcomes } = fold(ledger, claim(workflow, updated(), look(active, 2n, 1n)))
    expect(outcomes[0]).toMatchObject({ kind: 'absorbed', reason: 'unchanged: plans is active' })
    expect([outcomes[0]?.granted, outcomes[0]?.revoked]).toEqual([[], []])
    expect(ledger.version).toBe(version)
    expect(ledger.entitlements).toEqual(rows)
  })

  test('that changes nothing but has an effect of its own makes it, once', () => {
    const workflow = planWorkflow({
      decide: ({ current }) =>
        mirrored({
          to: current?.status ?? 'gone',
          effects: current?.seats === 5 ? [{ type: 'reminder', reference: 'five' }] : [],
        }),
    })
    const ledger = unopenedOrder('1', workflow)
    fold(ledger, claim(workflow, updated(), look(active, 1n)))
    const five = { ...active, seats: 5 }
    const { outcomes } = fold(ledger, claim(workflow, updated(five), look(five, 2n, 1n)))
    expect(outcomes[0]).toMatchObject({ kind: 'moved', from: 'active', to: 'active' })
    const again = fold(ledger, claim(workflow, updated(five), look(five, 3n, 2n)))
    expect(again.outcomes[0]?.kind).toBe('absorbed')
    expect(ledger.effects.map((each) => each.reference)).toEqual(['five'])
  })

  test.each<[string, Plan]>([
    ['a quantity', { ...active, seats: 5 }],
    ['an end', { ...active, until: 1_900_000_000 }],
  ])('that changes only %s is a change', (_, plan) => {
    const workflow = planWorkflow()
    const ledger = unopenedOrder('1', workflow)
    fold(ledger, claim(workflow, updated(), look(active, 1n)))
    const { outcomes } = fold(ledger, claim(workflow, updated(plan), look(plan, 2n, 1n)))
    expect(outcomes[0]).toMatchObject({ kind: 'moved', from: 'active', to: 'active' })
    expect(outcomes[0]?.evidence['stated']).toBeDefined()
    const again = fold(ledger, claim(workflow, updated(plan), look(plan, 3n, 2n)))
    expect(again.outcomes[0]?.kind).toBe('absorbed')
  })

  test('of an object that is gone is a state like any other', () => {
    const workflow = planWorkflow()
    const ledger = unopenedOrder('1', workflow)
    fold(ledger, claim(workflow, updated(), look(active, 1n)))
    const { outcomes } = fold(ledger, claim(workflow, updated(), look(null, 2n, 1n)))
    expect(outcomes[0]).toMatchObject({ kind: 'moved', to: 'gone', revoked: ['org:1 team'] })
  })

  test('shows decide the frozen order and the answer, and nothing gathered', () => {
    const seen: unknown[] = []
    const workflow = planWorkflow({
      decide: (input) => {
        seen.push(Object.isFrozen(input), input.current, input.evidence, input.customer)
        return skip('only looked')
      },
    })
    const { outcomes } = fold(
      unopenedOrder('1', workflow),
      claim(workflow, updated(), look(active)),
    )
    expect(seen).toEqual([true, active, undefined, null])
    expect(outcomes[0]).toMatchObject({ kind: 'skipped', evidence: { fetch: { number: '1' } } })
  })

  test('records the answer with a contradiction and a wait, too', () => {
    const workflow = planWorkflow({
      decide: ({ current }) =>
        current?.status === 'canceled'
          ? contradict('it cannot be', { status: 'canceled' })
          : defer({ missing: effect('credits', 'in_1') }),
    })
    const canceled = { ...active, status: 'canceled' }
    const { outcomes } = fold(
      unopenedOrder('1', workflow),
      claim(workflow, updated(), look(canceled)),
      claim(workflow, updated(), look(active, 2n)),
    )
    expect(outcomes.map((each) => [each.kind, Object.keys(each.evidence)])).toEqual([
      ['contradicted', ['order', 'reason', 'status', 'fetch']],
      ['deferred', ['fetch']],
    ])
  })

  test('flags about the order, so that every look finds the same again, and settles what is over', () => {
    const flag = { kind: 'unknown_status', figures: { status: 'frozen' } }
    const workflow = planWorkflow({
      decide: ({ current }) =>
        current?.status === 'frozen'
          ? mirrored({ flag, settles: ['unknown_status', 'unknown_price'] })
          : mirrored({ to: current?.status ?? 'gone', settles: ['unknown_status'] }),
    })
    const ledger = unopenedOrder('1', workflow)
    fold(ledger, claim(workflow, updated(), look(active)))
    const odd = { ...active, status: 'frozen' }
    const first = fold(ledger, claim(workflow, updated(odd), look(odd, 2n, 1n))).outcomes[0]
    expect(first).toMatchObject({ kind: 'absorbed', to: 'active', settles: ['unknown_price'] })
    expect(first?.findings).toEqual([
      {
        kind: 'unknown_status',
        class: 'contradiction',
        severity: expect.any(String) as string,
        about: 'order:1',
        figures: { order: '1', status: 'frozen' },
      },
    ])
    const second = fold(ledger, claim(workflow, updated(odd), look(odd, 3n, 2n))).outcomes[0]
    expect(second?.findings[0]?.about).toBe('order:1')
    const good = fold(ledger, claim(workflow, updated(), look(active, 4n, 3n))).outcomes[0]
    expect(good).toMatchObject({ kind: 'absorbed', settles: ['unknown_status'], findings: [] })
  })

  test('waits for a customer to be linked, and moves on when it is', () => {
    const workflow = planWorkflow({
      customer: ({ current }) => current?.customer ?? null,
      decide: ({ customer, current }) =>
        customer?.subject == null
          ? defer({ missing: linkedCustomer(customer?.id ?? '') })
          : mirrored({ to: current?.status ?? 'gone', subject: customer.subject }),
    })
    const plan = { ...active, customer: 'cus_1' }
    const ledger = unopenedOrder('1', workflow)
    const unlinked = { ...look(plan), customer: { id: 'cus_1', subject: null } }
    const waits = fold(ledger, claim(workflow, updated(plan), unlinked)).outcomes[0]
    expect(waits?.kind).toBe('deferred')
    expect(waits?.wait?.customers).toEqual(['cus_1'])
    const linked = { ...look(plan, 2n), customer: { id: 'cus_1', subject: 'org:9' } }
    fold(ledger, claim(workflow, updated(plan), linked))
    expect([ledger.state, ledger.subject]).toEqual(['active', 'org:9'])
  })
})

describe('a gathering', () => {
  const credit = ({ event, evidence, order }: GatherTestInput): unknown =>
    fulfill({
      effects: [{ type: 'credits', reference: event.id, data: { found: evidence } }],
      reason: `the order is ${order.state}`,
    })
  const workflow = planWorkflow({ gathers: { 'invoice.paid': credit } })
  const invoice = (id?: string): PlanEvent => planEvent('invoice.paid', active, id)

  test('asks where nothing was gathered, and leaves no trace', () => {
    const ledger = unopenedOrder('1', workflow)
    const { outcomes, asks } = fold(ledger, claim(workflow, invoice()))
    expect([outcomes.length, asks.length, ledger.stored]).toEqual([0, 1, false])
  })

  test('is decided from what was gathered for the order as it stands, also where there was none', () => {
    const ledger = unopenedOrder('1', workflow)
    const { outcomes } = fold(ledger, claim(workflow, invoice('evt_a'), gathered(7, null)))
    expect(outcomes[0]).toMatchObject({ kind: 'fulfilled', evidence: { fetch: { number: '1' } } })
    expect(outcomes[0]?.evidence['fetch']).toMatchObject({ about: 'event evt_a' })
    expect(ledger.effects[0]?.data).toEqual({ found: 7 })
  })

  test('asks again where the order moved since it was asked for', () => {
    const ledger = unopenedOrder('1', workflow)
    fold(ledger, claim(workflow, invoice(), gathered(1, null)))
    const stale = claim(workflow, invoice(), gathered(2, ledger.version - 1n))
    expect(fold(ledger, stale).asks).toEqual([stale])
    expect(fold(ledger, claim(workflow, invoice(), gathered(3, null))).asks).toHaveLength(1)
    const good = fold(ledger, claim(workflow, invoice(), gathered(4, ledger.version)))
    expect([good.asks.length, good.outcomes.length]).toEqual([0, 1])
  })

  test('asks again where an event before it in the same batch moved the order', () => {
    const ledger = unopenedOrder('1', workflow)
    const second = claim(workflow, invoice(), gathered(2, null))
    const { outcomes, asks } = fold(ledger, claim(workflow, invoice(), gathered(1, null)), second)
    expect(outcomes).toHaveLength(1)
    expect(asks).toEqual([second])
  })

  test('that opens its order and waits does not ask for ever: its own opening moved nothing', () => {
    const waiting = planWorkflow({
      gathers: { 'invoice.paid': () => defer({ missing: effect('refund') }) },
    })
    const alone = unopenedOrder('1', waiting)
    const one = fold(alone, claim(waiting, invoice(), gathered(1, null)))
    expect([one.outcomes[0]?.kind, one.asks.length, alone.stored]).toEqual(['deferred', 0, true])

    const ledger = unopenedOrder('1', waiting)
    const [first, second] = [1, 2].map(() => claim(waiting, invoice(), gathered(1, null)))
    const { outcomes, asks } = fold(ledger, first as Claim, second as Claim)
    expect(outcomes.map((each) => each.event.key)).toEqual([first?.event.key])
    expect(asks).toEqual([second])
  })

  test('asks again where another event ended its wait in the same batch', () => {
    const mixed = planWorkflow({
      gathers: {
        'invoice.paid': ({ effects }) =>
          effects.some((each) => each.type === 'refund')
            ? fulfill({ effects: [{ type: 'credits' }] })
            : defer({ missing: effect('refund') }),
      },
      on: { 'refund.created': () => fulfill({ effects: [{ type: 'refund' }] }) },
    })
    const ledger = unopenedOrder('1', mixed)
    const waits = claim(mixed, invoice(), gathered(1, null))
    const { outcomes, asks } = fold(
      ledger,
      waits,
      claim(mixed, planEvent('refund.created', active)),
    )
    expect(outcomes.map((each) => each.kind)).toEqual(['fulfilled'])
    expect(asks).toEqual([waits])
  })

  test('that throws is a failure and leaves no trace, whatever it was answered', () => {
    const broken = planWorkflow({
      gathers: {
        'invoice.paid': () => {
          throw new Error('a fault')
        },
      },
    })
    const ledger = unopenedOrder('1', broken)
    const { failures, asks } = fold(ledger, claim(broken, invoice(), gathered(1, null)))
    expect([failures.length, asks.length, ledger.stored]).toEqual([1, 0, false])
  })
})
