import { describe, expect, test } from 'vitest'
import { fulfill, skip } from '../../src/workflow/decision.ts'
import type { InboxEvent } from '../../src/workflow/event.ts'
import { createRegistry, type PlainHandler } from '../../src/workflow/registry.ts'
import { byName, name, notOurs, orderId, waitFor } from '../../src/workflow/resolution.ts'
import { resolveEvent, settleWaiting } from '../../src/workflow/resolve-event.ts'
import type { EventHandler, Workflow } from '../../src/workflow/workflow.ts'
import { factsOfBody } from '../../src/workflow/body-event.ts'
import { play } from '../../src/testing/play.ts'
import {
  anyTransition,
  definePay,
  pay,
  shopStates,
  usd,
  type PayBody,
} from '../support/pay-events.ts'

const base = definePay('base', {
  sources: ['pay'],
  initial: 'pending',
  opens: 'event',
  states: shopStates,
  transitions: anyTransition,
  effects: { license: {} },
})

function workflow(
  named: string,
  order: EventHandler['order'],
  rest: Partial<EventHandler> = {},
): Workflow {
  const defined = definePay(named, {
    sources: ['pay'],
    initial: 'pending',
    opens: 'event',
    states: shopStates,
    transitions: anyTransition,
    effects: { license: {} },
  })
  return defined.on('paid', {
    order: order as never,
    decide: () => fulfill({ to: 'paid', effects: [{ type: 'license' }] }),
    ...rest,
  } as never)
}

function inboxEvent(body: PayBody, changes: Partial<InboxEvent> = {}): InboxEvent {
  const facts = factsOfBody(body)
  return {
    key: 1n,
    sourceId: 1,
    source: { name: 'pay', provider: 'pay', account: 'pay', environment: 'test' },
    accountAllowed: true,
    eventId: facts.eventId,
    eventType: facts.eventType,
    receivedAt: new Date(0),
    occurredAt: null,
    synthetic: false,
    content: facts.content,
    ...changes,
  }
}

function resolve(workflows: readonly Workflow[], event: InboxEvent, plain: PlainHandler[] = []) {
  return resolveEvent(event, {
    registry: createRegistry(workflows, plain),
    environment: 'test',
    mayIgnore: true,
  })
}

const handled: PlainHandler = { source: 'pay', types: ['paid'], run: async () => undefined }

