/**
 * What can go wrong between a person and the server while a page is open: no answer, an answer that is lost, somebody
 * who was quicker, a right that was taken away. Nothing is done twice, nothing that was typed is lost, and it is said.
 */
import { money } from 'hookledger'
import type { Locator } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Role } from '../../src/compose/console-options.ts'
import { fulfill, type Decision } from '../../src/workflow/decision.ts'
import { openBrowser, type ConsoleBrowser, type Seen } from '../support/browser.ts'
import { startApi, type TestApi } from '../support/console-api.ts'
import { createProbe, probe, probeWorkflow, type Probe } from '../support/probe.ts'
import { scripted } from '../support/scripted-destination.ts'

const crm = scripted()
const reason = 'ticket 4711: the customer wrote'
const operator = 'operator@example.com'
let bench: Probe
let served: ConsoleBrowser
let seen: Seen
let api: TestApi
let operation: string

beforeAll(async () => {
  const decide = (): Decision =>
    fulfill({
      to: 'paid',
      payment: { id: 'pay_1', money: money(4900, 'usd') },
      effects: [{ type: 'grant', send: [{ to: 'crm', body: { hello: 1 } }] }],
    } as never) as Decision
  bench = await createProbe({ workflows: [probeWorkflow({ decide })], destinations: { crm } })
  served = await openBrowser(bench.hookledger)
  api = await startApi(bench.hookledger, {
    identity: { actor: 'quicker@example.com', roles: ['operator'] },
  })
})
afterAll(async () => {
  await served.close()
  await bench.close()
})
beforeEach(async () => {
  crm.reset()
  await bench.reset()
  crm.next({ kind: 'refused', error: 'HTTP 422', status: 422, settlesEarlier: true })
  await bench.deliver(probe('pay', { id: 'evt_1', order: 'o1' }))
  await bench.work()
  const [row] = await bench.rows<{ id: string }>('select operation_id as id from outbox_operations')
  operation = row?.id ?? ''
})
afterEach(() => seen.close())

async function lookAs(as: Role, path: string): Promise<void> {
  seen = await served.look({ as })
  await seen.go(path)
}

const main = (): Promise<string> => seen.page.locator('main').innerText()
const acts = (): Promise<object[]> =>
  bench.rows('select act, actor from operator_acts order by act_id')
const buttons = (): Promise<string[]> => seen.page.locator('.page-actions button').allInnerTexts()

/** Opens the dialog of an act and fills it; answers its last button. */
async function fill(name: string, typed?: string): Promise<Locator> {
  await seen.page.getByRole('button', { name, exact: true }).click()
  const dialog = seen.page.getByRole('dialog')
  await dialog.getByLabel('Reason').fill(reason)
  if (typed !== undefined) await dialog.getByLabel(/to confirm/).fill(typed)
  return dialog.locator('button[type=submit]')
}

const alert = (): Promise<string> => seen.page.getByRole('dialog').getByRole('alert').innerText()

/** The next request of this kind is done, and its answer never arrives. */
async function loseAnswerOf(path: string): Promise<void> {
  await seen.page.route(
    `**/api${path}`,
    async (route) => {
      await route.fetch()
      await route.abort()
    },
    { times: 1 },
  )
}

describe('an act without an answer', () => {
  it('says so, keeps what was typed, and is done when it is pressed again', async () => {
    await lookAs('operator', `/operations/${operation}`)
    const verb = await fill('Discard', 'o1')
    await seen.context.setOffline(true)
    await verb.click()
    expect(await alert()).toMatch(/No answer.*HKL_CONSOLE_UNREACHABLE/s)
    expect(await acts()).toEqual([])
    await seen.context.setOffline(false)
    const dialog = seen.page.getByRole('dialog')
    expect(await dialog.getByLabel('Reason').inputValue()).toBe(reason)
    await verb.click()
    await seen.page.getByRole('status').getByText('Discarded').waitFor()
    expect(await acts()).toEqual([{ act: 'outbox discard', actor: operator }])
  })

  it.each([
    ['Retry', undefined, 'retry', 'outbox retry'],
    ['Discard', 'o1', 'discard', 'outbox discard'],
  ] as const)('%s: done all the same, it is not done again', async (name, typed, route, act) => {
    await lookAs('operator', `/operations/${operation}`)
    await loseAnswerOf(`/operations/*/${route}`)
    const verb = await fill(name, typed)
    await verb.click()
    expect(await alert()).toContain('No answer')
    await verb.click()
    await seen.settled()
    expect(await acts()).toEqual([{ act, actor: operator }])
    // while it is busy a dialog does not let itself be closed
    await expect
      .poll(async () => {
        await seen.page.keyboard.press('Escape')
        return seen.page.getByRole('dialog').count()
      })
      .toBe(0)
    expect(await main()).toContain(reason)
  })

  it('a grant is given once, and the second press leads to it', async () => {
    await lookAs('operator', '/grant?subject=user:grace')
    await seen.page.getByLabel('May use').fill('pro')
    await loseAnswerOf('/grants')
    const verb = await fill('Grant…', 'user:grace')
    await verb.click()
    expect(await alert()).toContain('No answer')
    await verb.click()
    await expect.poll(() => seen.page.url()).toContain('/orders/')
    await seen.settled()
    expect(await bench.rows(`select 1 from orders where subject = 'user:grace'`)).toHaveLength(1)
    expect(await acts()).toHaveLength(1)
  })

  it('a bulk act is planned once', async () => {
    await lookAs('operator', '/bulk')
    await loseAnswerOf('/bulk')
    const verb = await fill('Plan a bulk act')
    await seen.page.getByRole('dialog').getByRole('combobox').first().selectOption('discard')
    await verb.click()
    expect(await alert()).toContain('No answer')
    await verb.click()
    await seen.page.getByRole('dialog').waitFor({ state: 'detached' })
    expect(await bench.rows('select 1 from bulk_acts')).toHaveLength(1)
  })
})

