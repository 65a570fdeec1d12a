/**
 * One night, told in order: the worker is gone while the endpoint answers 200; somebody sees it, starts a worker,
 * watches the backlog go, finds a contradiction, plans a repair, applies it, sees it verified; and the audit log
 * tells it afterwards. Every process is a real one, and the page is the one that they serve.
 */
import { userInfo } from 'node:os'
import { join } from 'node:path'
import type Stripe from 'stripe'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Browser, Page } from 'playwright-core'
import { signStripe } from '../../src/testing/sign.ts'
import { serveStripeDouble, type ServedDouble } from '../../src/testing/stripe-double/serve.ts'
import {
  createStripeDouble,
  type StripeDouble,
} from '../../src/testing/stripe-double/stripe-double.ts'
import { runProcess, Spawned } from '../cli/spawned-dev.ts'
import { launchBrowser } from '../support/browser.ts'
import { builtConsole } from '../support/built-console.ts'
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts'

const secret = 'whsec_test_0123456789abcdef'
const config = ['--config', join(import.meta.dirname, '../cli/reconcile.config.ts')]
const reason = 'INC-7: somebody changed order 1003 by hand'
const operator = userInfo().username
const running: Spawned[] = []
let double: StripeDouble
let provider: ServedDouble
let database: TestDatabase
let env: Record<string, string>
let browser: Browser
let page: Page
let url: string
let worker: Spawned

beforeAll(async () => {
  await builtConsole()
  const clock = Date.now() - 60_000
  double = createStripeDouble({ signingSecret: secret, seed: 'incident', clock: () => clock })
  provider = await serveStripeDouble(double)
  database = await createTestDatabase()
  env = {
    DATABASE_URL: database.url,
    HOOKLEDGER_DATA_DIR: '/nonexistent/hookledger',
    RECONCILE_TEST_API_BASE: provider.url,
    USER: operator,
  }
  expect((await runProcess(['migrate', ...config], env)).code).toBe(0)
  url = (await start('receive,console')).url
  worker = (await start('work,dispatch')).process
  browser = await launchBrowser()
  page = await browser.newPage()
  page.setDefaultTimeout(20_000)
}, 120_000)
afterAll(async () => {
  for (const each of running) each.child.kill('SIGKILL')
  await browser.close()
  await provider.close()
  await database.drop()
})

async function start(roles: string): Promise<{ readonly process: Spawned; readonly url: string }> {
  const process = new Spawned(['start', '--roles', roles, '--port', '0', ...config], env)
  running.push(process)
  return { process, url: await process.until(() => /serves (\S+) /.exec(process.stderr)?.[1]) }
}

/** Somebody pays for an order, and the provider tells of it; the status that it is answered. */
async function pays(order: string): Promise<number> {
  const { events } = double.hold(() =>
    double.completeSession(double.createSession({ clientReferenceId: order }).id, {
      email: `${order}@example.com`,
    }),
  )
  const statuses = await Promise.all(events.map(deliver))
  return Math.max(...statuses)
}

async function deliver(event: Stripe.Event): Promise<number> {
  const body = JSON.stringify(event)
  const response = await fetch(`${url}/webhooks/stripe`, {
    method: 'POST',
    headers: signStripe(body, secret),
    body,
  })
  return response.status
}

const rows = async (text: string): Promise<object[]> => (await database.pool().query(text)).rows
const verdict = (): Promise<string> => page.locator('.verdict').innerText()
const open = async (path: string): Promise<void> => {
  await page.goto(`${url}/console${path}`)
  await page.locator('h1').waitFor()
}

