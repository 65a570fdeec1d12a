import { describe, expect, test } from 'vitest'
import { factsOfBody } from '../../src/workflow/body-event.ts'
import { defer, effect, fulfill, move, reverse, skip, state } from '../../src/workflow/decision.ts'
import { foldOrder } from '../../src/workflow/fold.ts'
import { playOutbox } from '../../src/workflow/play-outbox.ts'
import { unopenedOrder } from '../../src/workflow/opening.ts'
import type { OrderLedger } from '../../src/workflow/order.ts'
import { createRegistry } from '../../src/workflow/registry.ts'
import { resolveEvent, type Claim } from '../../src/workflow/resolve-event.ts'
import type { Workflow } from '../../src/workflow/workflow.ts'
import { play } from '../../src/testing/play.ts'
import { pay, usd, type PayBody } from '../support/pay-events.ts'
import { scripted, type Script } from '../support/scripted-workflow.ts'

const paid: Script = ({ event }) =>
  fulfill({
    to: 'paid',
    payment: { id: event.payment ?? 'pi_1', money: usd(event.amount ?? 4900) },
    effects: [{ type: 'license' }],
    entitle: [{ subject: 'user:1', entitlement: 'pro' }],
  })
const refunded: Script = ({ event }) =>
  fulfill({
    to: 'refunded',
    effects: [
      {
        type: 'refund',
        reference: event.id,
        amount: usd(event.amount ?? 4900),
        payment: event.payment,
      },
    ],
  })

function claim(workflow: Workflow, body: PayBody, key: bigint): Claim {
  const facts = factsOfBody(body)
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
  return resolved
}

function fold(
  workflow: Workflow,
  bodies: readonly PayBody[],
  ledger: OrderLedger = unopenedOrder('1', workflow),
) {
  const claims = bodies.map((body, index) => claim(workflow, body, BigInt(index + 1)))
  const result = foldOrder(ledger, claims, {
    allocate: (event) => event.key * 10n,
    ownerOf: () => null,
    payerOf: () => null,
    derive: (order, name) => `${order}/${name}`,
    outbox: playOutbox(),
  })
  return { ledger, ...result }
}

describe('foldOrder', () => {
  test('each event sees what the one before it changed', () => {
    const seen: string[] = []
    const workflow = scripted({
      paid,
      looked: ({ order, effects, entitlements, payments }) => {
        seen.push(
          order.state,
          effects[0]?.type ?? '',
          entitlements[0]?.entitlement ?? '',
          payments[0]?.id ?? '',
        )
        return skip('only looked')
      },
    })
    fold(workflow, [pay('paid', { order: '1' }), pay('looked', { order: '1' })])
    expect(seen).toEqual(['paid', 'license', 'pro', 'pi_1'])
  })

  test('deferred events are tried again at the end of the fold until nothing changes', () => {
    const chain =
      (missing: string, made: string): Script =>
      ({ effects }) =>
        effects.some((each) => each.reference === missing)
          ? move({ to: 'paid', once: { type: 'seat', reference: made } })
          : defer({ missing: effect('seat', missing) })
    const workflow = scripted({
      third: chain('2', '3'),
      second: chain('1', '2'),
      first: () => move({ to: 'paid', once: { type: 'seat', reference: '1' } }),
    })
    const order = { order: '1' }
    const { outcomes, ledger } = fold(workflow, [
      pay('third', order),
      pay('second', order),
      pay('first', order),
    ])
    expect(outcomes.map((each) => [each.event.eventType, each.kind])).toEqual([
      ['first', 'moved'],
      ['second', 'moved'],
      ['third', 'moved'],
    ])
    expect(ledger.effects.map((each) => each.reference)).toEqual(['1', '2', '3'])
  })

  test('ids follow the order of deciding, so that an order reads as one chain of states', () => {
    const workflow = scripted({ paid, refunded })
    const late = pay('refunded', { order: '1', payment: 'pi_1' })
    const { outcomes, ledger } = fold(workflow, [
      late,
      pay('paid', { order: '1', payment: 'pi_1' }),
    ])
    expect(outcomes.map((each) => [each.decisionId, each.from, each.to])).toEqual([
      [10n, 'pending', 'paid'],
      [20n, 'paid', 'refunded'],
    ])
    expect(ledger.entitlements[0]?.grantedBy).toBe(10n)
  })

  test('what still waits comes last, with what it waits for', () => {
    const workflow = scripted({
      paid,
      waits: () => defer({ missing: [effect('seat', 'x'), state('canceled')], for: 5000 }),
    })
    const { outcomes } = fold(workflow, [pay('waits', { order: '1' }), pay('paid', { order: '1' })])
    expect(outcomes[1]).toMatchObject({
      kind: 'deferred',
      from: 'paid',
      decisionId: 20n,
      wait: {
        orderId: '1',
        forMs: 5000,
        description: 'effect seat x or state canceled',
        atDeadline: 'finding',
      },
    })
  })

  test('an event whose decide throws changes nothing, and the others go on', () => {
    const workflow = scripted({
      paid,
      throws: () => {
        throw new TypeError('no such field')
      },
    })
    const { failures, outcomes, ledger } = fold(workflow, [
      pay('throws', { order: '1' }),
      pay('paid', { order: '1' }),
    ])
    expect(failures).toMatchObject([{ error: { message: 'no such field' } }])
    expect(outcomes.map((each) => each.kind)).toEqual(['fulfilled'])
    expect(ledger.state).toBe('paid')
  })

  test('an event that throws does not open the order', () => {
    const workflow = scripted({
      throws: () => {
        throw new Error('broken')
      },
    })
    const { ledger } = fold(workflow, [pay('throws', { order: '1' })])
    expect(ledger).toMatchObject({
      stored: false,
      version: 0n,
      sourceId: null,
      providerAccount: null,
    })
  })

  test('the same ledger and events give the same outcomes', () => {
    const workflow = scripted({ paid, refunded })
    const bodies = [
      pay('refunded', { order: '1', payment: 'pi_1' }),
      pay('paid', { order: '1', payment: 'pi_1' }),
    ]
    expect(fold(workflow, bodies)).toEqual(fold(workflow, bodies))
  })

  test('decide is given the order, and a stable secret of it', () => {
    const seen: unknown[] = []
    const workflow = scripted({
      looked: ({ order, derive }) => {
        seen.push(order.id, order.workflow, derive('coupon'), derive('coupon') === derive('other'))
        return skip('only looked')
      },
    })
    fold(workflow, [pay('looked', { order: '1' })])
    expect(seen).toEqual(['1', 'scripted', '1/coupon', false])
  })
})

