import { describe, expect, test } from 'vitest'
import { contradict, defer, effect, fulfill, move, skip } from '../../src/workflow/decision.ts'
import { play } from '../../src/testing/play.ts'
import { pay, usd } from '../support/pay-events.ts'
import { scripted } from '../support/scripted-workflow.ts'

const license = { type: 'license' } as const
const long = 'x'.repeat(256)

/** Decides one event with this answer and returns what became of it. */
function decided(answer: unknown) {
  const app = play([
    scripted({ hostile: () => answer, good: () => fulfill({ effects: [{ type: 'seat' }] }) }),
  ])
  app.deliver([pay('hostile', { order: '1' }), pay('good', { order: '2' })])
  const [hostile, good] = app.inbox()
  if (hostile === undefined) throw new Error('nothing arrived')
  return { hostile, good, app }
}

describe('checkedDecision', () => {
  const dead: readonly (readonly [string, unknown, string])[] = [
    ['nothing', undefined, 'it returned undefined'],
    ['null', null, 'it returned null'],
    ['a text', 'paid', 'it returned string'],
    ['a promise', Promise.resolve(skip('no')), 'it must be synchronous'],
    [
      'an object that is no decision',
      { to: 'paid' },
      'fulfill, move, reverse, mirror, skip, defer, contradict',
    ],
    ['a kind from the prototype', { kind: 'constructor' }, 'its kind must be one of'],
    [
      'an unknown state',
      fulfill({ to: 'payed', effects: [license] }),
      'declares no state "payed", did it mean "paid"?',
    ],
    [
      'a state from the prototype',
      fulfill({ to: 'toString', effects: [license] }),
      'declares no state',
    ],
    [
      'an unknown effect',
      fulfill({ effects: [{ type: 'licence' }] }),
      'declares no effect "licence", did it mean "license"?',
    ],
    [
      'an effect from the prototype',
      fulfill({ effects: [{ type: '__proto__' }] }),
      'declares no effect',
    ],
    ['an effect that is missing', fulfill({ effects: [undefined as never] }), 'declares no effect'],
    ['effects that are no list', { kind: 'fulfill', effects: license }, 'effects must be a list'],
    [
      'a reference with NUL',
      fulfill({ effects: [{ ...license, reference: 'a\u0000' }] }),
      'effect reference contains NUL',
    ],
    [
      'a long reference',
      fulfill({ effects: [{ ...license, reference: long }] }),
      'effect reference is longer than 255 bytes',
    ],
    [
      'a payment without an id',
      fulfill({ payment: { id: '', money: usd(1) } }),
      'payment id is empty',
    ],
    [
      'a payment id with half a character',
      fulfill({ payment: { id: '\ud800', money: usd(1) } }),
      'not valid Unicode',
    ],
    [
      'a payment without money',
      fulfill({ payment: { id: 'pi' } as never }),
      'must be made by money(amount, currency)',
    ],
    [
      'money as a number',
      fulfill({ payment: { id: 'pi', money: { amount: 1, currency: 'USD' } as never } }),
      'must be made by money',
    ],
    [
      'a currency in small letters',
      fulfill({ payment: { id: 'pi', money: { amount: 1n, currency: 'usd' } } }),
      'must be made by money',
    ],
    [
      'a negative payment',
      fulfill({ payment: { id: 'pi', money: usd(-1) } }),
      'cannot be negative',
    ],
    [
      'money that fits no column',
      fulfill({ payment: { id: 'pi', money: { amount: 2n ** 63n, currency: 'USD' } } }),
      'does not fit 64 bits',
    ],
    [
      'a refund below nothing',
      fulfill({ effects: [{ type: 'refund', payment: 'pi', amount: usd(-1) }] }),
      'cannot be negative',
    ],
    [
      'an entitlement of nobody',
      fulfill({ effects: [license], entitle: [{ subject: null as never, entitlement: 'pro' }] }),
      'subject of the entitlement is not a text',
    ],
    [
      'an entitlement to nothing',
      fulfill({ effects: [license], entitle: [{ subject: 'u', entitlement: '' }] }),
      'entitlement is empty',
    ],
    [
      'a quantity of zero',
      fulfill({ effects: [license], entitle: [{ subject: 'u', entitlement: 'e', quantity: 0 }] }),
      'positive integer',
    ],
    [
      'half a seat',
      fulfill({ effects: [license], entitle: [{ subject: 'u', entitlement: 'e', quantity: 0.5 }] }),
      'positive integer',
    ],
    [
      'an end that is no date',
      fulfill({
        effects: [license],
        entitle: [{ subject: 'u', entitlement: 'e', validUntil: new Date(NaN) }],
      }),
      'validUntil',
    ],
    [
      'an end after all calendars',
      fulfill({
        effects: [license],
        entitle: [{ subject: 'u', entitlement: 'e', validUntil: new Date(8e15) }],
      }),
      'years 1 to 9999',
    ],
    [
      'a subject with NUL',
      fulfill({ effects: [license], subject: 'u\u0000' }),
      'subject contains NUL',
    ],
    [
      'a flag without a kind',
      fulfill({ effects: [license], flag: {} as never }),
      'kind of the flag',
    ],
    ['a figure that is an object', contradict('no', { deep: {} as never }), 'a figure must be'],
    [
      'data that cannot be kept',
      fulfill({ effects: [{ ...license, data: { run: () => 1 } }] }),
      'plain data, not a function',
    ],
    [
      'data that holds itself',
      fulfill({ effects: [{ ...license, data: cyclic() }] }),
      'nested more than',
    ],
    ['a deferral for nothing', defer({ missing: [] }), 'must say what is missing'],
    [
      'a deferral for an unknown thing',
      defer({ missing: undefined as never }),
      'must say what is missing',
    ],
    [
      'a deferral for an unknown effect',
      defer({ missing: effect('licens') }),
      'did it mean "license"?',
    ],
    [
      'a deferral of no time',
      defer({ missing: effect('license'), for: 0 }),
      'positive number of milliseconds',
    ],
    [
      'a deferral for a name with NUL',
      defer({ missing: { kind: 'name', name: { kind: 'a', value: '\u0000' } } }),
      'contains NUL',
    ],
  ]

  test.each(dead)('%s is permanent, and the event next to it is unharmed', (_, answer, problem) => {
    const { hostile, good, app } = decided(answer)
    expect(hostile).toMatchObject({ state: 'dead', error: { permanent: true } })
    expect(hostile.reason).toContain(problem)
    expect(good).toMatchObject({ state: 'processed' })
    expect(app.findings()).toMatchObject([{ kind: 'dead_event', class: 'lag' }])
    expect(app.orders().map((order) => order.id)).toEqual(['2'])
  })

  test('a move without its fact is permanent', () => {
    expect(() => move({ to: 'paid' } as never)).toThrow(/a move needs `once`/)
    expect(() => move({ to: 'paid' } as never)).toThrow(
      expect.objectContaining({ permanent: true }),
    )
  })

  test.each([
    [skip(''), 'nothing follows from it'],
    [skip(undefined as never), 'nothing follows from it'],
    [contradict(''), 'it contradicts the order'],
    [skip('has \u0000 and \ud800 in it'), 'has \ufffd and \ufffd in it'],
  ])('a reason is for people: one that cannot be shown becomes one that can', (answer, reason) => {
    expect(decided(answer).hostile).toMatchObject({ state: 'processed', reason })
  })

  test('data of an effect reads in the same batch as it will from the ledger', () => {
    const data = {
      big: 12345678901234567890n,
      at: new Date('2026-01-01T00:00:00Z'),
      odd: NaN,
      text: 'a\u0000b',
      none: undefined,
      list: [undefined, { deep: 1 }],
    }
    const { app } = decided(fulfill({ effects: [{ ...license, data }] }))
    expect(app.order('1').effects[0]?.data).toEqual({
      big: '12345678901234567890',
      at: '2026-01-01T00:00:00.000Z',
      odd: null,
      text: 'a\ufffdb',
      list: [null, { deep: 1 }],
    })
  })
})

function cyclic(): Record<string, unknown> {
  const value: Record<string, unknown> = {}
  value['self'] = value
  return value
}
