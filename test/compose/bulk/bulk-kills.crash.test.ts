/** Whatever runs a bulk act is killed between any two of its steps: no target is left out, and none is done twice. */
import { randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { planBulk, startBulk } from '../../../src/compose/bulk/bulk-life.ts'
import { runBulk } from '../../../src/compose/bulk/bulk-run.ts'
import { readBulk } from '../../../src/compose/bulk/bulk-views.ts'
import { PermanentError } from '../../../src/core/errors.ts'
import { partsOf } from '../../../src/hookledger.ts'
import { startScript } from '../../support/failpoint-process.ts'
import {
  createProbe,
  probe,
  probeWorkflow,
  type Probe,
  type ProbeHooks,
} from '../../support/probe.ts'

const script = fileURLToPath(new URL('../../support/bulk-driver.ts', import.meta.url))
const hooks: ProbeHooks = {}
const by = { reason: 'the price list was wrong', actor: 'ada' }
const targets = 12
let bench: Probe

beforeAll(async () => {
  bench = await createProbe({ workflows: [probeWorkflow(hooks)] })
})
afterAll(() => bench.close())
beforeEach(() => bench.reset())

async function startedReplay(): Promise<string> {
  hooks.decide = () => {
    throw new PermanentError('no such price')
  }
  await bench.deliver(
    ...Array.from({ length: targets }, (_, at) => probe('pay', { order: `order_${at}` })),
  )
  await bench.work()
  const filter = { states: ['dead'], types: [], source: null, from: null, to: null } as const
  const request = {
    bulkId: randomUUID(),
    work: { act: 'replay', filter, details: {} },
    needsApproval: () => false,
  } as const
  const { bulk_id: id, confirm } = await planBulk(bench.db, request, by)
  await startBulk(bench.db, id, { ...by, confirm })
  return id
}

/** Of every target: its answer exactly where its act is. */
async function inStep(): Promise<{ done: number; acts: number; ready: number }> {
  const [row] = await bench.rows<{ done: number; acts: number; ready: number }>(
    `select (select count(*)::int from bulk_items where state = 'done') as done,
       (select count(*)::int from operator_acts where act = 'replay') as acts,
       (select count(*)::int from inbox_ready) as ready`,
  )
  if (row === undefined) throw new Error('no row')
  return row
}

describe('a bulk act whose process is killed', () => {
  it.each([
    ['before the first target', 'B0:1:kill', 0],
    ['before a target', 'B1:4:kill', 3],
    ['inside the commit of a target', 'B2:4:kill', 3],
    ['after the commit of a target', 'B3:4:kill', 4],
    ['after the last target', 'B3:12:kill', 12],
  ])('%s is gone on with: nothing is lost and nothing repeated', async (_, plan, before) => {
    const id = await startedReplay()
    const driver = await startScript(script, { databaseUrl: bench.database.url }, plan)
    expect((await driver.exited).signal).toBe('SIGKILL')
    expect(await inStep()).toEqual({ done: before, acts: before, ready: before })
    expect((await readBulk(bench.db, id)).state).toBe('running')
    const parts = partsOf(bench.hookledger)
    while (await runBulk(parts));
    expect(await readBulk(bench.db, id)).toMatchObject({
      state: 'done',
      done: targets,
      unchanged: 0,
      failed: 0,
    })
    expect(await inStep()).toEqual({ done: targets, acts: targets, ready: targets })
  })

  it('is gone on with by another process that runs beside it all the while', async () => {
    const id = await startedReplay()
    const url = { databaseUrl: bench.database.url }
    const [one, two] = await Promise.all([
      startScript(script, url, 'B2:3:kill'),
      startScript(script, url),
    ])
    await Promise.all([one.exited, two.exited])
    const parts = partsOf(bench.hookledger)
    while (await runBulk(parts));
    expect(await readBulk(bench.db, id)).toMatchObject({ state: 'done', done: targets, failed: 0 })
    expect(await inStep()).toEqual({ done: targets, acts: targets, ready: targets })
  })

  it('outlives connections that break at each step of a target', async () => {
    const id = await startedReplay()
    const plan = 'B1:2:dbreset,B2:4:dbreset,B3:6:dbreset'
    const driver = await startScript(script, { databaseUrl: bench.database.url }, plan)
    expect((await driver.exited).code).toBe(0)
    expect(driver.faults).toHaveLength(3)
    expect(await readBulk(bench.db, id)).toMatchObject({ state: 'done', done: targets, failed: 0 })
    expect(await inStep()).toEqual({ done: targets, acts: targets, ready: targets })
  })
})
