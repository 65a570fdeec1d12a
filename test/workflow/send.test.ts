import { describe, expect, test } from 'vitest'
import { PermanentError } from '../../src/core/errors.ts'
import { everyOrder } from '../../src/testing/every-order.ts'
import { play } from '../../src/testing/play.ts'
import { checkWorkflow } from '../../src/workflow/check-workflow.ts'
import { checkConfluence } from '../../src/workflow/confluence.ts'
import { defer, fulfill, move, operation, reverse, skip } from '../../src/workflow/decision.ts'
import type { DecideInput } from '../../src/workflow/workflow.ts'
import { defineLoosely, pay, usd } from '../support/pay-events.ts'
import { scripted, type Script } from '../support/scripted-workflow.ts'

const paid: Script = ({ event, order }) =>
  fulfill({
    to: 'paid',
    payment: { id: event.payment ?? 'pi_1', money: usd(4900) },
    effects: [
      {
        type: 'license',
        send: [{ to: 'email', name: 'receipt', body: { order: order.id }, while: ['paid'] }],
      },
    ],
  })
const refunded: Script = ({ event, order }) =>
  fulfill({
    to: 'refunded',
    effects: [
      {
        type: 'refund',
        reference: event.reference,
        amount: usd(4900),
        payment: 'pi_1',
        send: [{ to: 'email', body: { order: order.id, refund: event.reference } }],
      },
    ],
  })

/** What becomes of one event whose effect sends this. */
function sending(send: unknown, options: Parameters<typeof play>[1] = {}) {
  const app = play(
    [scripted({ custom: () => fulfill({ effects: [{ type: 'license', send } as never] }) })],
    options,
  )
  const [entry] = app.deliver(pay('custom', { order: '1' }))
  return { app, state: entry?.state, reason: entry?.reason }
}

describe('send', () => {
  test('a new effect makes its operations, in the decision that makes it', () => {
    const app = play([scripted({ paid })])
    app.deliver(pay('paid', { order: '1' }))
    const [sent, ...others] = app.sent()
    expect(others).toEqual([])
    expect(sent).toMatchObject({
      destination: 'email',
      name: 'receipt',
      orderId: '1',
      effect: { type: 'license', reference: '' },
      body: { order: '1' },
      state: 'pending',
    })
    expect(app.order('1').operations).toEqual([
      {
        name: 'receipt',
        destination: 'email',
        effect: { type: 'license', reference: '' },
        state: 'pending',
        receipt: null,
      },
    ])
  })

  test('an effect that is absorbed makes none', () => {
    const app = play([scripted({ paid })])
    app.deliver([pay('paid', { order: '1' }), pay('paid', { order: '1' })])
    app.deliver(pay('paid', { order: '1' }))
    expect(app.inbox().map((each) => each.state)).toEqual(['processed', 'processed', 'processed'])
    expect(app.sent()).toHaveLength(1)
  })

  test('its name is the type of the effect, unless it has one of its own', () => {
    const app = play([scripted({ refunded, paid })])
    app.deliver([
      pay('paid', { order: '1', payment: 'pi_1' }),
      pay('refunded', { order: '1', reference: 're_1' }),
    ])
    expect(app.order('1').operations.map((each) => each.name)).toEqual(['receipt', 'refund'])
  })

  test('several go to one destination under names of their own', () => {
    const { app } = sending([
      { to: 'email', name: 'receipt', body: 1 },
      { to: 'email', name: 'welcome', body: 2 },
      { to: 'crm', name: 'receipt', body: 3 },
    ])
    expect(app.sent('1').map(({ destination, name, body }) => [destination, name, body])).toEqual([
      ['email', 'receipt', 1],
      ['email', 'welcome', 2],
      ['crm', 'receipt', 3],
    ])
    expect(new Set(app.sent('1').map((each) => each.operationId)).size).toBe(3)
    expect(app.sent('2')).toEqual([])
  })

  test('an effect that a decision names twice sends what the first one names', () => {
    const app = play([
      scripted({
        custom: () =>
          fulfill({
            effects: [
              { type: 'license', send: [{ to: 'email', body: 'first' }] },
              { type: 'license', send: [{ to: 'email', body: 'second' }] },
            ],
          }),
      }),
    ])
    app.deliver(pay('custom', { order: '1' }))
    expect(app.sent().map((each) => each.body)).toEqual(['first'])
  })

  test('moves send as well', () => {
    const app = play([
      scripted({
        custom: () =>
          move({ to: 'canceled', once: { type: 'seat', send: [{ to: 'email', body: 'bye' }] } }),
      }),
    ])
    app.deliver(pay('custom', { order: '1' }))
    expect(app.sent()).toMatchObject([{ effect: { type: 'seat' }, body: 'bye' }])
  })

  test('the same facts give the same operation in another run', () => {
    const ids = [1, 2].map(() => {
      const app = play([scripted({ paid })])
      app.deliver(pay('paid', { order: '1' }))
      return app.sent().map((each) => each.operationId)
    })
    expect(ids[0]).toEqual(ids[1])
    expect(ids[0]?.[0]).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}$/)
  })

  test('a change that is refused sends nothing', () => {
    const app = play([
      scripted({ paid }, { accepts: () => false }),
      scripted({ late: paid }, { name: 'late', transitions: {} }),
    ])
    app.deliver([pay('paid', { order: '1' }), pay('late', { order: '2', payment: 'pi_2' })])
    expect(app.findings().map((each) => each.kind)).toEqual(['not_accepted', 'transition_refused'])
    expect(app.sent()).toEqual([])
  })
})

