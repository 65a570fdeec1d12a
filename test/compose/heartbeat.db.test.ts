import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createHeartbeat } from '../../src/compose/heartbeat.ts'
import { createSignals } from '../../src/core/signals.ts'
import { createDatabase } from '../../src/postgres/pool.ts'
import { gauges } from '../../src/report/gauges.ts'
import { status } from '../../src/report/status.ts'
import { createHookledgerDatabase } from '../support/hookledger-database.ts'
import { until } from '../support/probe.ts'
import type { TestDatabase } from '../support/test-database.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createHookledgerDatabase()
})
afterAll(() => database.drop())

const at = (): ReturnType<typeof createDatabase> =>
  createDatabase(database.pool({ max: 2 }), 'hookledger')

async function heard(): Promise<Readonly<Record<string, number>>> {
  const { workers } = await status(at())
  return Object.fromEntries(workers.processes.map((each) => [each.role, Number(each.processes)]))
}

describe('a process at work', () => {
  it('is heard of by its roles while it runs, and not after it stopped', async () => {
    const one = createHeartbeat(at(), createSignals(), ['work', 'dispatch'])
    const other = createHeartbeat(at(), createSignals(), ['work'])
    one.start()
    other.start()
    await until(heard, (roles) => roles['work'] === 2)
    expect(await heard()).toEqual({ work: 2, dispatch: 1 })
    const told = (await gauges(at())).find(({ name }) => name === 'processes')
    expect(told?.values).toContainEqual({ labels: ['work'], value: 2 })
    expect(told?.values).toContainEqual({ labels: ['reconcile'], value: 0 })
    await one.stop()
    expect(await heard()).toEqual({ work: 1 })
    await other.stop()
  })

  it('is not counted when nothing was heard of it for half a minute, however it ended', async () => {
    const killed = createHeartbeat(at(), createSignals(), ['work'])
    killed.start()
    await until(heard, (roles) => roles['work'] === 1)
    await at().query({
      text: `update hookledger.processes set seen_at = seen_at - interval '31 seconds'`,
    })
    expect(await heard()).toEqual({})
    await killed.stop()
  })

  it('takes rows of the day before away', async () => {
    await at().query({
      text: `insert into hookledger.processes (process_id, host, pid, roles, version, seen_at)
        values (gen_random_uuid(), 'gone', 1, '{work}', '0', now() - interval '2 days')`,
    })
    const one = createHeartbeat(at(), createSignals(), ['work'])
    one.start()
    await until(heard, (roles) => roles['work'] === 1)
    const rows = await at().query({
      text: `select 1 from hookledger.processes where host = 'gone'`,
    })
    expect(rows).toEqual([])
    await one.stop()
  })
})
