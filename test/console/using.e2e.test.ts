import { readFile } from 'node:fs/promises'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { openBrowser, type ConsoleBrowser, type Seen } from '../support/browser.ts'
import { createConsoleHistory, type ConsoleHistory } from '../support/console-history.ts'
import { createShop, type Shop } from '../support/shop.ts'

const many = 130
let history: ConsoleHistory
let served: ConsoleBrowser
let seen: Seen

beforeAll(async () => {
  history = await createConsoleHistory()
  await history.fixture.sql(
    `insert into hookledger.orders (order_id, workflow, state, provider_account, source_id, opened_at)
     select 'many-' || lpad(n::text, 3, '0'), 'license', 'pending', 'acct_1', 1, now() - n * interval '1 minute'
     from generate_series(1, ${many}) n`,
  )
  const event = await history.fixture.event({ id: 'evt_formula', type: '=1+1' })
  await history.fixture.decide({
    event,
    kind: 'fulfilled',
    order: '=cmd()',
    to: 'paid',
    from: 'pending',
    reason: '+1',
  })
  served = await openBrowser(history.hookledger)
})
afterAll(async () => {
  await served.close()
  await history.close()
})
beforeEach(async () => {
  seen = await served.look()
})
afterEach(() => seen.close())

const main = (): Promise<string> => seen.page.locator('main').innerText()
const rows = (): Promise<string[]> => seen.page.locator('tbody tr td:first-child').allInnerTexts()
const query = (): string => new URL(seen.page.url()).search

describe('a list', () => {
  it('holds its filters in the address: reloaded, sent to somebody, and taken back by the back button', async () => {
    const { page } = seen
    await seen.go('/orders')
    await page.getByLabel('State').fill('pending')
    await page.keyboard.press('Enter')
    await expect.poll(query).toContain('state=pending')
    await seen.settled()
    expect(await main()).not.toContain('refunded')
    await page.reload()
    await seen.settled()
    expect(await page.getByLabel('State').inputValue()).toBe('pending')
    const shown = await rows()
    const other = await served.look()
    await other.page.goto(page.url())
    await other.settled()
    expect(await other.page.locator('tbody tr td:first-child').allInnerTexts()).toEqual(shown)
    await other.close()
    await page.goBack()
    await seen.settled()
    expect(await page.getByLabel('State').inputValue()).toBe('')
  })

  it('goes on page by page and back again, and meets every row once', async () => {
    const { page } = seen
    await seen.go('/orders?state=pending')
    const met: string[] = []
    const first = await rows()
    for (;;) {
      met.push(...(await rows()))
      const next = page.getByRole('button', { name: 'Next' })
      if ((await next.count()) === 0 || (await next.isDisabled())) break
      await next.click()
      await seen.settled()
    }
    const own = met.filter((each) => each.includes('many-'))
    expect(new Set(own).size).toBe(own.length)
    expect(own).toHaveLength(many)
    await page.getByRole('button', { name: 'Previous' }).click()
    await seen.settled()
    await page.getByRole('button', { name: 'First' }).click()
    await seen.settled()
    expect(await rows()).toEqual(first)
  })

  it('is exported as it is filtered, with nothing that a spreadsheet would run', async () => {
    await seen.go('/orders?text=%3Dcmd()')
    const [download] = await Promise.all([
      seen.page.waitForEvent('download'),
      seen.page.getByRole('link', { name: /csv/i }).click(),
    ])
    const text = await readFile(await download.path(), 'utf8')
    expect(download.suggestedFilename()).toMatch(/\.csv$/)
    expect(text).toContain(`'=cmd()`)
    expect(text).not.toContain('many-001')
  })

  it('says what would be there where there is nothing, and how to get there', async () => {
    await seen.go('/orders?state=nosuchstate')
    await seen.page.getByRole('button', { name: /clear/i }).first().click()
    await seen.settled()
    expect((await rows()).length).toBeGreaterThan(10)
  })
})