describe('a send that cannot be recorded ends its event dead, with what is wrong', () => {
  const cases: readonly [string, unknown, RegExp][] = [
    ['it is no list', { to: 'email', body: 1 }, /send of effect license must be a list/],
    ['one is no object', ['email'], /each must be an object with to and body/],
    ['one is null', [null], /each must be an object/],
    ['its name is empty', [{ to: 'email', name: '', body: 1 }], /name of the operation is empty/],
    ['it has no body', [{ to: 'email' }], /to email has no body/],
    ['while is empty', [{ to: 'email', body: 1, while: [] }], /while must name the states/],
    ['while is a text', [{ to: 'email', body: 1, while: 'paid' }], /while must name the states/],
    ['a state is unknown', [{ to: 'email', body: 1, while: ['payd'] }], /did it mean "paid"/],
    [
      'two have one name',
      [
        { to: 'email', body: 1 },
        { to: 'email', name: 'license', body: 2 },
      ],
      /two operations to email are named "license"/,
    ],
    ['its body contains itself', [{ to: 'email', body: circle() }], /cannot be written as JSON/],
    ['its body is a function', [{ to: 'email', body: () => 1 }], /cannot be written as JSON/],
    ['its destination is no text', [{ to: 5, body: 1 }], /no destination is named "5"/],
  ]
  test.each(cases)('%s', (_, send, reason) => {
    const { app, state, reason: why } = sending(send)
    expect(state).toBe('dead')
    expect(why).toMatch(reason)
    expect(why).toMatch(/^workflow scripted|^the name of the operation/)
    expect(app.orders()).toEqual([])
    expect(app.sent()).toEqual([])
  })

  test('an unknown destination is named with the nearest known one', () => {
    const encode = () => new Uint8Array()
    const { state, reason } = sending([{ to: 'emial', body: 1 }], {
      destinations: { email: { encode }, crm: { encode } },
    })
    expect(state).toBe('dead')
    expect(reason).toBe(
      'workflow scripted, custom: send of effect license: no destination is named "emial", did it mean "email"?',
    )
  })

  test('one that the workflow does not declare is refused, though it is configured', () => {
    const custom: Script = () =>
      fulfill({ effects: [{ type: 'license', send: [{ to: 'crn', body: 1 }] }] })
    const app = play([scripted({ custom }, { destinations: ['email', 'crm'] })])
    const [entry] = app.deliver(pay('custom', { order: '1' }))
    expect(entry?.reason).toMatch(
      /the workflow declares no destination "crn", did it mean "crm"\?$/,
    )
  })

  test('an effect that exists already is held to the same', () => {
    const custom: Script = ({ event }) =>
      fulfill({ effects: [{ type: 'license', send: [{ to: event.to ?? '', body: 1 }] }] })
    const app = play([scripted({ custom }, { destinations: ['email'] })])
    app.deliver(pay('custom', { order: '1', to: 'email' }))
    const [entry] = app.deliver(pay('custom', { order: '1', to: 'mail' }))
    expect(entry?.state).toBe('dead')
  })

  test('what a destination cannot encode leaves the order as it was, and its neighbors unharmed', () => {
    const destinations = {
      email: {
        encode: ({ body }: { readonly body: unknown }) => {
          if (body === 'broken') throw new PermanentError('body is broken')
          return new TextEncoder().encode('{}')
        },
      },
    }
    const custom: Script = ({ event }) =>
      fulfill({
        to: 'paid',
        payment: { id: event.payment ?? '', money: usd(1) },
        effects: [
          { type: 'seat', reference: event.id, send: [{ to: 'email', body: event.reference }] },
        ],
        entitle: [{ subject: 'user:1', entitlement: event.id }],
      })
    const app = play([scripted({ custom })], { destinations })
    const entries = app.deliver([
      pay('custom', { id: 'evt_a', order: '1', payment: 'pi_1', reference: 'fine' }),
      pay('custom', { id: 'evt_b', order: '1', payment: 'pi_2', reference: 'broken' }),
      pay('custom', { id: 'evt_c', order: '1', payment: 'pi_3', reference: 'fine' }),
    ])
    expect(entries.map((each) => each.state)).toEqual(['processed', 'dead', 'processed'])
    expect(entries[1]?.reason).toBe(
      'workflow scripted, custom: send of effect seat to email: body is broken',
    )
    const order = app.order('1')
    expect(order.payments.map((each) => each.id)).toEqual(['pi_1', 'pi_3'])
    expect(order.effects.map((each) => each.reference)).toEqual(['evt_a', 'evt_c'])
    expect(order.operations).toHaveLength(2)
    expect(app.sent()).toHaveLength(2)
  })

  test('what is reversed sends nothing', () => {
    const failed: Script = () =>
      reverse({ of: { type: 'refund', send: [{ to: 'email', body: 1 }] } as { type: 'refund' } })
    const app = play([scripted({ failed })])
    const [entry] = app.deliver(pay('failed', { order: '1' }))
    expect(entry?.reason).toMatch(/what is reversed sends nothing: name an effect beside it/)
  })
})