describe('resolveEvent', () => {
  test('an order id claims the event', () => {
    const resolved = resolve([workflow('a', () => orderId('1001'))], inboxEvent(pay('paid')))
    expect(resolved).toMatchObject({ kind: 'claim', orderId: '1001' })
  })

  test('a text that order returns is the order id', () => {
    const resolved = resolve([workflow('a', () => '1001')], inboxEvent(pay('paid')))
    expect(resolved).toMatchObject({ kind: 'claim', orderId: '1001' })
  })

  test.each([null, undefined, ''])('an order id that is %j is not ours', (missing) => {
    const resolved = resolve([workflow('a', () => missing)], inboxEvent(pay('paid')))
    expect(resolved).toMatchObject({ kind: 'ignored', reason: 'a: it carries no order id' })
  })

  test('waitFor names waits, and is no claim', () => {
    const order = () => waitFor([name('intent', 'pi_1'), name('charge', null)])
    const resolved = resolve([workflow('a', order)], inboxEvent(pay('paid')))
    expect(resolved).toMatchObject({ kind: 'waiting', waits: [{ names: [{ value: 'pi_1' }] }] })
  })

  test.each([null, undefined, '', {}])('byName of a value that is %j is not ours', (missing) => {
    const order = () => byName('intent', missing)
    const resolved = resolve([workflow('a', order)], inboxEvent(pay('paid')))
    expect(resolved).toMatchObject({ kind: 'ignored' })
  })

  test('byName reads the id of an expanded object', () => {
    const order = () => byName('intent', { id: 'pi_9' })
    const resolved = resolve([workflow('a', order)], inboxEvent(pay('paid')))
    expect(resolved).toMatchObject({ kind: 'waiting', waits: [{ names: [{ value: 'pi_9' }] }] })
  })

  test('notOurs of every workflow ignores the event with all their reasons', () => {
    const refusing = [
      workflow('a', () => notOurs('of an invoice')),
      workflow('b', () => notOurs('free')),
    ]
    const resolved = resolve(refusing, inboxEvent(pay('paid')))
    expect(resolved).toMatchObject({ kind: 'ignored', reason: 'a: of an invoice; b: free' })
  })

  test('two workflows stand on one type, and the one that claims it gets it', () => {
    const both = [workflow('a', () => notOurs('no')), workflow('b', () => orderId('7'))]
    const resolved = resolve(both, inboxEvent(pay('paid')))
    expect(resolved).toMatchObject({ kind: 'claim', orderId: '7' })
  })

  test('two claims are a contradiction that names both', () => {
    const both = [workflow('a', () => orderId('1')), workflow('b', () => orderId('2'))]
    const resolved = resolve(both, inboxEvent(pay('paid')))
    expect(resolved).toMatchObject({
      kind: 'contradicted',
      reason: expect.stringContaining('a and b'),
      orderIds: ['1', '2'],
    })
  })

  test('a claim beside a wait stands: waiting is no claim', () => {
    const both = [workflow('a', () => byName('intent', 'pi_1')), workflow('b', () => orderId('2'))]
    const resolved = resolve(both, inboxEvent(pay('paid')))
    expect(resolved).toMatchObject({ kind: 'claim', orderId: '2' })
  })

  test('a plain handler counts as one claim', () => {
    const event = inboxEvent(pay('paid'))
    expect(resolve([workflow('a', () => orderId('1'))], event, [handled])).toMatchObject({
      kind: 'contradicted',
      reason: expect.stringContaining('a and a plain handler'),
    })
    expect(resolve([], event, [handled]).kind).toBe('plain')
  })

  test('a plain handler takes what a workflow only waits for', () => {
    const waiting = workflow('a', () => byName('intent', 'pi_1'))
    expect(resolve([waiting], inboxEvent(pay('paid')), [handled]).kind).toBe('plain')
  })

  test('a source that stands twice in a workflow is one source', () => {
    const twice = definePay('twice', {
      sources: ['pay', 'pay'],
      initial: 'pending',
      opens: 'event',
      states: shopStates,
      transitions: anyTransition,
      effects: {},
    }).on('paid', { order: () => '1', decide: () => skip('no') })
    expect(resolve([twice], inboxEvent(pay('paid'))).kind).toBe('claim')
  })

  test('an event of the other environment is ignored with that reason', () => {
    const event = inboxEvent(pay('paid'), {
      source: { name: 'pay', provider: 'pay', account: 'pay', environment: 'live' },
    })
    expect(resolve([workflow('a', () => '1')], event)).toMatchObject({
      kind: 'ignored',
      reason: expect.stringContaining('live environment'),
    })
  })

  test('an unknown type is ignored by the newest worker and left by an older one', () => {
    const event = inboxEvent(pay('unheard'))
    const registry = createRegistry([workflow('a', () => '1')], [])
    const context = { registry, environment: 'test' } as const
    expect(resolveEvent(event, { ...context, mayIgnore: true }).kind).toBe('ignored')
    expect(resolveEvent(event, { ...context, mayIgnore: false }).kind).toBe('left')
  })

  test('a body that cannot be read is dead with the reason', () => {
    const event = inboxEvent(pay('paid'), { content: { readable: false, reason: 'not JSON' } })
    expect(resolve([workflow('a', () => '1')], event)).toMatchObject({
      kind: 'dead',
      reason: 'not JSON',
    })
  })

  test.each([
    ['longer than 255 bytes', 'é'.repeat(128)],
    ['contains NUL', 'a\u0000b'],
    ['not valid Unicode', 'a\ud800b'],
    ['not a text', 42 as unknown as string],
  ])('an order id that is or %s is permanent', (problem, id) => {
    const resolved = resolve([workflow('a', () => orderId(id))], inboxEvent(pay('paid')))
    expect(resolved).toMatchObject({ kind: 'failed', error: { permanent: true } })
    expect(String((resolved as { error: Error }).error.message)).toContain(problem)
  })

  test('an id of exactly 255 bytes is kept', () => {
    const id = `${'é'.repeat(127)}x`
    const resolved = resolve([workflow('a', () => id)], inboxEvent(pay('paid')))
    expect(resolved).toMatchObject({ kind: 'claim', orderId: id })
  })

  test('a name made by hand is held to the same rules', () => {
    const hostile = workflow('a', () => '1', {
      learn: () => [{ kind: 'intent', value: 'x'.repeat(300) }],
    })
    expect(resolve([hostile], inboxEvent(pay('paid')))).toMatchObject({
      kind: 'failed',
      error: { permanent: true, message: 'the name of kind intent is longer than 255 bytes' },
    })
  })

  test.each([
    ['a promise', (async () => '1') as never],
    ['a number', (() => 5) as never],
    ['an object', (() => ({ id: '1' })) as never],
  ])('an order function that returns %s is permanent', (_, order) => {
    const resolved = resolve([workflow('a', order)], inboxEvent(pay('paid')))
    expect(resolved).toMatchObject({ kind: 'failed', error: { permanent: true } })
  })

  test('names that are missing are left out, and repeated ones are learned once', () => {
    const learning = workflow('a', () => '1', {
      learn: () => [name('intent', null), name('intent', 'pi_1'), name('intent', { id: 'pi_1' })],
    })
    expect(resolve([learning], inboxEvent(pay('paid')))).toMatchObject({
      learned: [{ kind: 'intent', value: 'pi_1' }],
    })
  })

  test('types, ids and names called like parts of every object are ordinary', () => {
    const ordinary = base.on(['constructor', 'toString'], {
      order: ({ event }) => event.order,
      learn: () => [name('hasOwnProperty', 'valueOf')],
      decide: () => fulfill({ to: 'paid', effects: [{ type: 'license' }] }),
    })
    const app = play([ordinary])
    app.deliver([
      pay('constructor', { order: '__proto__' }),
      pay('toString', { order: 'constructor' }),
    ])
    expect(app.order('__proto__').state).toBe('paid')
    expect(app.inbox().map((entry) => entry.state)).toEqual(['processed', 'processed'])
    app.deliver(pay('__proto__', { order: '1' }))
    expect(app.inbox()[2]).toMatchObject({ state: 'ignored', reason: 'nothing handles __proto__' })
  })

  test('own keys of a body called __proto__ stay data', () => {
    const body = JSON.parse(
      '{"id":"evt_p","type":"paid","order":"1","__proto__":{"order":"2"}}',
    ) as PayBody
    const resolved = resolve(
      [workflow('a', ({ event }) => event['order'] as string)],
      inboxEvent(body),
    )
    expect(resolved).toMatchObject({ kind: 'claim', orderId: '1' })
  })
})

