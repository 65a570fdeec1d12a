/** Passes as the worker's own log-in, which may do what they need and nothing more. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createHookledger, stripe, type Hookledger } from 'hookledger'
import { partsOf } from '../../src/hookledger.ts'
import { probe, probeSecret, probeWorkflow } from '../support/probe.ts'
import { listed, scriptedRecords } from '../support/scripted-records.ts'
import { createRoleBench, refusal, type RoleBench } from './role-logins.ts'

let bench: RoleBench
let worker: Hookledger
const records = scriptedRecords()

beforeAll(async () => {
  bench = await createRoleBench()
  await bench.admin.query(`update installation set created_at = now() - interval '1 day'`)
  const source = stripe({ account: 'acct_1', environment: 'test', signingSecrets: [probeSecret] })
  worker = createHookledger({
    environment: 'test',
    sources: { probe: Object.freeze({ ...source, records }) },
    workflows: [probeWorkflow()],
    reconcile: { lagMs: 0, callsPerSecond: 1000, everyMs: 100 },
    schema: bench.schemaName,
    database: bench.as.worker,
  })
  await partsOf(worker).register()
})
afterAll(async () => {
  await worker.stop()
  await bench.drop()
})

describe('a pass as the worker', () => {
  it('puts in, records, compares and goes on with what it may', async () => {
    records.held.push(listed(probe('note', { id: 'evt_1', order: '1' }), 60_000))
    const reconciler = await partsOf(worker).reconciler({ decides: true })
    const { runs } = await reconciler.pass({ how: 'manual', actor: 'test' })
    expect(runs).toMatchObject([
      { state: 'complete', error: null, injected: 1, opened: 1, closed: 1 },
    ])
    const again = await reconciler.pass({ how: 'deep', actor: 'test' })
    expect(again.complete).toBe(true)
  })

  it('runs on a schedule, and drops runs that are older than anybody asks', async () => {
    await bench.admin.query(
      `update reconciliation_runs set started_at = now() - interval '100 days' where how = 'deep';
       update reconciliation_checkpoints set run_id = null`,
    )
    const reconciler = await partsOf(worker).reconciler()
    reconciler.start()
    try {
      await expect
        .poll(
          async () =>
            (
              await bench.admin.query(
                `select how, state from reconciliation_runs where actor like 'reconciler:%' order by started_at limit 1`,
              )
            ).rows,
          { timeout: 10_000 },
        )
        .toEqual([{ how: 'deep', state: 'complete' }])
    } finally {
      await reconciler.stop(5000)
    }
    const { rows } = await bench.admin.query(
      `select count(*)::int as old from reconciliation_runs where started_at < now() - interval '90 days'`,
    )
    expect(rows).toEqual([{ old: 0 }])
  })

  it('may not change who ran a pass, move a checkpoint to another kind, or undo a repair', async () => {
    const refused = await Promise.all(
      [
        `update reconciliation_runs set actor = 'somebody else'`,
        `update reconciliation_checkpoints set kind = 'other'`,
        `delete from reconciliation_checkpoints`,
        `delete from repairs`,
        `update repairs set reason = 'another'`,
        `delete from findings`,
      ].map((text) => refusal(bench.as.worker, text)),
    )
    expect([...new Set(refused)]).toEqual(['42501'])
    const receiver = await refusal(bench.as.receiver, `select from reconciliation_runs`)
    expect(receiver).toBe('42501')
  })
})
