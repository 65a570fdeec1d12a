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