describe('settleWaiting', () => {
  const event = inboxEvent(pay('paid'))
  const bound =
    (orders: Record<string, { orderId: string; workflow: string }>) =>
    (_: number, wanted: { value: string }) =>
      orders[wanted.value] ?? null

  test('a name that leads to an order of a workflow that waits claims the event', () => {
    const waiting = resolve([workflow('a', () => byName('intent', 'pi_1'))], event)
    if (waiting.kind !== 'waiting') throw new Error('it does not wait')
    const settled = settleWaiting(waiting, bound({ pi_1: { orderId: '1', workflow: 'a' } }))
    expect(settled).toMatchObject({ kind: 'claim', orderId: '1', learned: [{ value: 'pi_1' }] })
  })

  test('the workflow of the order that the name leads to claims it, of all that wait', () => {
    const both = [
      workflow('a', () => byName('intent', 'pi_1')),
      workflow('b', () => byName('intent', 'pi_1')),
    ]
    const waiting = resolve(both, event)
    if (waiting.kind !== 'waiting') throw new Error('it does not wait')
    const settled = settleWaiting(waiting, bound({ pi_1: { orderId: '1', workflow: 'b' } }))
    expect(settled).toMatchObject({ kind: 'claim', candidate: { workflow: { name: 'b' } } })
  })

  test('names that lead to different orders are a contradiction', () => {
    const order = () => waitFor([name('intent', 'pi_1'), name('charge', 'ch_1')])
    const waiting = resolve([workflow('a', order)], event)
    if (waiting.kind !== 'waiting') throw new Error('it does not wait')
    const settled = settleWaiting(
      waiting,
      bound({ pi_1: { orderId: '1', workflow: 'a' }, ch_1: { orderId: '2', workflow: 'a' } }),
    )
    expect(settled).toMatchObject({ kind: 'contradicted', orderIds: ['1', '2'] })
  })

  test('names that all lead to another workflow end the wait as ignored', () => {
    const waiting = resolve([workflow('a', () => byName('intent', 'pi_1'))], event)
    if (waiting.kind !== 'waiting') throw new Error('it does not wait')
    const settled = settleWaiting(waiting, bound({ pi_1: { orderId: '1', workflow: 'z' } }))
    expect(settled).toMatchObject({
      kind: 'ignored',
      reason: expect.stringContaining('workflow z'),
    })
  })
})

