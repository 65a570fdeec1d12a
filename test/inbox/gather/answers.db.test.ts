import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { makeRequest, RequestsUnderWay } from '../../../src/inbox/gather/call.ts'
import type {
  FinishedFetch,
  GatherContext,
  LeasedFetch,
} from '../../../src/inbox/gather/gather-context.ts'
import { leaseFetches } from '../../../src/inbox/gather/lease.ts'
import { oneOfEach, settleFetches, type SettleReport } from '../../../src/inbox/gather/settle.ts'
import { createGatherBench, type GatherBench } from '../../support/gather-bench.ts'
import { probe } from '../../support/probe.ts'

let bench: GatherBench
let ctx: GatherContext
beforeAll(async () => {
  bench = await createGatherBench({
    gather: { callsPerSecond: 1000, callsPerSecondPerAccount: 1000 },
  })
  ctx = await bench.parts.gatherContext()
})
afterAll(() => bench.close())
beforeEach(async () => {
  bench.provider.reset()
  await bench.reset()
})

/** Takes the one request that is due. */
async function take(): Promise<LeasedFetch> {
  const { leased } = await leaseFetches(ctx, { most: 10 })
  expect(leased).toHaveLength(1)
  return leased[0] as LeasedFetch
}
const request = async (fetch: LeasedFetch): Promise<FinishedFetch> => ({
  fetch,
  outcome: await makeRequest(ctx, fetch, new RequestsUnderWay()),
})
const settle = (...finished: FinishedFetch[]): Promise<SettleReport> => settleFetches(ctx, finished)
const fetches = (): Promise<unknown[]> =>
  bench.rows(
    `select wanted::int, leased_until is not null as leased, due_at <= clock_timestamp() as due, attempts from fetches`,
  )
const evidence = (): Promise<unknown[]> =>
  bench.rows('select number::int, is_late from evidence order by number')

describe('the number of a request', () => {
  it('is taken and committed before anything is asked, and is its own', async () => {
    bench.provider.plans.set('p1', { status: 'active' })
    await bench.ask(bench.look('p1'))
    const fetch = await take()
    expect(fetch.number).toBe(1n)
    expect(bench.provider.seen).toEqual([])
    expect(await bench.rows('select sent::int, answered::int from looked_at')).toEqual([
      { sent: 1, answered: 0 },
    ])
    expect((await leaseFetches(ctx, { most: 10 })).leased).toEqual([])
  })

  it('is joined only by who asked before it was taken: a storm about one object makes two calls', async () => {
    bench.provider.plans.set('p1', { status: 'active', seats: 1 })
    await bench.ask(...Array.from({ length: 50 }, () => bench.look('p1')))
    const first = await take()
    await bench.ask(...Array.from({ length: 50 }, () => bench.look('p1')))
    const answer = await request(first)
    bench.provider.plans.set('p1', { status: 'active', seats: 2 })
    expect(await settle(answer)).toMatchObject({ readied: 50, answered: 1 })
    expect(await fetches()).toEqual([{ wanted: 2, leased: false, due: true, attempts: 0 }])
    await bench.work()
    expect(bench.provider.asked('p1')).toBe(2)
    expect(await bench.order('o_p1')).toMatchObject({ has: 'team 2', sent: 2, answered: 2 })
  })
})

describe('an answer that comes out of order', () => {
  it('is kept as evidence and changes nothing where a later one is there', async () => {
    bench.provider.plans.set('p1', { status: 'active', seats: 1 })
    await bench.ask(bench.look('p1'))
    const slow = await take()
    const old = await request(slow)
    await bench.later(30_000) // its lease passes: it is as good as lost
    bench.provider.plans.set('p1', { status: 'late' })
    expect(await settle(await request(await take()))).toMatchObject({ readied: 1 })
    await bench.work()
    expect(await bench.order('o_p1')).toMatchObject({ state: 'late', answered: 2, applied: 2 })
    expect(await settle(old)).toMatchObject({ readied: 0, answered: 1 })
    await bench.work()
    expect(await bench.order('o_p1')).toMatchObject({ state: 'late', has: null, answered: 2 })
    expect(await evidence()).toEqual([
      { number: 1, is_late: true },
      { number: 2, is_late: false },
    ])
  })

  it('counts until a later one is there, although its lease passed', async () => {
    bench.provider.plans.set('p1', { status: 'active' })
    await bench.ask(bench.look('p1'))
    const slow = await take()
    await bench.later(30_000)
    const second = await take()
    expect(second.number).toBe(2n)
    expect(await settle(await request(slow))).toMatchObject({ readied: 1 })
    await bench.work()
    expect(await bench.order('o_p1')).toMatchObject({ state: 'active', applied: 1, sent: 2 })
    await settle(await request(second))
    expect(await bench.order('o_p1')).toMatchObject({ answered: 2, applied: 1 })
    expect(await fetches()).toEqual([])
  })

  it('does not end the lease of the request that was made after it', async () => {
    bench.provider.plans.set('p1', { status: 'active' })
    await bench.ask(bench.look('p1'))
    const slow = await take()
    await bench.later(30_000)
    await take()
    await bench.ask(bench.look('p1'))
    await settle(await request(slow))
    expect(await fetches()).toEqual([{ wanted: 3, leased: true, due: false, attempts: 0 }])
    bench.provider.answer = () => Promise.reject(new Error('broken'))
    expect((await settle({ ...(await request(slow)), fetch: slow })).failed).toHaveLength(1)
    expect(await fetches()).toMatchObject([{ leased: true, attempts: 0 }])
  })

  it('is stored once where nobody knows whether its COMMIT was done', async () => {
    bench.provider.plans.set('p1', { status: 'active' })
    await bench.ask(bench.look('p1'))
    const answer = await request(await take())
    await settle(answer)
    expect(await settle(answer)).toMatchObject({ readied: 0 })
    expect(await evidence()).toEqual([{ number: 1, is_late: false }])
    await bench.work()
    expect(await bench.order('o_p1')).toMatchObject({ state: 'active', answered: 1 })
  })

  it('waits for its turn where two of one object ended at once', async () => {
    bench.provider.plans.set('p1', { status: 'active' })
    await bench.ask(bench.look('p1'), bench.look('p2'))
    const { leased } = await leaseFetches(ctx, { most: 10 })
    const [a, b] = await Promise.all(leased.map(request))
    if (a === undefined || b === undefined) throw new Error('two were due')
    expect(oneOfEach([a, a, b], 10)).toEqual([[a, b], [a]])
    expect(oneOfEach([a, b], 1)).toEqual([[a], [b]])
  })
})

