/** `hookledger start` with the console: nobody serves it to strangers by mistake, and this machine has it at once. */
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts'
import { runProcess, Spawned } from './spawned-dev.ts'

const config = ['--config', join(import.meta.dirname, 'poison.config.ts')]
const running: Spawned[] = []
let database: TestDatabase
let env: Record<string, string>

beforeAll(async () => {
  database = await createTestDatabase()
  env = { DATABASE_URL: database.url, HOOKLEDGER_DATA_DIR: '/nonexistent/hookledger' }
  expect((await runProcess(['migrate', ...config], env)).code).toBe(0)
})
afterEach(() => {
  for (const each of running.splice(0)) each.child.kill('SIGKILL')
})
afterAll(() => database.drop())

describe('hookledger start', () => {
  it.each([
    ['0.0.0.0', ['--roles', 'receive,console']],
    ['::', ['--roles', 'console']],
    ['0.0.0.0', []],
  ])('on %s does not start with a console that is open to anybody (%j)', async (host, roles) => {
    const line = ['start', ...roles, '--host', host, '--port', '0', ...config]
    const { code, stdout, stderr } = await runProcess(line, env)
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr.trimEnd()).toMatch(
      /^hookledger: the console would be open to anybody: [^\n]*console\.signIn[^\n]*--roles \(HKL_CONSOLE_OPEN\)$/,
    )
  })

  it('on 127.0.0.1 serves it to this machine, and says where', async () => {
    const line = ['start', '--roles', 'console', '--port', '0', ...config]
    const started = new Spawned(line, { ...env, USER: 'ada' })
    running.push(started)
    const page = await started.until(() => /console at (\S+)/.exec(started.stderr)?.[1])
    expect((await fetch(page)).headers.get('content-type')).toContain('text/html')
    const session = await fetch(new URL('/api/session', page))
    expect(await session.json()).toMatchObject({ door: 'loopback', roles: ['admin'] })
    expect((await fetch(new URL('/api/overview', page))).status).toBe(200)
    // it receives nothing: that is not its role
    const posted = await fetch(new URL('/webhooks/stripe', page), { method: 'POST', body: '{}' })
    expect(posted.status).toBe(404)
  })

  it('without the role has no console', async () => {
    const started = new Spawned(['start', '--roles', 'receive', '--port', '0', ...config], env)
    running.push(started)
    const url = await started.until(() => /serves (\S+) /.exec(started.stderr)?.[1])
    for (const path of ['/console', '/api/session'])
      expect((await fetch(url + path)).status).toBe(404)
  })
})