describe('while', () => {
  test('an operation that its order has left behind is not sent', () => {
    const app = play([scripted({ paid, refunded })])
    app.deliver(pay('paid', { order: '1', payment: 'pi_1' }))
    expect(app.sent().map((each) => each.name)).toEqual(['receipt'])
    app.deliver(pay('refunded', { order: '1', reference: 're_1' }))
    expect(app.sent().map((each) => each.name)).toEqual(['refund'])
  })

  test('one that was sent before stays sent', () => {
    const app = play([scripted({ paid, refunded })])
    app.deliver(pay('paid', { order: '1', payment: 'pi_1' }))
    app.answer(app.sent()[0]?.operationId ?? '')
    app.deliver(pay('refunded', { order: '1', reference: 're_1' }))
    expect(app.sent().map(({ name, state }) => [name, state])).toEqual([
      ['receipt', 'sent'],
      ['refund', 'pending'],
    ])
  })

  test('what would be canceled cannot be answered, nor what is not there', () => {
    const app = play([scripted({ paid, refunded })])
    app.deliver(pay('paid', { order: '1', payment: 'pi_1' }))
    const id = app.sent()[0]?.operationId ?? ''
    app.deliver(pay('refunded', { order: '1', reference: 're_1' }))
    expect(() => app.answer(id)).toThrow(/sent only while its order is paid/)
    expect(() => app.answer('nothing')).toThrow(/no operation has the id "nothing"/)
  })
})

