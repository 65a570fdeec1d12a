import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { oncePool } from '../support/once-pool.ts'
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts'
import { post, runProcess, Spawned, type Ended } from './spawned-dev.ts'

const config = ['--config', join(import.meta.dirname, 'gather.config.ts')]
const asked: (string | undefined)[] = []
const running: Spawned[] = []
let isGone = false
let provider: Server
let database: TestDatabase
let env: Record<string, string>

beforeAll(async () => {
  provider = createServer((request, response) => {
    asked.push(request.url?.split('?')[0])
    const body = isGone
      ? { error: { type: 'invalid_request_error', code: 'resource_missing', message: 'none' } }
      : { id: 'sub_1', object: 'subscription', status: 'active' }
    response
      .writeHead(isGone ? 404 : 200, { 'content-type': 'application/json' })
      .end(JSON.stringify(body))
  })
  await new Promise<void>((resolve) => provider.listen(0, '127.0.0.1', resolve))
  database = await createTestDatabase()
  env = {
    DATABASE_URL: database.url,
    HOOKLEDGER_DATA_DIR: '/nonexistent/hookledger',
    GATHER_TEST_API_BASE: `http://127.0.0.1:${(provider.address() as AddressInfo).port}`,
    GATHER_TEST_KEY: 'sk_test_cli',
  }
})
afterEach(() => {
  for (const each of running.splice(0)) each.child.kill('SIGKILL')
})
afterAll(async () => {
  provider.close()
  await database.drop()
})

const hookledger = (...line: string[]): Promise<Ended> => runProcess([...line, ...config], env)

async function start(roles: string): Promise<{ process: Spawned; url: string }> {
  const process = new Spawned(['start', '--roles', roles, '--port', '0', ...config], env)
  running.push(process)
  const url = await process.until(() => /serves (\S+) /.exec(process.stderr)?.[1])
  return { process, url }
}

const changed = (id: string): object => ({
  id,
  object: 'event',
  type: 'customer.subscription.updated',
  created: 1_767_225_600,
  livemode: false,
  data: { object: { id: 'sub_1', object: 'subscription', status: 'past_due' } },
})

describe('hookledger start --roles gather', () => {
  it('refuses to start where Stripe is to be asked without a key, in one line', async () => {
    expect((await hookledger('migrate')).code).toBe(0)
    const { GATHER_TEST_KEY: _, ...keyless } = env
    for (const roles of ['gather', 'receive,work']) {
      const { code, stderr } = await runProcess(['start', '--roles', roles, ...config], keyless)
      expect(code).toBe(1)
      expect(stderr).toContain('workflow "team" asks the source "stripe"')
      expect(stderr).toContain('HKL_GATHER_NO_API')
      expect(stderr).not.toContain('    at ')
    }
  }, 120_000)

  it('asks what a worker elsewhere waits for, and knows an object that is deleted meanwhile', async () => {
    const worker = await start('receive,work')
    expect(await post(worker.url, changed('evt_1'))).toBe(200)
    await worker.process.until(async () =>
      (await hookledger('explain', 'sub_1')).stdout.includes('subscription sub_1 is to be looked'),
    )
    expect(asked).toEqual([])

    const gatherer = await start('gather')
    const told = (text: string): Promise<boolean> =>
      hookledger('explain', 'sub_1').then(({ stdout }) => stdout.includes(text))
    await gatherer.process.until(() => told('is active, which entitles'))
    expect(asked).toEqual(['/v1/subscriptions/sub_1'])

    isGone = true
    expect(await post(worker.url, changed('evt_2'))).toBe(200)
    await gatherer.process.until(() => told('is ended'))
    expect(asked).toHaveLength(2)
    expect((await hookledger('status')).stdout).toMatch(/gather/)
    expect((await hookledger('audit')).code).toBe(0)
    for (const { process } of [gatherer, worker]) {
      process.child.kill('SIGTERM')
      expect(await process.ended).toMatchObject({ code: 0, signal: null })
    }
    const left = await oncePool(database.url, (pool) =>
      pool.query('select 1 from hookledger.fetches'),
    )
    expect(left.rows).toEqual([])
  }, 120_000)
})
