import { describe, expect, test } from 'vitest'
import { skip } from '../../src/workflow/decision.ts'
import { createRegistry } from '../../src/workflow/registry.ts'
import type { EventHandler } from '../../src/workflow/workflow.ts'
import { definePay } from '../support/pay-events.ts'

const good = {
  sources: ['pay'],
  initial: 'pending',
  states: { pending: {}, paid: { entitles: true } },
  transitions: { pending: ['paid'] },
  effects: { license: {} },
} as const
const handler = { order: () => '1', decide: () => skip('no') }

/** As plain JavaScript calls it: whatever comes. */
const define = definePay as unknown as (
  name: unknown,
  options: unknown,
) => ReturnType<typeof definePay>
const on = (types: unknown, given: unknown): unknown =>
  definePay('shop', good).on(types as never, given as EventHandler as never)

describe('defineWorkflow in plain JavaScript', () => {
  const mistakes: readonly (readonly [string, unknown, string])[] = [
    ['no options', undefined, 'its options must be an object'],
    [
      'an unknown option',
      { ...good, transition: {} },
      'unknown option "transition", did you mean "transitions"?',
    ],
    ['no states', { ...good, states: {} }, 'declares no states'],
    ['states that are missing', { ...good, states: undefined }, 'states must be an object'],
    [
      'an unknown option of a state',
      { ...good, states: { pending: {}, paid: { entitle: true } } },
      'state "paid": unknown option "entitle", did you mean "entitles"?',
    ],
    [
      'entitles that is no truth',
      { ...good, states: { pending: {}, paid: { entitles: 'yes' } } },
      'entitles must be true or false',
    ],
    [
      'a state with a bad name',
      { ...good, states: { 'not ok': {}, pending: {} } },
      '"not ok" cannot be the name of a state',
    ],
    [
      'an unknown initial state',
      { ...good, initial: 'pendng' },
      'unknown initial state "pendng", did you mean "pending"?',
    ],
    [
      'an initial state from the prototype',
      { ...good, initial: 'toString' },
      'unknown initial state "toString"',
    ],
    [
      'a transition from an unknown state',
      { ...good, transitions: { payd: ['pending'] } },
      'unknown state "payd", did you mean "paid"?',
    ],
    [
      'a transition to an unknown state',
      { ...good, transitions: { pending: ['payed'] } },
      'unknown state "payed", did you mean "paid"?',
    ],
    [
      'transitions that are no list',
      { ...good, transitions: { pending: 'paid' } },
      'the transitions of "pending" must be a list',
    ],
    [
      'an effect with a bad name',
      { ...good, effects: { 'refund:reversed': {} } },
      '"refund:reversed" cannot be the name of an effect',
    ],
    [
      'an unknown option of an effect',
      { ...good, effects: { license: { aply: () => 1 } } },
      'effect "license": unknown option "aply", did you mean "apply"?',
    ],
    [
      'an apply that is no function',
      { ...good, effects: { license: { apply: 'sql' } } },
      'apply must be a function',
    ],
    ['no sources', { ...good, sources: [] }, 'names no sources'],
    [
      'a source with a bad name',
      { ...good, sources: ['my shop'] },
      '"my shop" cannot be the name of a source',
    ],
    ['an unknown opens', { ...good, opens: 'events' }, "opens must be 'app' or 'event'"],
    ['an accepts that is no function', { ...good, accepts: true }, 'accepts must be a function'],
    ['a compare that is no function', { ...good, compare: 1 }, 'compare must be a function'],
    ['an empty version', { ...good, version: '' }, 'version must be a text'],
    ['histories that are no list', { ...good, histories: {} }, 'histories must be a list'],
    [
      'a history without a name',
      { ...good, histories: [{ events: [] }] },
      'a history needs a name',
    ],
    [
      'two histories of one name',
      {
        ...good,
        histories: [
          { name: 'a', events: [] },
          { name: 'a', events: [] },
        ],
      },
      'two histories are named "a"',
    ],
    [
      'a history of no events',
      { ...good, histories: [{ name: 'a', events: 'none' }] },
      'events must be a list',
    ],
    [
      'a misspelled part of a history',
      { ...good, histories: [{ name: 'a', evnts: [], events: [] }] },
      'unknown option "evnts", did you mean "events"?',
    ],
  ]

  test.each(mistakes)('%s stops the start, naming the culprit', (_, options, message) => {
    expect(() => define('shop', options)).toThrow(
      expect.objectContaining({
        code: 'HKL_WORKFLOW_INVALID',
        message: expect.stringContaining(message),
      }),
    )
  })

  test.each([[''], ['9lives'], ['with space'], [undefined], ['x'.repeat(64)]])(
    'a workflow cannot be called %j',
    (name) => {
      expect(() => define(name, good)).toThrow(
        expect.objectContaining({ code: 'HKL_WORKFLOW_INVALID' }),
      )
    },
  )

  test('every message names the workflow', () => {
    expect(() => define('shop', { ...good, initial: 'x' })).toThrow(/workflow "shop"/)
  })
})