describe('operations', () => {
  /** Refunds through the provider, and reverses a transfer once its id is known. */
  const asked: Script = () =>
    fulfill({
      effects: [{ type: 'license', send: [{ to: 'provider', name: 'transfer', body: {} }] }],
    })
  const taken: Script = ({ event, operations, effects }) => {
    const transfer = operations.find((each) => each.name === 'transfer')
    if (transfer?.state !== 'sent')
      return defer({ missing: operation('license', { name: 'transfer', to: 'provider' }) })
    const id = transfer.receipt?.['id']
    return fulfill({
      effects: [
        {
          type: 'seat',
          reference: event.id,
          data: { transfer: id, seen: effects[0]?.operations.length },
        },
      ],
    })
  }

  test('an event waits for one, and its answer wakes it with the receipt', () => {
    const app = play([scripted({ asked, taken })])
    app.deliver(pay('taken', { id: 'evt_taken', order: '1' }))
    expect(app.inbox()[0]).toMatchObject({
      state: 'deferred',
      waitsFor: 'operation transfer of license to be sent to provider',
    })
    app.deliver(pay('asked', { order: '1' }))
    expect(app.inbox()[0]?.state).toBe('deferred')
    const [transfer] = app.sent()
    app.answer(transfer?.operationId ?? '', { id: 'tr_1' })
    expect(app.inbox()[0]?.state).toBe('processed')
    expect(app.order('1').effects.at(-1)?.data).toEqual({ transfer: 'tr_1', seen: 1 })
    expect(app.order('1').operations[0]).toMatchObject({ state: 'sent', receipt: { id: 'tr_1' } })
  })

  test('a second answer changes nothing', () => {
    const app = play([scripted({ asked, taken })])
    app.deliver(pay('asked', { order: '1' }))
    const id = app.sent()[0]?.operationId ?? ''
    app.answer(id, { id: 'tr_1' })
    app.answer(id, { id: 'tr_2' })
    expect(app.order('1').operations[0]?.receipt).toEqual({ id: 'tr_1' })
  })

  test('a wait that nothing answers ends as a finding', () => {
    const app = play([scripted({ asked, taken })])
    app.deliver([pay('asked', { order: '1' }), pay('taken', { order: '1' })])
    app.advance(90_000_000)
    expect(app.findings()).toMatchObject([
      {
        kind: 'wait_overdue',
        figures: { waits_for: 'operation transfer of license to be sent to provider' },
      },
    ])
  })

  test('what is asked for must be a declared effect', () => {
    const app = play([scripted({ taken: () => defer({ missing: operation('licence') }) })])
    const [entry] = app.deliver(pay('taken', { order: '1' }))
    expect(entry?.reason).toMatch(/declares no effect "licence", did it mean "license"/)
  })

  test('what it is given is frozen', () => {
    let given: DecideInput | undefined
    const look: Script = (input) => {
      given = input as never
      return skip('looked')
    }
    const app = play([scripted({ asked, look })])
    app.deliver([pay('asked', { order: '1' }), pay('look', { order: '1' })])
    for (const part of [
      given?.operations,
      given?.operations[0],
      given?.operations[0]?.effect,
      given?.effects[0]?.operations,
    ]) {
      expect(part).toBeDefined()
      expect(Object.isFrozen(part)).toBe(true)
    }
  })
})

describe('an event that our own call caused', () => {
  const id = '0b0c4a3e-7a41-5c0f-9d3e-1f2a3b4c5d6e'
  const causedBy = (key: unknown) => {
    const requestKey = (body: Readonly<Record<string, unknown>>): string | null =>
      (body['key'] as string | undefined) ?? null
    const app = play([scripted({ paid })], { sources: { pay: { requestKey } } })
    const entries = app.deliver({ ...pay('paid', { order: '1' }), key })
    return entries[0]?.causedBy
  }

  test.each([
    ['the operation itself', id],
    ['a later generation of its key', `${id}:2`],
  ])('is linked to it: %s', (_, key) => {
    expect(causedBy(key)).toBe(id)
  })

  test.each([
    ['no key', undefined],
    ['a key of the SDK', 'stripe-node-retry-7f8d1a0e-35a1-4f0b-9a3e-0d9d2a1b2c3d'],
    ['a random UUID', '7f8d1a0e-35a1-4f0b-9a3e-0d9d2a1b2c3d'],
    ['no generation', `${id}:0`],
    ['more than a key', `${id}:2:3`],
    ['upper case', id.toUpperCase()],
  ])('is not linked: %s', (_, key) => {
    expect(causedBy(key)).toBeNull()
  })
})