describe('waits that end unclaimed', () => {
  const opener = (named: string) =>
    workflow(named, ({ event }) => (event as unknown as PayBody).order ?? notOurs('no order'), {
      learn: ({ event }) => [name('intent', (event as unknown as PayBody).payment)],
    })
  const refund = (named: string, unclaimed?: 'ignore' | 'finding') =>
    (opener(named) as typeof base).on('refunded', {
      order: ({ event }) => byName('intent', event.payment),
      decide: ({ event }) => fulfill({ effects: [{ type: 'license', reference: event.id }] }),
      unclaimed,
    })
  const day = 86_400_000

  test('a wait past its deadline is a finding, and stays deferred', () => {
    const app = play([refund('a')])
    app.deliver(pay('refunded', { payment: 'pi_1' }))
    app.advance(day - 1)
    expect(app.findings()).toEqual([])
    app.advance(1)
    expect(app.findings()).toMatchObject([{ kind: 'wait_overdue', class: 'lag', state: 'open' }])
    expect(app.inbox()).toMatchObject([
      { state: 'deferred', overdue: true, waitsFor: 'intent pi_1' },
    ])
  })

  test("a type that says unclaimed: 'ignore' is ignored at its deadline", () => {
    const app = play([refund('a', 'ignore')])
    app.deliver(pay('refunded', { payment: 'pi_1' }))
    app.advance(day)
    expect(app.inbox()).toMatchObject([
      { state: 'ignored', reason: expect.stringContaining('intent pi_1') },
    ])
    expect(app.findings()).toEqual([])
  })

  test('ignore holds only if all that wait say so', () => {
    const app = play([refund('a', 'ignore'), refund('b', 'finding')])
    app.deliver(pay('refunded', { payment: 'pi_1' }))
    app.advance(day)
    expect(app.inbox()).toMatchObject([{ state: 'deferred', overdue: true }])
    const silent = play([refund('a', 'ignore'), refund('b', 'ignore')])
    silent.deliver(pay('refunded', { payment: 'pi_1' }))
    silent.advance(day)
    expect(silent.inbox()).toMatchObject([{ state: 'ignored' }])
  })

  test('the wait of what is ignored in the end is as long as its handlers say, the longest of them', () => {
    const short = (named: string, unclaimedAfterMs?: number) =>
      (opener(named) as typeof base).on('refunded', {
        order: ({ event }) => byName('intent', event.payment),
        decide: ({ event }) => fulfill({ effects: [{ type: 'license', reference: event.id }] }),
        unclaimed: 'ignore',
        unclaimedAfterMs,
      })
    const app = play([short('a', 1_000), short('b', 5_000)])
    app.deliver(pay('refunded', { id: 'evt_late', payment: 'pi_1' }))
    app.advance(4_999)
    expect(app.inbox()).toMatchObject([{ state: 'deferred' }])
    app.advance(1)
    expect(app.inbox()).toMatchObject([{ state: 'ignored' }])
    const patient = play([short('a', 1_000), short('b')])
    patient.deliver(pay('refunded', { payment: 'pi_1' }))
    patient.advance(day - 1)
    expect(patient.inbox()).toMatchObject([{ state: 'deferred' }])
    const mixed = play([short('a', 1_000), refund('b', 'finding')])
    mixed.deliver(pay('refunded', { payment: 'pi_1' }))
    mixed.advance(1_000)
    expect(mixed.inbox()).toMatchObject([{ state: 'deferred', overdue: false }])
  })

  test('a name that comes later still wakes what was ignored at its deadline', () => {
    const app = play([refund('a', 'ignore')])
    app.deliver(pay('refunded', { id: 'evt_late', payment: 'pi_1' }))
    app.advance(day)
    app.deliver(pay('paid', { order: '1', payment: 'pi_1' }))
    expect(app.order('1').effects.map((each) => each.reference)).toEqual(['', 'evt_late'])
    expect(app.inbox()[0]).toMatchObject({ state: 'processed' })
  })

  test('a name that comes later wakes what is overdue, and its finding closes', () => {
    const app = play([refund('a')])
    app.deliver(pay('refunded', { payment: 'pi_1' }))
    app.advance(day)
    app.deliver(pay('paid', { order: '1', payment: 'pi_1' }))
    expect(app.inbox()[0]).toMatchObject({ state: 'processed', overdue: false, until: null })
    expect(app.findings()).toMatchObject([{ kind: 'wait_overdue', state: 'closed' }])
  })

  test('names of another source are other names', () => {
    const both = definePay('both', {
      sources: ['pay', 'other'],
      initial: 'pending',
      opens: 'event',
      states: shopStates,
      transitions: anyTransition,
      effects: { license: {}, refund: {} },
    })
      .on('paid', {
        order: ({ event }) => event.order,
        learn: ({ event }) => [name('intent', event.payment)],
        decide: ({ event }) =>
          fulfill({
            to: 'paid',
            payment: { id: event.payment ?? '', money: usd(100) },
            effects: [{ type: 'license' }],
          }),
      })
      .on('refunded', {
        order: ({ event }) => byName('intent', event.payment),
        decide: () => fulfill({ to: 'refunded', effects: [{ type: 'refund' }] }),
      })
    const app = play([both])
    app.deliver(pay('paid', { order: '1', payment: 'pi_1' }), { source: 'pay' })
    app.deliver(pay('refunded', { payment: 'pi_1' }), { source: 'other' })
    expect(app.inbox()[1]).toMatchObject({ state: 'deferred' })
    expect(app.order('1').state).toBe('paid')
  })
})