describe('refreshing', () => {
  it('goes on while the page is looked at, stops by hand, and stops while it is hidden', async () => {
    const { page } = seen
    let asked = 0
    page.on('request', (request) => {
      if (request.url().includes('/api/orders')) asked += 1
    })
    await seen.go('/orders')
    await page.getByLabel('How often to read again').first().selectOption({ label: 'Every 2 s' })
    const before = asked
    await expect.poll(() => asked, { timeout: 8000 }).toBeGreaterThan(before + 1)
    await page.getByLabel('How often to read again').first().selectOption({ label: 'Paused' })
    await seen.settled()
    const paused = asked
    await page.waitForTimeout(2600)
    expect(asked).toBe(paused)
    // the key reads again at once, also while it is paused
    await page.keyboard.press('r')
    await expect.poll(() => asked).toBeGreaterThan(paused)

    await page.getByLabel('How often to read again').first().selectOption({ label: 'Every 2 s' })
    await page.evaluate(`
      Object.defineProperty(document, 'visibilityState', { get: () => 'hidden' });
      Object.defineProperty(document, 'hidden', { get: () => true });
      document.dispatchEvent(new Event('visibilitychange'))`)
    await seen.settled()
    const hidden = asked
    await page.waitForTimeout(4500)
    expect(asked).toBeLessThanOrEqual(hidden + 1)
  })
})

describe('the keyboard', () => {
  it('searches, goes through rows, opens one, and tells what it can', async () => {
    const { page } = seen
    await seen.go('/orders')
    await page.keyboard.press('/')
    await page.keyboard.type('1001')
    await page.keyboard.press('Enter')
    await expect.poll(() => new URL(page.url()).pathname).toBe('/console/orders/1001')
    await seen.go('/orders')
    await page.keyboard.press('j')
    await page.keyboard.press('j')
    await page.keyboard.press('k')
    await page.keyboard.press('Enter')
    await expect.poll(() => new URL(page.url()).pathname).toMatch(/\/console\/orders\/.+/)
    await page.keyboard.press('?')
    expect(await page.getByRole('dialog').innerText()).toContain('Search')
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await page.keyboard.press('t')
    await expect.poll(() => page.locator('html').getAttribute('data-theme')).toBe('light')
  })

  it('reaches every act: a dialog takes the focus, keeps it, and gives it back', async () => {
    const { page } = seen
    await seen.go(`/findings/${history.finding}`)
    const assign = page.getByRole('button', { name: 'Assign' })
    await assign.focus()
    await page.keyboard.press('Enter')
    const inside = (): Promise<boolean> =>
      page.evaluate<boolean>(
        `document.activeElement === document.body || document.querySelector('dialog').contains(document.activeElement)`,
      )
    for (let tab = 0; tab < 8; tab += 1) {
      expect(await inside()).toBe(true)
      await page.keyboard.press('Tab')
    }
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    expect(await page.locator(':focus').innerText()).toContain('Assign')
  })
})

describe('what is looked for', () => {
  it.each([
    ['1001', '/orders/1001'],
    ['pi_1', '/orders/1001'],
    ['evt_paid', '/events/stripe%3Aacct_1%3Atest/evt_paid'],
    ['email:ada@example.com', '/subjects/email%3Aada%40example.com'],
  ])('%s leads straight to its page', async (text, path) => {
    await seen.go(`/search?q=${encodeURIComponent(text)}`)
    await expect.poll(() => new URL(seen.page.url()).pathname).toBe(`/console${path}`)
  })
})

describe('copying', () => {
  it('puts the exact id into the clipboard', async () => {
    await seen.go('/orders/1001')
    await seen.page.getByRole('button', { name: 'Copy order id' }).first().click()
    expect(await seen.page.evaluate<string>('navigator.clipboard.readText()')).toBe('1001')
  })
})

describe('an empty installation', () => {
  let shop: Shop
  let empty: ConsoleBrowser
  beforeAll(async () => {
    shop = await createShop()
    empty = await openBrowser(shop.hookledger, { prefix: '/internal/ops' })
  })
  afterAll(async () => {
    await empty.close()
    await shop.close()
  })

  it('teaches on each of its pages what will stand there, below any path of an app', async () => {
    const first = await empty.look()
    for (const path of [
      '/inbox',
      '/inbox/deliveries',
      '/inbox/rejections',
      '/orders',
      '/subjects',
      '/ledger',
      '/outbox',
      '/reconciliation',
      '/findings',
      '/bulk',
      '/audit-log',
      '/sessions',
    ]) {
      await first.go(path)
      const told = await first.page.locator('.empty').first().innerText()
      expect([path, told.length > 60]).toEqual([path, true])
    }
    await first.go('/')
    expect(await first.page.locator('main').innerText()).toContain('hookledger start')
    expect([first.faults, first.strangers]).toEqual([[], []])
    await first.close()
  })
})