describe('the order of events', () => {
  const events = [
    pay('paid', { id: 'evt_paid', order: '1', payment: 'pi_1' }),
    pay('paid', { id: 'evt_again', order: '1', payment: 'pi_1' }),
    pay('refunded', { id: 'evt_refunded', payment: 'pi_1', reference: 're_1' }),
  ]
  test('does not matter to what is sent where the bodies follow from the facts', () => {
    const facts: Script = (input) => ({
      ...(paid(input) as object),
      to: input.effects.some((each) => each.type === 'refund') ? 'refunded' : 'paid',
    })
    expect(everyOrder(events, scripted({ paid: facts, refunded })).orders).toBe(6)
  })

  test('is said to matter where an operation is there in some of them only', () => {
    const first: Script = ({ event, effects }) =>
      fulfill({
        to: effects.some((each) => each.type === 'refund') ? 'refunded' : 'paid',
        payment: { id: 'pi_1', money: usd(4900) },
        effects: [
          {
            type: 'license',
            send: event.id === 'evt_paid' ? [{ to: 'email', body: { for: 'it' } }] : [],
          },
        ],
      })
    const { failures } = checkConfluence(scripted({ paid: first }), [
      { name: 'paid twice', events: events.slice(0, 2) },
    ])
    expect(failures[0]?.differs.join()).toContain('operations')
    expect(() => everyOrder(events.slice(0, 2), scripted({ paid: first }))).toThrow(
      /the order of events matters/,
    )
  })

  test('may decide what a body says: an address that a later event corrects', () => {
    const first: Script = ({ event }) =>
      fulfill({
        effects: [{ type: 'license', send: [{ to: 'email', body: { from: event.id } }] }],
      })
    const two = [pay('paid', { order: '1' }), pay('paid', { order: '1' })]
    expect(everyOrder(two, scripted({ paid: first })).orders).toBe(2)
  })
})

describe('the receipts of a history', () => {
  const asked: Script = () =>
    fulfill({ effects: [{ type: 'license', send: [{ to: 'bank', body: 1 }] }] })
  const taken: Script = ({ event, operations }) => {
    const [transfer] = operations
    if (transfer?.state !== 'sent') return defer({ missing: operation('license') })
    const send = [{ to: 'email', body: transfer.receipt }]
    return fulfill({ effects: [{ type: 'seat', reference: event.id, send }] })
  }
  const workflow = scripted({ asked, taken })
  const events = [
    pay('taken', { id: 'evt_taken', order: '1' }),
    pay('asked', { id: 'evt_asked', order: '1' }),
  ]
  const warned = (receipts?: Record<string, Record<string, unknown>>): string[] => {
    const histories = [{ name: 'taken', events, receipts }]
    return checkWorkflow({ ...workflow, histories }, new Map()).map((each) => each.message)
  }

  test('let what waits for an operation go on, in every order', () => {
    expect(warned({ bank: { id: 'tr_1' } }).join()).not.toMatch(/"seat"|not confluent/)
    expect(warned().join()).toMatch(/no history of it makes the declared effect "seat"/)
  })

  test('are those of the destination that is asked', () => {
    expect(warned({ email: { id: 'msg_1' } }).join()).toMatch(/declared effect "seat"/)
  })
})

describe('destinations of a workflow', () => {
  const define = (destinations: unknown) => () =>
    defineLoosely('shop', {
      sources: ['pay'],
      initial: 'pending',
      states: { pending: {} },
      transitions: {},
      effects: {},
      destinations,
    })

  test.each([
    ['no list', 'email', /destinations must be a list of names/],
    ['a name that is none', ['e mail'], /"e mail" cannot be the name of a destination/],
    ['a number', [5], /cannot be the name of a destination/],
  ])('are refused: %s', (_, destinations, message) => {
    expect(define(destinations)).toThrow(message)
  })

  test('are kept once each, and do not change its version', () => {
    const workflow = define(['email', 'crm', 'email'])()
    expect(workflow.destinations).toEqual(['email', 'crm'])
    expect(workflow.version).toBe(define(undefined)().version)
  })
})

function circle(): object {
  const body: Record<string, unknown> = {}
  body['body'] = body
  return body
}
