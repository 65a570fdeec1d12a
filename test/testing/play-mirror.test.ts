import { describe, expect, test } from 'vitest'
import {
  defer,
  effect,
  fulfill,
  linkedCustomer,
  mirrored,
  skip,
} from '../../src/workflow/decision.ts'
import { everyOrder, OrderMattersError, play } from 'hookledger/testing'
import {
  planEvent,
  planWorkflow,
  type Plan,
  type PlanEvent,
  type PlanOptions,
} from '../support/plan-workflow.ts'

/** A provider in memory whose objects change, and that counts how often it is asked. */
function provider() {
  const objects = new Map<string, Plan | null>()
  const asked: string[] = []
  return {
    objects,
    asked,
    present: ({ kind, value }: { kind: string; value: string }, account: string): Plan | null => {
      asked.push(`${kind} ${value} of ${account}`)
      return objects.get(value) ?? null
    },
  }
}

function playPlans(options: PlanOptions = {}, sources: object = {}) {
  const at = provider()
  const app = play([planWorkflow(options)], {
    sources: { pay: { present: at.present, ...sources } },
  })
  return { app, ...at }
}

const active: Plan = { id: 'p1', status: 'active', seats: 3 }
const updated = (plan: Plan = active, id?: string): PlanEvent => planEvent('plan.updated', plan, id)

