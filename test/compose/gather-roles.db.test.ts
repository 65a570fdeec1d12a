import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { status } from '../../src/report/status.ts'
import { createGatherBench, type GatherBench } from '../support/gather-bench.ts'
import { probeWorkflow, until } from '../support/probe.ts'

let bench: GatherBench
beforeAll(async () => {
  bench = await createGatherBench({
    gather: { callsPerSecond: 1000, callsPerSecondPerAccount: 1000 },
  })
})
afterAll(() => bench.close())
beforeEach(async () => {
  bench.provider.reset()
  await bench.reset()
})

const roles = async (): Promise<readonly string[]> =>
  (await status(bench.db)).workers.processes.map(({ role }) => role).sort()

describe('hookledger.start', () => {
  it('asks providers too where a workflow looks at them, and says that it does', async () => {
    bench.provider.plans.set('p1', { status: 'active' })
    const app = bench.another({})
    await app.start()
    await bench.deliver(bench.look('p1'))
    await until(
      () => bench.order('o_p1'),
      (order) => (order as { state?: string } | undefined)?.state === 'active',
    )
    expect(await until(roles, (heard) => heard.length > 0)).toEqual([
      'dispatch',
      'gather',
      'reconcile',
      'work',
    ])
    await app.stop()
    // nobody asks any more
    await bench.ask(bench.look('p2'))
    expect(bench.provider.asked('p2')).toBe(0)
    expect(await roles()).toEqual([])
  })

  it('has nobody ask where no workflow looks at anything', async () => {
    const app = bench.another({ workflows: [probeWorkflow()] })
    await app.start()
    expect(await until(roles, (heard) => heard.length > 0)).toEqual([
      'dispatch',
      'reconcile',
      'work',
    ])
    await app.stop()
  })
})

describe('runOnce', () => {
  it('decides, asks and decides from the answers, until nothing more is due', async () => {
    bench.provider.plans.set('p1', { status: 'active' })
    await bench.deliver(bench.look('p1'))
    expect(await bench.hookledger.runOnce({ budgetMs: 5000 })).toMatchObject({ idle: true })
    expect(await bench.order('o_p1')).toMatchObject({ state: 'active' })
  })

  it('is not done where its time ends before a request may be made', async () => {
    bench.provider.plans.set('p1', { status: 'active' })
    const slow = bench.another({ gather: { callsPerSecond: 1 } })
    await bench.ask(bench.look('p1'))
    await bench.rows(`insert into fetch_budgets (budget, tokens) values ('source:probe', 0)`)
    expect(await slow.runOnce({ budgetMs: 300 })).toMatchObject({ events: 0, idle: false })
    expect(bench.provider.seen).toEqual([])
    expect(await slow.runOnce({ budgetMs: 5000 })).toMatchObject({ events: 1, idle: true })
  })

  it('waits for no provider that is away: what can be done is done', async () => {
    bench.provider.answer = () => Promise.reject(new Error('away'))
    await bench.deliver(bench.look('p1'))
    const started = performance.now()
    const done = await bench.hookledger.runOnce({ budgetMs: 30_000 })
    expect(done.events).toBe(0)
    // retries of the first seconds are its own, the rest is left to the next run
    expect(performance.now() - started).toBeLessThan(15_000)
    expect(await bench.rows('select waiting from inbox_gathers')).toEqual([{ waiting: true }])
  })
})
