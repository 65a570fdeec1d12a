import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts'
import { runProcess, Spawned, type Ended } from './spawned-dev.ts'

const keys: (string | undefined)[] = []
const running: Spawned[] = []
let mail: Server
let database: TestDatabase
let env: Record<string, string>

beforeAll(async () => {
  mail = createServer((request, response) => {
    keys.push(request.headers['idempotency-key'] as string | undefined)
    request.resume().on('end', () => response.writeHead(202).end('{"id":"email_1"}'))
  })
  await new Promise<void>((resolve) => mail.listen(0, '127.0.0.1', resolve))
  database = await createTestDatabase()
  env = {
    DATABASE_URL: database.url,
    HOOKLEDGER_DATA_DIR: '/nonexistent/hookledger',
    SHOP_EMAIL_URL: `http://127.0.0.1:${(mail.address() as AddressInfo).port}/emails`,
  }
})

afterEach(() => {
  for (const each of running.splice(0)) each.child.kill('SIGKILL')
})

afterAll(async () => {
  mail.close()
  await database.drop()
})

const hookledger = (...line: string[]): Promise<Ended> => runProcess(line, env)

async function start(roles: string): Promise<{ process: Spawned; url: string }> {
  const process = new Spawned(['start', '--roles', roles], env)
  running.push(process)
  const url = await process.until(() => /serves (\S+) /.exec(process.stderr)?.[1])
  return { process, url }
}

describe('hookledger start --roles', () => {
  it('sends nothing where it only works, and sends what is due where it dispatches', async () => {
    expect((await hookledger('migrate')).code).toBe(0)
    const worker = await start('receive,work')
    const event = ['send', 'stripe', 'checkout.session.completed', '--order', '1']
    expect((await hookledger(...event, '--url', `${worker.url}/webhooks/stripe`)).code).toBe(0)
    await worker.process.until(async () =>
      (await hookledger('explain', '1')).stdout.includes('license to email is pending'),
    )
    expect(keys).toEqual([])

    const dispatcher = await start('dispatch')
    await dispatcher.process.until(async () =>
      /license to email +sent/.test((await hookledger('explain', '1')).stdout),
    )
    const [operation] = (await hookledger('outbox', 'list', '--state', 'sent', '--json')).stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { operation_id: string })
    expect(keys).toEqual([operation?.operation_id])
    expect((await fetch(`${dispatcher.url}/webhooks/stripe`, { method: 'POST' })).status).toBe(404)
    // what the worker process did is counted by the one that serves
    const metrics = await (await fetch(`${dispatcher.url}/metrics`)).text()
    expect(metrics).toContain(
      'hookledger_outbox_deliveries_total{destination="email",outcome="sent"} 1',
    )
    expect((await hookledger('audit')).code).toBe(0)
    for (const { process } of [worker, dispatcher]) {
      process.child.kill('SIGTERM')
      expect(await process.ended).toMatchObject({ code: 0, signal: null })
    }
  }, 120_000)
})