describe('while a dialog is open', () => {
  it('somebody else was quicker: it is refused in place, and the page shows who', async () => {
    await lookAs('operator', `/operations/${operation}`)
    const verb = await fill('Retry')
    const discard = { reason: 'it is obsolete', confirm: 'o1' }
    await api.post(`/operations/${operation}/discard`, discard)
    await verb.click()
    expect(await alert()).toContain('It changed in the meantime')
    expect(await acts()).toEqual([{ act: 'outbox discard', actor: 'quicker@example.com' }])
    await seen.page.keyboard.press('Escape')
    await seen.settled()
    expect(await main()).toContain('quicker@example.com')
    expect(await buttons()).toEqual([])
  })

  it('the right to it was taken away: it is refused, and its buttons go', async () => {
    await lookAs('operator', `/operations/${operation}`)
    const verb = await fill('Discard', 'o1')
    await seen.become({ actor: operator, roles: ['viewer'] })
    await verb.click()
    expect(await alert()).toContain('You may not do this')
    await seen.page.keyboard.press('Escape')
    await seen.settled()
    expect(await buttons()).toEqual([])
    expect(await acts()).toEqual([])
  })

  it('the reader was signed out: nothing is done, and signed in they are where they were', async () => {
    await lookAs('operator', `/operations/${operation}`)
    const verb = await fill('Discard', 'o1')
    await seen.become(null)
    await verb.click()
    await seen.page.getByRole('heading', { name: 'Sign in' }).waitFor()
    expect(await seen.page.getByText('o1').count()).toBe(0)
    expect(await acts()).toEqual([])
    await seen.become('operator')
    await seen.page.getByRole('button', { name: 'I have signed in' }).click()
    await seen.page.getByRole('button', { name: 'Discard' }).waitFor()
    expect(seen.page.url()).toContain(`/operations/${operation}`)
  })

  it('somebody else signed in: the first press is refused, and nothing is done in either name', async () => {
    await lookAs('operator', `/operations/${operation}`)
    const verb = await fill('Discard', 'o1')
    await seen.become('admin')
    await verb.click()
    expect(await alert()).toContain('HKL_API_CROSS_SITE')
    expect(await acts()).toEqual([])
  })
})

describe('a page that cannot be read', () => {
  it('keeps what was read, says that it is old, and goes on by itself', async () => {
    await lookAs('viewer', '/orders')
    const often = seen.page.getByLabel('How often to read again').first()
    await often.selectOption({ label: 'Every 2 s' })
    await seen.context.setOffline(true)
    await seen.page.keyboard.press('r')
    const told = seen.page.locator('main [role=alert]')
    await told.waitFor()
    expect(await told.innerText()).toContain('The server does not answer')
    expect(await main()).toContain('o1')
    await seen.context.setOffline(false)
    await told.waitFor({ state: 'detached', timeout: 20_000 })
    expect(await main()).toContain('o1')
  })

  it('says so where something that stands between answers instead', async () => {
    seen = await served.look({ as: 'viewer' })
    await seen.page.route(/\/api\/orders(\?|$)/, (route) =>
      route.fulfill({ contentType: 'text/html', body: '<h1>Log in to the proxy</h1>' }),
    )
    await seen.go('/orders')
    expect(await seen.page.locator('main [role=alert]').innerText()).toContain('not its API')
    expect(await main()).not.toContain('Log in to the proxy')
  })

  it('offers to read again where the database was away', async () => {
    seen = await served.look({ as: 'viewer' })
    let away = true
    await seen.page.route('**/api/orders/o1', async (route) =>
      away
        ? route.fulfill({
            status: 500,
            json: { error: { code: 'HKL_DATABASE_UNAVAILABLE', message: 'Look at the database.' } },
          })
        : route.continue(),
    )
    await seen.go('/orders/o1')
    expect(await main()).toContain('Look at the database.')
    away = false
    await seen.page.getByRole('button', { name: 'Try again' }).click()
    await seen.page.getByText('What happened').waitFor()
    expect(await seen.page.locator('main [role=alert]').count()).toBe(0)
  })
})