describe('play with a mirror', () => {
  test('makes the order what the provider says now, not what the event said', () => {
    const { app, objects } = playPlans()
    objects.set('p1', active)
    const [entry] = app.deliver(updated({ id: 'p1', status: 'canceled' }))
    expect(entry).toMatchObject({ state: 'processed', orderId: 'p1', reason: 'new to active' })
    expect(app.order('p1').state).toBe('active')
    expect(app.entitlements('org:1')).toEqual([
      { entitlement: 'team', quantity: 3, validUntil: null },
    ])
    expect(app.order('p1').decisions[0]?.text).toContain('looked at plan p1: answer 1')
  })

  test('a storm of a hundred events about one object asks once', () => {
    const { app, objects, asked } = playPlans()
    objects.set('p1', active)
    const entries = app.deliver(Array.from({ length: 100 }, () => updated()))
    expect(entries.every((each) => each.state === 'processed')).toBe(true)
    expect(asked).toEqual(['plan p1 of pay'])
    const kinds = app.order('p1').decisions.map((each) => each.kind)
    expect([kinds.filter((each) => each === 'moved').length, kinds.length]).toEqual([1, 100])
  })

  test('an event that comes later asks anew, under the next number; a repeated one does not', () => {
    const { app, objects, asked } = playPlans()
    objects.set('p1', active)
    app.deliver(updated(active, 'evt_first'))
    objects.set('p1', { ...active, status: 'past_due' })
    app.deliver(updated(active, 'evt_first'))
    expect([asked.length, app.order('p1').state]).toEqual([1, 'active'])
    app.deliver(updated(active, 'evt_second'))
    expect([asked.length, app.order('p1').state]).toEqual([2, 'past_due'])
    expect(app.order('p1').decisions.at(-1)?.text).toContain('answer 2')
  })

  test('objects of several orders are asked for one by one', () => {
    const { app, objects, asked } = playPlans()
    objects.set('p1', active)
    objects.set('p2', { id: 'p2', status: 'trialing' })
    app.deliver([updated(), updated({ id: 'p2', status: 'active' }), updated()])
    expect(asked).toEqual(['plan p1 of pay', 'plan p2 of pay'])
    expect(app.orders().map((each) => each.state)).toEqual(['active', 'trialing'])
  })

  test('null is an object that is gone, a state of its own', () => {
    const { app, objects } = playPlans()
    objects.set('p1', active)
    app.deliver(updated())
    objects.delete('p1')
    app.deliver(planEvent('plan.deleted', active))
    expect(app.order('p1').state).toBe('gone')
    expect(app.entitlements('org:1')).toEqual([])
  })

  test('what it answers is plain JSON that nobody can change, and the test may change its own', () => {
    const seen: unknown[] = []
    const { app, objects } = playPlans({
      decide: ({ current }) => {
        seen.push(current, Object.isFrozen(current))
        return mirrored({ to: current?.status ?? 'gone' })
      },
    })
    const plan = { ...active, seats: undefined, changed: new Date(0) } as unknown as Plan
    objects.set('p1', plan)
    app.deliver(updated())
    expect(seen).toEqual([
      { id: 'p1', status: 'active', changed: '1970-01-01T00:00:00.000Z' },
      true,
    ])
    expect(Object.isFrozen(plan)).toBe(false)
  })

  test('a wait that ends looks again', () => {
    const { app, objects, asked } = playPlans({
      decide: ({ current, effects }) =>
        effects.length === 0
          ? defer({ missing: effect('credits') })
          : mirrored({ to: current?.status ?? 'gone' }),
      on: { 'invoice.paid': () => fulfill({ effects: [{ type: 'credits' }] }) },
    })
    objects.set('p1', active)
    const [waiting] = app.deliver(updated())
    expect(waiting).toMatchObject({ state: 'deferred', waitsFor: 'effect credits' })
    objects.set('p1', { ...active, status: 'past_due' })
    app.deliver(planEvent('invoice.paid', active))
    expect([app.order('p1').state, asked.length]).toEqual(['past_due', 2])
  })

  test('a finding that a look flagged is closed by the look that settles it, and opens again', () => {
    const { app, objects } = playPlans({
      decide: ({ current }) =>
        current?.status === 'frozen'
          ? mirrored({ flag: { kind: 'unknown_status', figures: { status: 'frozen' } } })
          : mirrored({ to: current?.status ?? 'gone', settles: ['unknown_status'] }),
    })
    const look = (status: string): string[] => {
      objects.set('p1', { ...active, status })
      app.deliver(updated())
      return app.findings().map((each) => `${each.kind} ${each.state} ${each.timesSeen}`)
    }
    expect(look('active')).toEqual([])
    expect(look('frozen')).toEqual(['unknown_status open 1'])
    expect(app.order('p1').state).toBe('active')
    expect(look('active')).toEqual(['unknown_status closed 1'])
    expect(look('frozen')).toEqual(['unknown_status open 2'])
  })

  test('events of two connected accounts about the same id look each at their own', () => {
    const { app, asked } = playPlans({}, { allowsAccount: () => true })
    const [one, two] = app.deliver([
      { ...updated(), account: 'acct_1' },
      { ...updated(), account: 'acct_2' },
    ])
    expect(asked).toEqual(['plan p1 of acct_1', 'plan p1 of acct_2'])
    expect(one?.reason).toBe('new to gone')
    // an order belongs to one account
    expect(two?.reason).toContain('order p1 belongs to account acct_1')
  })

  test('without present it says what to add, and nothing is taken for gone', () => {
    const app = play([planWorkflow()])
    expect(() => app.deliver(updated())).toThrow(
      /plan p1.*sources: \{ pay: \{ present: \(\{ kind, value \}\) => …/,
    )
    expect(app.orders()).toEqual([])
  })

  test.each<[string, () => unknown, RegExp]>([
    ['undefined', () => undefined, /answered undefined: answer null/],
    ['a promise', () => Promise.resolve(active), /answered a promise/],
  ])('present that answers %s stops the test', (_, present, message) => {
    const app = play([planWorkflow()], { sources: { pay: { present: present as () => object } } })
    expect(() => app.deliver(updated())).toThrow(message)
  })

  test.each<[string, unknown, RegExp]>([
    ['a text', 'p1', /object must return name/],
    ['a promise', Promise.resolve({ kind: 'plan', value: 'p1' }), /object must return name/],
    ['the kind of gatherings', { kind: 'event', value: '1' }, /must not be of kind "event"/],
    ['an empty id', { kind: 'plan', value: '' }, /name of kind plan/],
  ])('an object that is %s ends the event dead', (_, object, message) => {
    const { app } = playPlans({ object: () => object })
    const [entry] = app.deliver(updated())
    expect(entry?.state).toBe('dead')
    expect(entry?.reason).toMatch(message)
  })

  test('waits for the customer to be linked, and moves when it is', () => {
    const { app, objects } = playPlans({
      customer: ({ current }) => current?.customer ?? null,
      decide: ({ customer, current }) =>
        customer?.subject == null
          ? defer({ missing: linkedCustomer(customer?.id ?? '') })
          : mirrored({
              to: current?.status ?? 'gone',
              entitle: [{ subject: customer.subject, entitlement: 'team' }],
            }),
    })
    objects.set('p1', { ...active, customer: 'cus_1' })
    app.deliver(updated())
    expect(app.inbox()[0]).toMatchObject({ state: 'deferred', waitsFor: /cus_1/ as never })
    expect(app.linkCustomer({ customer: 'cus_2', subject: 'org:2' })).toBe('linked')
    expect(app.order('p1').state).toBe('new')
    expect(app.linkCustomer({ customer: 'cus_1', subject: 'org:9' })).toBe('linked')
    expect(app.order('p1').state).toBe('active')
    expect(app.entitlements('org:9')).toHaveLength(1)
    expect(app.linkCustomer({ customer: 'cus_1', subject: 'org:9' })).toBe('existed')
    expect(() => app.linkCustomer({ customer: 'cus_1', subject: 'org:3' })).toThrow(/org:9/)
    expect(app.linkCustomer({ customer: 'cus_1', subject: 'org:3', replace: true })).toBe('linked')
  })
})

describe('play with a gathering', () => {
  const gathers: PlanOptions['gathers'] = {
    'invoice.paid': ({ event, evidence }) =>
      fulfill({
        effects: [{ type: 'credits', reference: event.id, data: { lines: evidence as never } }],
      }),
  }

  test('decides from what is gathered, once for each event, in any batch', () => {
    const asked: unknown[] = []
    const gathered = (event: { id?: unknown }, account: string): unknown => {
      asked.push(`${String(event.id)} of ${account}`)
      return { of: event.id }
    }
    const { app } = playPlans({ gathers }, { gathered })
    const invoices = ['in_1', 'in_2'].map((id) => planEvent('invoice.paid', active, id))
    app.deliver(invoices)
    expect(app.order('p1').effects.map((each) => [each.reference, each.data])).toEqual([
      ['in_1', { lines: { of: 'in_1' } }],
      ['in_2', { lines: { of: 'in_2' } }],
    ])
    // the second was gathered for the order as it was before the first: it is gathered again
    expect(asked).toEqual(['in_1 of pay', 'in_2 of pay', 'in_2 of pay'])
  })

  test('that opens its order and waits is asked for once, and again when it is woken', () => {
    let asked = 0
    const { app } = playPlans(
      {
        gathers: {
          'invoice.paid': ({ effects }) =>
            effects.length === 0
              ? defer({ missing: effect('refund') })
              : fulfill({ effects: [{ type: 'credits' }] }),
        },
        on: { 'refund.created': () => fulfill({ effects: [{ type: 'refund' }] }) },
      },
      { gathered: () => ++asked },
    )
    const [first, second] = app.deliver([1, 2].map(() => planEvent('invoice.paid', active)))
    expect([first?.state, second?.state]).toEqual(['deferred', 'deferred'])
    const before = asked
    app.deliver(planEvent('refund.created', active))
    expect(app.order('p1').effects.map((each) => each.type)).toEqual(['refund', 'credits'])
    expect(asked).toBeGreaterThan(before)
    expect(app.inbox().map((each) => each.state)).toEqual(['processed', 'processed', 'processed'])
  })

  test('without gathered it says what to add', () => {
    const { app } = playPlans({ gathers })
    expect(() => app.deliver(planEvent('invoice.paid', active))).toThrow(
      /sources: \{ pay: \{ gathered: \(event\) => …/,
    )
  })
})

describe('everyOrder over a mirror', () => {
  const life = [
    planEvent('plan.created', { ...active, status: 'trialing' }),
    planEvent('plan.updated', active),
    planEvent('plan.updated', { ...active, status: 'past_due' }),
    planEvent('plan.updated', { ...active, seats: 4 }),
    planEvent('plan.deleted', { ...active, status: 'canceled' }),
  ]

  test('ends the same in every order: the last look counts', () => {
    expect(everyOrder(life, planWorkflow())).toEqual({ orders: 120, sampled: false })
  })

  test('names the order that ends differently where a mirror follows the event instead', () => {
    const naive = planWorkflow({
      decide: ({ event }) => mirrored({ to: event.data.object.status }),
    })
    expect(() => everyOrder(life, naive)).toThrow(OrderMattersError)
  })

  test('finds an effect that depends on when a look was made, and says so', () => {
    const welcoming = planWorkflow({
      decide: ({ current }) =>
        mirrored({
          to: current?.status ?? 'gone',
          effects: current?.status === 'trialing' ? [{ type: 'reminder' }] : [],
        }),
    })
    expect(() => everyOrder(life.slice(0, 2), welcoming)).toThrow(
      /each look finds its object as the latest of the events that had come shows it/,
    )
  })

  test('takes what is there at the end, what is gathered, and links', () => {
    const workflow = planWorkflow({
      customer: ({ current }) => current?.customer ?? null,
      decide: ({ current, customer }) => {
        if (current === null) return mirrored({ to: 'gone' })
        if (customer?.subject === 'org:1') return mirrored({ to: current.status })
        return defer({ missing: linkedCustomer('cus_1') })
      },
      gathers: { 'invoice.paid': ({ evidence }) => skip(`found ${String(evidence)}`) },
    })
    const bought = { ...active, customer: 'cus_1' }
    const events = [
      planEvent('plan.created', bought),
      planEvent('plan.updated', bought),
      planEvent('invoice.paid', bought, 'evt_in'),
    ]
    const more = { customers: { cus_1: 'org:1' }, gathered: { evt_in: 'lines' } }
    const present = { 'plan p1': null }
    expect(everyOrder(events, workflow, more).orders).toBe(6)
    expect(everyOrder(events, workflow, { ...more, present }).orders).toBe(6)
  })
})
