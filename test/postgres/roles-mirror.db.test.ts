/** What looks at the provider beside the worker's own loop, with separate log-ins: the rights of a worker suffice. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createHookledger, type Hookledger } from 'hookledger'
import { createRedecider } from '../../src/compose/redecide.ts'
import { partsOf } from '../../src/hookledger.ts'
import type { RunReport } from '../../src/reconciliation/pass-report.ts'
import { skip } from '../../src/workflow/decision.ts'
import {
  followingWorkflow,
  planRecords,
  planSource,
  PlanProvider,
  recordOf,
} from '../support/followed-plans.ts'
import { deliverTo, probe, probeOptions, workOff } from '../support/probe.ts'
import { createRoleBench, type RoleBench } from './role-logins.ts'

const provider = new PlanProvider()
const records = planRecords()
let bench: RoleBench
let worker: Hookledger

beforeAll(async () => {
  bench = await createRoleBench()
  const options = {
    ...probeOptions([followingWorkflow(provider)]),
    sources: { probe: planSource(provider, records) },
    gather: { callsPerSecond: 1000, callsPerSecondPerAccount: 1000 },
    reconcile: { lagMs: 0, callsPerSecond: 1000 },
    schema: bench.schemaName,
  }
  worker = createHookledger({ ...options, database: bench.as.worker })
  const receiver = createHookledger({ ...options, database: bench.as.receiver })
  provider.present.set('p1', { id: 'p1', order: 'o1', status: 'active' })
  provider.hooks.decide = () => skip('a mistake of the app')
  await deliverTo(receiver, [
    probe('plan.changed', { id: 'evt_1', plan: { id: 'p1', order: 'o1' } }),
  ])
  await workOff(worker)
  delete provider.hooks.decide
  await receiver.stop()
})
afterAll(async () => {
  await worker.stop()
  await bench.drop()
})

async function pass(): Promise<RunReport | undefined> {
  const reconciler = await partsOf(worker).reconciler({ decides: true })
  return (await reconciler.pass({ how: 'manual', actor: 'test' })).runs[0]
}

describe('the worker', () => {
  it('decides anew from a new answer', async () => {
    const parts = partsOf(worker)
    const by = { reason: 'mended', actor: 'ada' }
    const redecider = createRedecider((await parts.contexts()).work, parts.signals, (keys, ms) =>
      parts.gatherNow(keys, ms),
    )
    const planned = await redecider.plan({ id: 'evt_1' }, by)
    if (planned.kind !== 'planned') throw new Error('it was decided anew already')
    expect(await redecider.apply(planned, by)).toMatchObject({ kind: 'redecided' })
  })

  it('looks because of a record, and again at what was not looked at for long', async () => {
    const plan = { id: 'p2', order: 'o2', status: 'active' }
    provider.present.set('p2', plan)
    records.held.push(recordOf('plan', plan, 60_000))
    await bench.admin.query(`update installation set created_at = now() - interval '1 day'`)
    await bench.admin.query(
      `update looked_at set answered_at = now() - interval '2 days' where object_id = 'p1'`,
    )
    provider.present.set('p1', { id: 'p1', order: 'o1', status: 'late' })
    expect(await pass()).toMatchObject({ state: 'complete', error: null })
    const { rows } = await bench.admin.query(`select order_id, state from orders order by 1`)
    expect(rows).toEqual([
      { order_id: 'o1', state: 'late' },
      { order_id: 'o2', state: 'active' },
    ])
  })

  it('confirms for the success page', async () => {
    const plan = { id: 'p3', order: 'o3', status: 'active' }
    provider.present.set('p3', plan)
    records.held.push(recordOf('plan', plan, 60_000))
    const reference = { kind: 'plan', id: 'p3' }
    expect(
      await worker.confirm({ source: 'probe', reference, order: 'o3', subject: 'org:o3' }),
    ).toMatchObject({ outcome: 'decided', state: 'active' })
  })
})
