import { describe, expect, it } from 'vitest'
import { PermanentError, RetryAfter } from '../../../src/core/errors.ts'
import {
  custom,
  type CustomCall,
  type CustomOptions,
} from '../../../src/outbox/destinations/custom.ts'
import { NotDone } from '../../../src/outbox/destinations/not-done.ts'
import { callWith, lookUpWith, operationId, outgoing } from './outgoing.ts'

const contract = { idempotency: 'key' } as const

/** A destination whose function throws. */
const throwing = (error: unknown): ReturnType<typeof custom> =>
  custom({
    contract,
    call: () => {
      throw error
    },
  })

describe('what a function throws', () => {
  it.each([
    ['an error', new Error('sk_live_leaked'), 'the function threw Error'],
    ['a type error', new TypeError('x'), 'the function threw TypeError'],
    ['a text', 'sk_live_leaked', 'the function threw something'],
    ['nothing', undefined, 'the function threw something'],
  ])('is uncertain, and its words are not kept: %s', async (_, error, expected) => {
    expect(await callWith(throwing(error), {})).toEqual({ kind: 'uncertain', error: expected })
  })

  it('is uncertain where it asks for a wait, which is kept', async () => {
    expect(await callWith(throwing(new RetryAfter(5)), {})).toMatchObject({
      kind: 'uncertain',
      retryAfterMs: 5,
    })
  })

  it('is a retry where it says that it did nothing', async () => {
    expect(await callWith(throwing(new NotDone('mailbox full')), {})).toEqual({
      kind: 'retry',
      error: 'not done: mailbox full',
    })
    expect(await callWith(throwing(new NotDone('full', { retryAfterMs: 9 })), {})).toEqual({
      kind: 'retry',
      error: 'not done: full',
      retryAfterMs: 9,
    })
  })

  it('is refused where it will never be accepted, and settles earlier calls only if it says so', async () => {
    expect(await callWith(throwing(new PermanentError('no such address')), {})).toEqual({
      kind: 'refused',
      error: 'no such address',
      settlesEarlier: false,
    })
    expect(await callWith(throwing(new NotDone('unknown', { forGood: true })), {})).toEqual({
      kind: 'refused',
      error: 'not done: unknown',
      settlesEarlier: true,
    })
  })
})

describe('what a function gets', () => {
  it('is the id, the key of the generation, the body as it was sent, and a signal', async () => {
    const calls: CustomCall[] = []
    const destination = custom({
      contract,
      call: (call) => {
        calls.push(call)
        return Promise.resolve()
      },
    })
    const body = { amount: 12345678901234567890n, at: new Date(0), gone: undefined, list: [1n] }
    await callWith(destination, body, { generation: 3 })
    expect(calls).toEqual([
      {
        operationId,
        key: `${operationId}:3`,
        body: { amount: '12345678901234567890', at: '1970-01-01T00:00:00.000Z', list: ['1'] },
        signal: expect.any(AbortSignal) as AbortSignal,
      },
    ])
  })

  it('ends the call at the contract’s deadline although the function goes on', async () => {
    let seen: AbortSignal | undefined
    const destination = custom({
      contract: { idempotency: 'none', callMs: 40 },
      call: ({ signal }) => {
        seen = signal
        return new Promise(() => undefined)
      },
    })
    expect(await callWith(destination, {})).toEqual({
      kind: 'uncertain',
      error: 'no answer in time',
    })
    expect(seen?.aborted).toBe(true)
  })

  it('leaves a rejection after the deadline to nobody', async () => {
    const destination = custom({
      contract: { ...contract, callMs: 20 },
      call: () =>
        new Promise((_, reject) => {
          setTimeout(() => reject(new Error('late')), 40)
        }),
    })
    expect(await callWith(destination, {})).toMatchObject({ kind: 'uncertain' })
    await new Promise((resolve) => setTimeout(resolve, 60))
  })
})

describe('what a function gives', () => {
  it('is kept as ids and figures', async () => {
    const destination = custom({
      contract,
      call: () =>
        Promise.resolve({ id: 'm_1', ok: true, n: 2, big: 3n, nested: { a: 1 }, none: null }),
    })
    expect(await callWith(destination, {})).toEqual({
      kind: 'sent',
      receipt: { id: 'm_1', ok: true, n: 2, big: '3', none: null },
    })
  })
})

describe('a function’s lookup', () => {
  const looking = (lookup: NonNullable<CustomOptions['lookup']>): ReturnType<typeof custom> =>
    custom({ contract, call: () => Promise.resolve(), lookup })

  it.each<readonly [string, () => unknown, object]>([
    ['present', () => ({ kind: 'present', receipt: { id: 'a', x: {} } }), { receipt: { id: 'a' } }],
    ['absent', () => ({ kind: 'absent' }), {}],
    ['no_answer', () => ({ kind: 'no_answer', error: 'busy', retryAfterMs: 5 }), { error: 'busy' }],
    ['no_answer', () => undefined, { error: /did not say/ }],
    ['no_answer', () => false, {}],
    ['no_answer', () => ({ kind: 'gone' }), {}],
    ['no_answer', () => Promise.reject(new Error('secret')), { error: 'the lookup failed' }],
  ])('comes to %s', async (kind, lookup, rest) => {
    const destination = looking(lookup as NonNullable<CustomOptions['lookup']>)
    expect(await lookUpWith(destination, outgoing(destination, {}))).toMatchObject({
      kind,
      ...rest,
    })
  })
})

describe('a bad option of custom()', () => {
  it.each<readonly [string, object, RegExp]>([
    ['no function', { contract }, /call must be a function/],
    ['no word about keys', { contract: {}, call: () => undefined }, /idempotency must be said/],
    ['no contract', { call: () => undefined }, /idempotency must be said/],
    ['a lookup that is none', { contract, call: () => undefined, lookup: 1 }, /lookup must be/],
  ])('is its problem: %s', (_, options, problem) => {
    expect(custom(options as CustomOptions).problem).toMatch(problem)
  })
})
