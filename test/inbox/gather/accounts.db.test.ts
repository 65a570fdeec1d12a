import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createGatherer, type Gatherer } from '../../../src/inbox/gather/gatherer.ts'
import type { GatherContext } from '../../../src/inbox/gather/gather-context.ts'
import { leaseFetches } from '../../../src/inbox/gather/lease.ts'
import { away, Refusal } from '../../support/asked-provider.ts'
import { createGatherBench, type GatherBench } from '../../support/gather-bench.ts'
import { until, type ProbeBody } from '../../support/probe.ts'

let bench: GatherBench
let ctx: GatherContext
beforeAll(async () => {
  bench = await createGatherBench(
    { gather: { callsPerSecond: 200, callsPerSecondPerAccount: 40, concurrency: 50 } },
    true,
  )
  ctx = await bench.parts.gatherContext()
})
afterAll(() => bench.close())
beforeEach(async () => {
  bench.provider.reset()
  await bench.reset()
})

const backlog = (account: string, plans: number): ProbeBody[] =>
  Array.from({ length: plans }, (_, at) => bench.look(`${account}_${at}`, { account }))
const at = (account: string): number =>
  bench.provider.seen.filter((each) => each.account === account).length
const answerAll = (): void => {
  bench.provider.answer = () => ({ status: 'active' })
}

describe('accounts of one source', () => {
  it('take turns, however much one of them has to ask', async () => {
    await bench.ask(...backlog('acct_big', 60), ...backlog('acct_small', 2))
    const { leased } = await leaseFetches(ctx, { most: 6 })
    const accounts = leased.map(({ source }) => source.account)
    expect(accounts.filter((each) => each === 'acct_small')).toHaveLength(2)
    expect(accounts.filter((each) => each === 'acct_big')).toHaveLength(3)
    // what the small one left is dealt out at the next look
    const next = await leaseFetches(ctx, { most: 6 })
    expect(next.leased.map(({ source }) => source.account)).toEqual(
      Array.from({ length: 6 }, () => 'acct_big'),
    )
  })

  it('go on behind the one that came last, round and round, where few can be asked at once', async () => {
    await bench.ask(...['a', 'b', 'c'].flatMap((account) => backlog(`acct_${account}`, 2)))
    const turns: string[] = []
    let after: number | undefined
    for (let turn = 0; turn < 6; turn++) {
      const { leased } = await leaseFetches(ctx, { most: 1, after })
      after = leased[0]?.sourceId
      turns.push(leased[0]?.source.account ?? 'nobody')
    }
    expect(new Set(turns.slice(0, 3)).size).toBe(3)
    expect(turns.slice(3)).toEqual(turns.slice(0, 3))
  })

  it('have a budget each, below that of the source: what one cannot ask is left to the others', async () => {
    answerAll()
    await bench.ask(...backlog('acct_big', 60), ...backlog('acct_other', 10))
    const { leased } = await leaseFetches(ctx, { most: 200 })
    const big = leased.filter(({ source }) => source.account === 'acct_big')
    expect(big).toHaveLength(20) // half a second's worth
    expect(leased).toHaveLength(30)
  })

  it('do not suffer from one that is refused, limited or away', async () => {
    for (const failure of [
      () => {
        throw new Refusal({ kind: 'refused', text: 'HTTP 401' })
      },
      () => {
        throw new Refusal({
          kind: 'later',
          isRateLimit: true,
          retryAfterMs: 60_000,
          text: 'HTTP 429',
        })
      },
      away,
    ]) {
      bench.provider.reset()
      await bench.reset()
      bench.provider.answer = ({ account }) =>
        account === 'acct_bad' ? failure() : { status: 'active' }
      const gatherer = createGatherer({ ...ctx, settings: { ...ctx.settings, concurrency: 4 } })
      await bench.ask(...backlog('acct_bad', 30), ...backlog('acct_good', 30))
      await gatherer.drain(performance.now() + 3000)
      expect(at('acct_good')).toBe(30)
      // it is left alone; the source as a whole is not
      expect(at('acct_bad')).toBeLessThan(15)
      expect(
        await bench.rows(
          `select budget from fetch_budgets where closed_until is not null and budget like 'source:%'`,
        ),
      ).toEqual([])
    }
  })

  it('are asked in the name of the account that the event belongs to, and of no other', async () => {
    answerAll()
    await bench.ask(...backlog('acct_a', 3), ...backlog('acct_b', 3))
    await createGatherer(ctx).drain(performance.now() + 3000)
    expect(bench.provider.seen.every(({ id, account }) => id.startsWith(account))).toBe(true)
    expect(bench.provider.seen).toHaveLength(6)
  })
})