describe('what decide is given', () => {
  const mutations: readonly (readonly [string, Script])[] = [
    ['event', ({ event }) => Object.assign(event, { id: 'x' })],
    [
      'body below the event',
      ({ event }) => Object.assign((event as unknown as { nested: object }).nested, { a: 2 }),
    ],
    ['order', ({ order }) => Object.assign(order, { state: 'paid' })],
    ['expected money', ({ order }) => Object.assign(order.expected ?? {}, { amount: 1n })],
    ['list of payments', ({ payments }) => (payments as unknown[]).push(1)],
    ['payment', ({ payments }) => Object.assign(payments[0] ?? {}, { amount: 1n })],
    ['list of effects', ({ effects }) => (effects as unknown[]).push(1)],
    ['effect', ({ effects }) => Object.assign(effects[0] ?? {}, { reversed: true })],
    [
      'data of an effect',
      ({ effects }) => Object.assign((effects[0]?.data['key'] ?? {}) as object, { a: 2 }),
    ],
    ['list of entitlements', ({ entitlements }) => (entitlements as unknown[]).push(1)],
    ['entitlement', ({ entitlements }) => Object.assign(entitlements[0] ?? {}, { active: false })],
  ]

  test.each(mutations)('is frozen: %s', (_, change) => {
    const workflow = scripted({
      paid: () =>
        fulfill({
          to: 'paid',
          payment: { id: 'pi_1', money: usd(4900) },
          effects: [{ type: 'license', data: { key: { a: 1 } } }],
          entitle: [{ subject: 'user:1', entitlement: 'pro' }],
        }),
      changed: (input) => {
        change(input)
        return skip('it could be changed')
      },
    })
    const app = play([workflow])
    app.deliver(pay('paid', { order: '1' }))
    app.open({ id: '1', subject: 'user:1', expected: usd(4900) })
    app.deliver({ ...pay('changed', { order: '1' }), nested: { a: 1 } })
    expect(app.inbox()[1]).toMatchObject({ state: 'dead', error: expect.any(TypeError) })
  })

  test('a date that a decide function moves is moved for nobody else', () => {
    const seen: Date[] = []
    const workflow = scripted({
      paid: ({ event, effects }) => {
        seen.push(event.receivedAt)
        event.receivedAt.setFullYear(2050)
        return effects.length > 0 ? skip('seen again') : defer({ missing: effect('seat', 'x') })
      },
      seat: () => fulfill({ effects: [{ type: 'seat', reference: 'x' }] }),
    })
    const app = play([workflow])
    app.deliver(pay('paid', { order: '1' }))
    app.deliver(pay('seat', { order: '1' }))
    expect(app.inbox()[0]).toMatchObject({ state: 'processed', until: null })
    expect(seen.length).toBeGreaterThan(1)
    expect(new Set(seen.map((each) => each.toISOString()))).toEqual(
      new Set(['2026-01-01T00:00:00.000Z']),
    )
  })

  test('facts of the inbox stand beside the body: when, and that it is not synthetic', () => {
    const seen: unknown[] = []
    const workflow = scripted({
      paid: ({ event }) => {
        const { occurredAt, synthetic, source } = event as unknown as Record<string, unknown>
        seen.push(occurredAt, synthetic, source)
        return skip('looked')
      },
    })
    play([workflow]).deliver(pay('paid', { order: '1', created: 1_700_000_000 }))
    expect(seen).toEqual([
      new Date(1_700_000_000_000),
      false,
      { name: 'pay', provider: 'pay', account: 'pay', environment: 'test' },
    ])
  })
})