describe('one night', () => {
  it('begins well: everybody who paid is served, and the first page says so', async () => {
    for (const order of ['1001', '1002', '1003']) expect(await pays(order)).toBe(200)
    await open('/')
    await expect.poll(verdict, { timeout: 20_000 }).toContain('Every paid customer is served.')
  })

  it('the worker dies, the endpoint goes on to answer 200, and the first page says what to do', async () => {
    worker.child.kill('SIGKILL')
    await worker.ended
    for (const order of ['2001', '2002', '2003', '2004']) expect(await pays(order)).toBe(200)
    // an hour in which nobody looked: what came is that old, and the worker was last heard of before it
    await rows(`begin;
      set local session_replication_role = replica;
      update hookledger.inbox_events set received_at = received_at - interval '1 hour'
        where event_key in (select event_key from hookledger.inbox_ready);
      update hookledger.processes set seen_at = seen_at - interval '1 hour' where roles && '{work}';
      update hookledger.ledger_decisions set decided_at = decided_at - interval '1 hour';
      commit`)
    await expect.poll(verdict, { timeout: 20_000 }).toContain('Not every paid customer is served')
    await expect.poll(verdict).toContain('start a worker')
    expect(await verdict()).toContain('hookledger start --roles work')
    const { stdout } = await runProcess(['status', ...config], env)
    expect(stdout).toMatch(/1 h|60 min|1h/)
    await open('/orders/2001')
    expect(await page.locator('main').innerText()).not.toContain('entitles')
  })

  it('a worker is started, and the page shows the backlog go without being touched', async () => {
    await open('/')
    worker = (await start('work,dispatch')).process
    await expect.poll(verdict, { timeout: 30_000 }).toContain('Every paid customer is served.')
    expect(await rows('select 1 from hookledger.inbox_ready')).toEqual([])
    expect(await rows(`select 1 from hookledger.orders where state = 'paid'`)).toHaveLength(7)
  })

  it('an order was changed behind the ledger’s back, and reconciliation finds it', async () => {
    await rows(`update hookledger.orders set state = 'refunded' where order_id = '1003'`)
    const { code, stdout } = await runProcess(['reconcile', ...config], env)
    expect([code, stdout]).toEqual([0, expect.stringContaining('findings: 1 opened')])
    await expect.poll(verdict, { timeout: 20_000 }).toMatch(/finding|contradict|tampered/i)
    expect(await verdict()).toContain('order 1003')
    await page.getByRole('link', { name: /contradiction/ }).click()
    await page.getByRole('button', { name: 'Plan a repair' }).waitFor()
    expect(await page.locator('main').innerText()).toContain('1003')
  })

  it('a repair is planned as a difference, applied with a reason, and verified', async () => {
    await page.getByRole('button', { name: 'Plan a repair' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('order 1003 goes from refunded to paid').waitFor()
    expect(await rows(`select state from hookledger.orders where order_id = '1003'`)).toEqual([
      { state: 'refunded' },
    ])
    await dialog.getByLabel('Reason').fill(reason)
    await dialog.getByLabel(/to confirm/).fill('1003')
    await dialog.locator('button[type=submit]').click()
    await dialog.waitFor({ state: 'detached' })
    expect(await rows(`select state from hookledger.orders where order_id = '1003'`)).toEqual([
      { state: 'paid' },
    ])
    expect((await runProcess(['reconcile', ...config], env)).code).toBe(0)
    await expect
      .poll(async () => page.locator('main').innerText(), { timeout: 20_000 })
      .toMatch(/Closed/)
    expect(
      await rows('select 1 from hookledger.repairs where verified_at is not null'),
    ).toHaveLength(1)
  })

  it('in the morning the audit log tells it, by whom and why, and every promise holds', async () => {
    await open('/audit-log')
    await expect
      .poll(() => page.locator('main').innerText())
      .toEqual(expect.stringContaining(reason))
    expect(await page.locator('main').innerText()).toContain(operator)
    await open('/orders/1003')
    await expect
      .poll(() => page.locator('main').innerText())
      .toEqual(expect.stringContaining(reason))
    await open('/promises')
    await page.getByRole('button', { name: 'Check now' }).click()
    await page.getByText('all hold', { exact: true }).waitFor()
    await open('/')
    await expect.poll(verdict, { timeout: 20_000 }).toContain('Every paid customer is served.')
    expect((await runProcess(['audit', ...config], env)).code).toBe(0)
  })
})