describe('gatherNow', () => {
  it('reaches the one account that is asked for among hundreds with a backlog', async () => {
    answerAll()
    const others = Array.from({ length: 120 }, (_, n) => backlog(`acct_${n}`, 1)).flat()
    await bench.ask(...others, bench.look('wanted', { account: 'acct_x' }))
    const [event] = await bench.rows<{ event_key: string }>(
      `select event_key from inbox_gathers where object_id = 'wanted'`,
    )
    expect(await bench.parts.gatherNow([BigInt(event?.event_key ?? 0)], 3000)).toBe(true)
    expect(bench.provider.seen.map(({ account }) => account)).toEqual(['acct_x'])
  })
})

describe('gatherers beside each other', () => {
  it('keep to one budget, and make one request of each object', async () => {
    answerAll()
    const seenAt: number[] = []
    bench.provider.answer = () => {
      seenAt.push(performance.now())
      return { status: 'active' }
    }
    await bench.ask(...backlog('acct_1', 80))
    const started = performance.now()
    const gatherers: readonly Gatherer[] = [1, 2, 3].map(() => createGatherer(ctx))
    for (const each of gatherers) each.start()
    await until(
      () => bench.rows('select 1 from fetches'),
      (left) => left.length === 0,
    )
    await Promise.all(gatherers.map((each) => each.stop(5000)))
    expect(new Set(bench.provider.seen.map(({ id }) => id)).size).toBe(80)
    expect(seenAt).toHaveLength(80)
    // never more than what has been earned since: half a second's worth, and 40 a second
    seenAt.forEach((when, index) => {
      expect(index + 1).toBeLessThanOrEqual(20 + ((when - started) / 1000) * 40 + 1)
    })
  })

  it('and workers beside each other decide a storm about one object once a look', async () => {
    let seats = 0
    bench.provider.answer = () => ({ status: 'active', seats: ++seats })
    const workers = await Promise.all([1, 2].map(() => bench.parts.worker({ loops: 1 })))
    const gatherers = await Promise.all([1, 2].map(() => bench.parts.gatherer()))
    await Promise.all(workers.map((each) => each.start()))
    for (const each of gatherers) each.start()
    await bench.deliver(...Array.from({ length: 100 }, () => bench.look('p1')))
    await until(
      () => bench.rows(`select 1 from ledger_decisions where final and event_key is not null`),
      (decided) => decided.length === 100,
    )
    await Promise.all([...workers, ...gatherers].map((each) => each.stop(5000)))
    const [row] = await bench.rows<{ sent: number; moved: number }>(
      `select (select sent::int from looked_at) as sent,
        (select count(*)::int from ledger_decisions where kind = 'moved') as moved`,
    )
    expect(row?.sent).toBe(bench.provider.seen.length)
    expect(row?.moved).toBeLessThanOrEqual(row?.sent ?? 0)
    // a batch or two of each worker, and the looks that they joined
    expect(row?.sent).toBeLessThan(10)
    expect(await bench.order('o_p1')).toMatchObject({ state: 'active', has: `team ${seats}` })
  })
})