describe('the order of an event', () => {
  test('an event with a final decision answers with it, and only its deliveries are counted', () => {
    const app = play([scripted({ paid })])
    const event = pay('paid', { order: '1' })
    const [first] = app.deliver(event)
    const [again] = app.deliver(event)
    expect(again).toEqual({ ...first, deliveries: 2 })
    expect(app.order('1').decisions).toHaveLength(1)
  })

  test('other bytes under a known id change nothing: the first body stays', () => {
    const app = play([scripted({ paid })])
    const event = pay('paid', { order: '1', amount: 4900 })
    app.deliver(event)
    app.deliver({ ...event, order: '2' })
    expect(app.orders().map((order) => order.id)).toEqual(['1'])
  })

  test('where the app opens orders, an event waits for it, and opening wakes it', () => {
    const app = play([scripted({ paid }, { opens: 'app' })])
    app.deliver(pay('paid', { order: '1' }))
    expect(app.inbox()[0]).toMatchObject({ state: 'deferred', waitsFor: 'order 1 to be opened' })
    expect(() => app.order('1')).toThrow(/waits for order 1 to be opened/)
    expect(app.open({ id: '1', subject: 'user:1' })).toBe('created')
    expect(app.order('1').state).toBe('paid')
  })

  test("opens: 'event' lets an event open an order that nobody knows", () => {
    const app = play([scripted({ paid })])
    app.deliver(pay('paid', { order: 'new' }))
    expect(app.order('new')).toMatchObject({ state: 'paid', subject: null, expected: null })
  })

  test('a name that leads to another order than the id is a contradiction, and is not rebound', () => {
    const app = play([scripted({ paid, refunded })])
    app.deliver(pay('paid', { order: '1', payment: 'pi_1' }))
    app.deliver(pay('paid', { order: '2', payment: 'pi_1' }))
    expect(app.inbox()[1]).toMatchObject({
      state: 'processed',
      reason: expect.stringContaining('order 1'),
    })
    expect(app.findings()).toMatchObject([
      { kind: 'name_of_other_order', figures: { order: '2', other_order: '1', name: 'pi_1' } },
    ])
    expect(() => app.order('2')).toThrow(/no order "2"/)
    app.deliver(pay('refunded', { payment: 'pi_1' }))
    expect(app.order('1').state).toBe('refunded')
  })

  test('names are learned whatever is decided', () => {
    const app = play([
      scripted({
        looked: () => skip('nothing yet'),
        refunded: ({ event }) => fulfill({ effects: [{ type: 'refund', reference: event.id }] }),
      }),
    ])
    app.deliver(pay('refunded', { id: 'evt_r', payment: 'pi_1' }))
    app.deliver(pay('looked', { order: '1', payment: 'pi_1' }))
    expect(app.order('1').effects).toMatchObject([{ type: 'refund', reference: 'evt_r' }])
  })

  test("an order keeps to its workflow: another's event about it is a contradiction", () => {
    const first = scripted({ paid }, { name: 'first' })
    const second = scripted({ topup: paid }, { name: 'second' })
    const app = play([first, second])
    app.deliver(pay('paid', { order: '1' }))
    app.deliver(pay('topup', { order: '1' }))
    expect(app.order('1').workflow).toBe('first')
    expect(app.findings()).toMatchObject([
      {
        kind: 'workflow_differs',
        figures: { order: '1', workflow: 'first', claimed_by: 'second' },
      },
    ])
  })

  test('an event of an account that no source allows is a contradiction and grants nothing', () => {
    const app = play([scripted({ paid })])
    app.deliver(pay('paid', { order: '1', account: 'acct_other' }))
    expect(app.findings()).toMatchObject([{ kind: 'foreign_account', severity: 'high' }])
    expect(app.orders()).toEqual([])
    expect(app.entitlements('user:1')).toEqual([])
  })

  test('an account that the source admits may open, and the order is then its alone', () => {
    const sources = { pay: { allowsAccount: (account: string) => account.startsWith('acct_') } }
    const app = play([scripted({ paid, refunded })], { sources })
    app.deliver(pay('paid', { order: '1', account: 'acct_1', payment: 'pi_1' }))
    app.deliver(pay('refunded', { order: '1', account: 'acct_2', payment: 'pi_1' }))
    expect(app.order('1').state).toBe('paid')
    expect(app.findings()).toMatchObject([
      { kind: 'foreign_account', figures: { account: 'acct_2', order_account: 'acct_1' } },
    ])
  })

  test('two accounts that use one event id have two events', () => {
    const sources = { pay: { allowsAccount: () => true } }
    const app = play([scripted({ paid })], { sources })
    app.deliver([
      pay('paid', { id: 'evt_same', order: 'a', account: 'acct_1', payment: 'pi_1' }),
      pay('paid', { id: 'evt_same', order: 'b', account: 'acct_2', payment: 'pi_1' }),
    ])
    expect(app.orders().map((order) => order.state)).toEqual(['paid', 'paid'])
  })

  test('an event that opens an order and is skipped leaves it in its initial state', () => {
    const app = play([scripted({ unpaid: () => skip('not paid yet') })])
    app.deliver(pay('unpaid', { order: '1' }))
    expect(app.order('1')).toMatchObject({ state: 'pending', effects: [], payments: [] })
  })
})

