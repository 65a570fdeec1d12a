import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { join } from 'node:path'
import { serveStripeDouble, type ServedDouble } from '../../src/testing/stripe-double/serve.ts'
import {
  createStripeDouble,
  type StripeDouble,
} from '../../src/testing/stripe-double/stripe-double.ts'
import { oncePool } from '../support/once-pool.ts'
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts'
import { runProcess, Spawned, type Ended } from './spawned-dev.ts'

const running: Spawned[] = []
const config = ['--config', join(import.meta.dirname, 'reconcile.config.ts')]
let double: StripeDouble
let served: ServedDouble
let database: TestDatabase
let env: Record<string, string>

beforeAll(async () => {
  const clock = Date.now() - 60_000
  double = createStripeDouble({
    signingSecret: 'whsec_test_0123456789abcdef',
    seed: 'start',
    clock: () => clock,
  })
  served = await serveStripeDouble(double)
  database = await createTestDatabase()
  env = {
    DATABASE_URL: database.url,
    HOOKLEDGER_DATA_DIR: '/nonexistent/hookledger',
    RECONCILE_TEST_API_BASE: served.url,
  }
})

afterEach(() => {
  for (const each of running.splice(0)) each.child.kill('SIGKILL')
})

afterAll(async () => {
  await served.close()
  await database.drop()
})

const hookledger = (...line: string[]): Promise<Ended> => runProcess([...line, ...config], env)

async function start(roles: string): Promise<{ process: Spawned; url: string }> {
  const process = new Spawned(['start', '--roles', roles, '--port', '0', ...config], env)
  running.push(process)
  const url = await process.until(() => /serves (\S+) /.exec(process.stderr)?.[1])
  return { process, url }
}

describe('hookledger start --roles reconcile', () => {
  it('brings in what was lost, for a worker elsewhere, and ends when it is told to', async () => {
    expect((await hookledger('migrate')).code).toBe(0)
    await oncePool(database.url, (pool) =>
      pool.query(`update hookledger.installation set created_at = now() - interval '1 hour'`),
    )
    double.hold(() => {
      double.completeSession(double.createSession({ clientReferenceId: '1001' }).id)
    })
    const worker = await start('work')
    const reconciler = await start('reconcile')
    await worker.process.until(async () =>
      (await hookledger('explain', '1001')).stdout.includes('is paid, which entitles'),
    )
    await reconciler.process.until(async () => {
      const metrics = await (await fetch(`${reconciler.url}/metrics`)).text()
      return /hookledger_reconciliation_runs_total\{source="stripe",state="complete"\} 1/.test(
        metrics,
      )
    })
    expect((await hookledger('audit')).code).toBe(0)
    for (const { process } of [reconciler, worker]) {
      process.child.kill('SIGTERM')
      expect(await process.ended).toMatchObject({ code: 0, signal: null })
    }
  }, 120_000)

  it('refuses a role that there is not, and names those that there are', async () => {
    const { code, stderr } = await hookledger('start', '--roles', 'reconcil')
    expect(code).toBe(2)
    expect(stderr).toContain('did you mean reconcile?')
  })
})