describe('what an answer must be', () => {
  const failureOf = async (value: unknown): Promise<unknown> => {
    bench.provider.answer = () => ({ status: 'active', value })
    await bench.ask(bench.look('p1'))
    const [failed] = (await settle(await request(await take()))).failed
    return failed?.text
  }
  it('is data that a worker can read within its limits, else the request has failed and is told', async () => {
    expect(await failureOf('x'.repeat(1_048_576))).toMatch(
      /^the answer has 1048\d+ bytes, more than 1048576/,
    )
    await bench.reset()
    let deep: unknown = 1
    for (let level = 0; level < 70; level++) deep = [deep]
    expect(await failureOf(deep)).toMatch(/nested too deep/)
    await bench.reset()
    const circle: Record<string, unknown> = {}
    circle['self'] = circle
    expect(await failureOf(circle)).toMatch(/no plain data/)
  })

  const looked = async (plan: string, answer: unknown): Promise<FinishedFetch['outcome']> => {
    await bench.reset()
    bench.provider.answer = () => answer
    await bench.ask(bench.look(plan))
    const finished = await request(await take())
    await settle(finished)
    return finished.outcome
  }

  it.each([
    ['a function', () => 1, 'fetch answered a function, of which JSON keeps nothing: return'],
    ['a symbol', Symbol('plan'), 'fetch answered a symbol, of which JSON keeps nothing: return'],
    ['no number', NaN, 'fetch answered a number, of which JSON keeps nothing: return'],
    ['no end', Infinity, 'fetch answered a number, of which JSON keeps nothing: return'],
    [
      'what calls itself nothing',
      { status: 'active', toJSON: () => null },
      'fetch answered a value of Object, of which JSON keeps nothing: return',
    ],
    [
      'what calls itself undefined',
      { status: 'active', toJSON: () => undefined },
      'fetch answered a value of Object, of which JSON keeps nothing: return',
    ],
    [
      'an answer that nobody has read',
      new Response('{"status":"active"}'),
      'fetch answered a value of Response, of which JSON keeps nothing: return',
    ],
    [
      'a map',
      new Map([['status', 'active']]),
      'fetch answered a value of Map, of which JSON keeps nothing: return',
    ],
    ['a text', 'active', 'fetch answered a string: return the object as plain data, or null'],
    ['an empty text', '', 'fetch answered a string: return the object as plain data, or null'],
    ['zero', 0, 'fetch answered a number: return the object as plain data, or null'],
    ['false', false, 'fetch answered a boolean: return the object as plain data, or null'],
    ['a moment', new Date(0), 'fetch answered a value of Date: return the object as plain data'],
  ])('is an object, or null: never %s, which would end access', async (_, answer, error) => {
    expect(await looked('p1', answer)).toMatchObject({
      kind: 'failed',
      failure: { kind: 'unknown' },
      text: expect.stringContaining(error),
    })
    expect(await evidence()).toEqual([])
    expect(await bench.rows('select state from orders')).toEqual([])
  })

  it('may be an object of a class, one that says itself what it is in JSON, or null', async () => {
    class Plan {
      readonly status = 'active'
    }
    const spoken = { toJSON: () => ({ status: 'late' }) }
    for (const answer of [new Plan(), spoken, Object.assign(Object.create(null), { a: 1 }), {}, []])
      expect(await looked('p1', answer)).toMatchObject({ kind: 'answered', isFound: true })
    expect(await looked('p1', null)).toMatchObject({ kind: 'answered', isFound: false })
  })

  it('is anything that JSON can hold where it was gathered, and nothing else', async () => {
    const found = async (value: unknown): Promise<unknown> => {
      await bench.reset()
      await bench.ask(probe('ask', { order: 'o1' }))
      const fetch = await take()
      const handler = { ...fetch.handler, gather: () => Promise.resolve(value) }
      return (await request({ ...fetch, handler } as LeasedFetch)).outcome
    }
    for (const value of ['text', 0, false, null, undefined, [], { a: 1 }])
      expect(await found(value)).toMatchObject({ kind: 'answered', isFound: true })
    for (const value of [() => 1, NaN, new Map()]) {
      expect(await found(value)).toMatchObject({
        kind: 'failed',
        text: expect.stringMatching(/^gather answered .* of which JSON keeps nothing/),
      })
    }
  })

  it('keeps a bigint exact, and text that only JSON can hold', async () => {
    bench.provider.answer = () => ({
      status: 'active',
      big: 9_007_199_254_740_993n,
      odd: 'a\u0000b',
    })
    await bench.ask(bench.look('p1'))
    await settle(await request(await take()))
    const [row] = await bench.rows<{ body: Buffer }>('select body from evidence')
    expect(row?.body.toString()).toBe(
      '{"value":{"status":"active","big":9007199254740993,"odd":"a\\u0000b"}}',
    )
    await bench.work()
    expect(await bench.order('o_p1')).toMatchObject({ state: 'active' })
  })
})