describe('reverse', () => {
  const failed: Script = ({ event }) =>
    reverse({ of: { type: 'refund', reference: event.reference }, to: 'paid' })
  const refund: Script = ({ event, effects }) => {
    const gone = effects.some((each) => each.reference === event.reference && each.reversed)
    return fulfill({
      to: gone ? 'paid' : 'refunded',
      effects: [
        { type: 'refund', reference: event.reference, amount: usd(4900), payment: event.payment },
      ],
    })
  }

  test('the two commute: whichever comes first, both rows stand and the amount no longer counts', () => {
    const events = [
      pay('refund', { order: '1', payment: 'pi_1', reference: 're_1' }),
      pay('failed', { order: '1', payment: 'pi_1', reference: 're_1' }),
    ]
    for (const order of [events, [...events].reverse()]) {
      const app = play([scripted({ paid, refund, failed })])
      app.deliver(pay('paid', { order: '1', payment: 'pi_1' }))
      for (const event of order) app.deliver(event)
      expect(app.order('1')).toMatchObject({ state: 'paid' })
      expect(app.order('1').effects).toContainEqual(
        expect.objectContaining({
          type: 'refund',
          reference: 're_1',
          amount: 4900n,
          reversed: true,
        }),
      )
      app.deliver(pay('refund', { order: '1', payment: 'pi_1', reference: 're_2' }))
      expect(app.order('1').state).toBe('refunded')
    }
  })

  test('a reversal that came first shows as a reversed effect without an amount', () => {
    const app = play([scripted({ failed })])
    app.deliver(pay('failed', { order: '1', reference: 're_1' }))
    expect(app.order('1').effects).toEqual([
      {
        type: 'refund',
        reference: 're_1',
        amount: null,
        currency: null,
        payment: null,
        data: {},
        reversed: true,
        operations: [],
      },
    ])
  })

  test('the same reversal again is absorbed', () => {
    const app = play([scripted({ failed })])
    app.deliver(pay('failed', { order: '1', reference: 're_1' }))
    app.deliver(pay('failed', { order: '1', reference: 're_1' }))
    expect(app.order('1').decisions.map((each) => each.kind)).toEqual(['reversed', 'absorbed'])
  })
})
