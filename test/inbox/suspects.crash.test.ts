import { expect, it } from 'vitest'
import { adoptDeadBatches } from '../../src/inbox/sweep.ts'
import { partsOf } from '../../src/hookledger.ts'
import { playDeadly } from '../support/deadly-events.ts'
import { startDriver } from '../support/failpoint-process.ts'
import { createProbe, probe, probeWorkflow, until, workOff } from '../support/probe.ts'

it('an event that exits the process is dead after three lone starts, and all others flow', async () => {
  await playDeadly({ deadly: 'exit', nodeOptions: [], ending: '3' })
})

it('the events of a worker that was killed run alone, each once, under the next one', async () => {
  const bench = await createProbe({ workflows: [probeWorkflow()] })
  await bench.deliver(
    ...Array.from({ length: 12 }, (_, at) => probe('pay', { order: `good-${at}` })),
  )
  const driver = await startDriver(
    { url: bench.database.url, app: 'probe', works: true, loops: 1 },
    'W5:1:kill',
  )
  await driver.exited
  expect(driver.faults).toEqual(['W5 kill'])
  await until(
    () =>
      bench.rows(
        `select 1 from inbox_batches where started_at < clock_timestamp() - interval '300 milliseconds'`,
      ),
    (rows) => rows.length === 1,
  )
  const { sweep } = await partsOf(bench.hookledger).contexts()
  expect(await adoptDeadBatches(sweep)).toBe(1)
  expect(await bench.rows(`select count(*)::int as n from inbox_suspects`)).toEqual([{ n: 12 }])
  await workOff(bench.hookledger)
  expect(await bench.rows(`select count(*)::int as n from fulfillment_effects`)).toEqual([
    { n: 12 },
  ])
  expect(
    await bench.rows(`select 1 from inbox_suspects union all select 1 from inbox_batches`),
  ).toEqual([])
  await bench.close()
})