describe('on in plain JavaScript', () => {
  const mistakes: readonly (readonly [string, unknown, unknown, string])[] = [
    ['no decide', 'paid', { order: () => '1' }, '"paid": decide must be a function'],
    ['no order', 'paid', { decide: () => skip('no') }, '"paid": order must be a function'],
    ['no handler', 'paid', undefined, '"paid": its options must be an object'],
    [
      'a misspelled part',
      'paid',
      { ...handler, lern: () => [] },
      'unknown option "lern", did you mean "learn"?',
    ],
    ['a learn that is no function', 'paid', { ...handler, learn: [] }, 'learn must be a function'],
    [
      'an unknown end of a wait',
      'paid',
      { ...handler, unclaimed: 'ignored' },
      "unclaimed must be 'finding' or 'ignore'",
    ],
    [
      'the length of a wait that is not ignored in the end',
      'paid',
      { ...handler, unclaimedAfterMs: 1000 },
      "unclaimedAfterMs goes with unclaimed: 'ignore'",
    ],
    [
      'a length that is none',
      'paid',
      { ...handler, unclaimed: 'ignore', unclaimedAfterMs: 0.5 },
      'unclaimedAfterMs must be a whole number of milliseconds',
    ],
    ['no types', [], handler, 'names no event types'],
    ['a type that is no text', [5], handler, 'an event type must be a text'],
    ['one type twice', ['paid', 'paid'], handler, 'handles "paid" twice'],
  ]

  test.each(mistakes)('%s stops the start', (_, types, given, message) => {
    expect(() => on(types, given)).toThrow(
      expect.objectContaining({
        code: 'HKL_WORKFLOW_INVALID',
        message: expect.stringContaining(message),
      }),
    )
  })

  test('returns a new workflow and leaves the old one as it was', () => {
    const first = definePay('shop', good)
    const second = first.on('paid', handler)
    expect([...first.handlers.keys()]).toEqual([])
    expect([...second.handlers.keys()]).toEqual(['paid'])
  })
})

describe('version', () => {
  const version = (changes: object, types: string[] = ['paid']): string =>
    (define('shop', { ...good, ...changes }) as ReturnType<typeof definePay>).on(types, handler)
      .version

  test('is a hash that stays the same for the same states, transitions, types and effects', () => {
    expect(version({})).toBe(version({ states: { paid: { entitles: true }, pending: {} } }))
    expect(version({})).toMatch(/^[0-9a-f]{16}$/)
  })

  test.each([
    ['a state', { states: { ...good.states, lost: {} } }],
    ['whether a state entitles', { states: { pending: {}, paid: {} } }],
    ['a transition', { transitions: { pending: ['paid'], paid: ['pending'] } }],
    ['an effect', { effects: { license: {}, refund: {} } }],
  ])('changes with %s', (_, changes) => {
    expect(version(changes)).not.toBe(version({}))
  })

  test('changes with a type', () => {
    expect(version({}, ['paid', 'refunded'])).not.toBe(version({}))
  })

  test('is the given text where one is given', () => {
    expect(version({ version: '2026-01' }, ['paid', 'refunded'])).toBe('2026-01')
  })
})

describe('createRegistry', () => {
  test('two workflows of one name stop the start', () => {
    const shop = definePay('shop', good)
    expect(() => createRegistry([shop, shop], [])).toThrow(
      expect.objectContaining({
        code: 'HKL_WORKFLOW_INVALID',
        message: 'two workflows are named "shop"',
      }),
    )
  })

  test('two plain handlers of one type stop the start', () => {
    const plain = { source: 'pay', types: ['paid'], run: async () => undefined }
    expect(() => createRegistry([], [plain, plain])).toThrow(
      /two handlers take "paid" of source "pay"/,
    )
  })

  test('knows the types of each source', () => {
    const shop = definePay('shop', good).on(['paid', 'refunded'], handler)
    const registry = createRegistry(
      [shop],
      [{ source: 'other', types: ['seen'], run: async () => undefined }],
    )
    expect([...(registry.types.get('pay') ?? [])]).toEqual(['paid', 'refunded'])
    expect([...(registry.types.get('other') ?? [])]).toEqual(['seen'])
    expect(registry.candidates('other', 'paid')).toBeNull()
  })
})
