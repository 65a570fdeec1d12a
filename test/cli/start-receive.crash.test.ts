import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { oncePool } from '../support/once-pool.ts'
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts'
import { post, runProcess, Spawned } from './spawned-dev.ts'

const config = ['--config', join(import.meta.dirname, 'gather.config.ts')]
const running: Spawned[] = []
let database: TestDatabase
let env: Record<string, string>

beforeAll(async () => {
  database = await createTestDatabase()
  env = {
    DATABASE_URL: database.url,
    HOOKLEDGER_DATA_DIR: '/nonexistent/hookledger',
    GATHER_TEST_API_BASE: 'http://127.0.0.1:9',
    GATHER_TEST_KEY: 'sk_test_cli',
  }
})
afterEach(() => {
  for (const each of running.splice(0)) each.child.kill('SIGKILL')
})
afterAll(() => database.drop())

async function start(roles: string): Promise<string> {
  const started = new Spawned(['start', '--roles', roles, '--port', '0', ...config], env)
  running.push(started)
  return started.until(() => /serves (\S+) /.exec(started.stderr)?.[1])
}

async function versions(): Promise<number> {
  const [row] = await oncePool(database.url, async (pool) => {
    const found = await pool.query<{ n: number }>(
      'select count(*)::int as n from hookledger.workflow_versions',
    )
    return found.rows
  })
  return row?.n ?? 0
}

describe('hookledger start --roles receive', () => {
  it('registers no version: who decides nothing makes nobody the older one', async () => {
    expect((await runProcess(['migrate', ...config], env)).code).toBe(0)
    const receiver = await start('receive')
    const event = { id: 'evt_1', object: 'event', type: 'other', created: 1, livemode: false }
    expect(await post(receiver, { ...event, data: { object: {} } })).toBe(200)
    expect(await versions()).toBe(0)
    await start('receive,work')
    expect(await versions()).toBeGreaterThan(0)
  }, 120_000)
})
