import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { makeRequest, RequestsUnderWay } from '../../../src/inbox/gather/call.ts'
import type { FinishedFetch, GatherContext } from '../../../src/inbox/gather/gather-context.ts'
import { createGatherer } from '../../../src/inbox/gather/gatherer.ts'
import { leaseFetches } from '../../../src/inbox/gather/lease.ts'
import { Outcomes } from '../../../src/inbox/gather/outcomes.ts'
import type { Executor } from '../../../src/postgres/executor.ts'
import { createGatherBench, type GatherBench } from '../../support/gather-bench.ts'

let bench: GatherBench
let ctx: GatherContext
const failed: object[] = []
beforeAll(async () => {
  bench = await createGatherBench({
    gather: { callsPerSecond: 1000, callsPerSecondPerAccount: 1000 },
  })
  ctx = await bench.parts.gatherContext()
  bench.parts.signals.on('gather.request.failed', (detail) => failed.push(detail))
})
afterAll(() => bench.close())
beforeEach(async () => {
  failed.length = 0
  bench.provider.reset()
  bench.provider.answer = ({ id }) => ({ status: 'active', is: id })
  await bench.reset()
})

/** A database that refuses to write what is about one plan, with this code. */
function refusing(plan: string, code: string, only = ''): GatherContext {
  const isBad = (value: unknown): boolean => Array.isArray(value) && value.includes(plan)
  const guarded = (tx: Executor): Executor => ({
    ...tx,
    query: (query) =>
      /fenced as|failed_fetches as/.test(query.text) &&
      query.text.includes(only) &&
      query.values?.some(isBad) === true
        ? Promise.reject(Object.assign(new Error('refused'), { code }))
        : tx.query(query),
  })
  const { db } = ctx
  return {
    ...ctx,
    db: {
      ...db,
      transaction: (work, options) => db.transaction((tx) => work(guarded(tx)), options),
    },
  }
}

async function finishAll(): Promise<readonly FinishedFetch[]> {
  const { leased } = await leaseFetches(ctx, { most: 10 })
  return Promise.all(
    leased.map(async (fetch) => ({
      fetch,
      outcome: await makeRequest(ctx, fetch, new RequestsUnderWay()),
    })),
  )
}

const asked = (): Promise<unknown[]> =>
  bench.rows('select object_id, answered::int from looked_at order by object_id')

describe('an outcome that cannot be written', () => {
  it('is a failure of its own, which a person reads, and stands in the way of no other', async () => {
    await bench.ask(bench.look('bad'), bench.look('p1'), bench.look('p2'))
    await createGatherer(refusing('bad', '22003', 'fenced as')).drain(performance.now() + 5000)
    expect(await asked()).toEqual([
      { object_id: 'bad', answered: 0 },
      { object_id: 'p1', answered: 1 },
      { object_id: 'p2', answered: 1 },
    ])
    const error = 'the answer could not be written: SQLSTATE 22003'
    expect(await bench.rows('select last_error as error from fetches')).toEqual([{ error }])
    expect(failed[0]).toMatchObject({ about: 'plan bad', kind: 'unknown', error })
  })

  it('is written as soon as it can be, after those that came behind it', async () => {
    await bench.ask(bench.look('bad'), bench.look('p1'))
    const outcomes = new Outcomes()
    for (const each of await finishAll()) outcomes.add(each)
    const away = refusing('bad', '55P03')
    await expect(outcomes.write(away)).rejects.toThrow('refused') // together
    await expect(outcomes.write(away)).rejects.toThrow('refused') // by itself
    expect(await outcomes.write(away)).toMatchObject({ requests: 1, report: { readied: 1 } })
    expect(await outcomes.write(ctx)).toMatchObject({ requests: 1, report: { readied: 1 } })
    expect(outcomes.isEmpty).toBe(true)
    expect(await outcomes.write(ctx)).toBeNull()
    expect(await bench.rows('select 1 from fetches')).toEqual([])
  })

  it.each([
    ['22003', 2],
    ['55P03', 10],
    ['XX000', 10],
  ])(
    'is left to the end of its lease where nothing of it can be written: %s',
    async (code, most) => {
      await bench.ask(bench.look('bad'))
      const outcomes = new Outcomes()
      for (const each of await finishAll()) outcomes.add(each)
      let tries = 0
      for (; !outcomes.isEmpty; tries++)
        await expect(outcomes.write(refusing('bad', code))).rejects.toThrow('refused')
      // the first was of all that there were
      expect(tries).toBe(most + (code === '22003' ? 0 : 0))
      expect(await bench.rows('select leased_until is not null as leased from fetches')).toEqual([
        { leased: true },
      ])
      await bench.later(30_001)
      await createGatherer(ctx).drain(performance.now() + 2000)
      expect(await asked()).toEqual([{ object_id: 'bad', answered: 2 }])
    },
  )
})
