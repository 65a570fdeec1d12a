import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { pagePaths, type PageName } from '../../console/src/links.ts'
import { barriersOf, overhangOf } from '../support/barriers.ts'
import { openBrowser, type ConsoleBrowser, type Seen } from '../support/browser.ts'
import { startApi } from '../support/console-api.ts'
import { createConsoleHistory, type ConsoleHistory } from '../support/console-history.ts'

let history: ConsoleHistory
let served: ConsoleBrowser
let values: Readonly<Record<string, string>>

beforeAll(async () => {
  history = await createConsoleHistory()
  values = { ...history.parameters, list: 'decisions' }
  const api = await startApi(history.hookledger)
  const grant = { entitlements: [{ entitlement: 'pro' }], reason: 'an apology for the outage' }
  const subject = 'user:grace'
  await api.post('/grants', { id: randomUUID(), subject, confirm: subject, ...grant })
  served = await openBrowser(history.hookledger)
})
afterAll(async () => {
  await served.close()
  await history.close()
})

/** Every page that the console has, at something that is there. A page without a value for its address fails. */
const pages = Object.keys(pagePaths) as PageName[]

function pathOf(name: PageName): string {
  return pagePaths[name].replaceAll(/:(\w+)/g, (_, parameter: string) => {
    const value = values[parameter]
    if (value === undefined) throw new Error(`no value for :${parameter} of the page ${name}`)
    return encodeURIComponent(value)
  })
}

const looks = [
  { theme: 'light', width: 1280 },
  { theme: 'dark', width: 1280 },
  { theme: 'light', width: 360 },
  { theme: 'dark', width: 360 },
] as const

describe('every page, light and dark, wide and narrow', () => {
  let seen: Seen
  beforeAll(async () => {
    seen = await served.look()
  })
  afterAll(() => seen.close())

  it.each(pages)('%s: one heading, all of it in sight, no fault, no barrier', async (name) => {
    const { page, faults, strangers } = seen
    faults.length = 0
    await seen.go(pathOf(name))
    expect(await page.locator('h1').count()).toBe(1)
    expect(await page.locator('h1').innerText()).not.toBe('')
    expect(await page.locator('[role=alert]').allInnerTexts()).toEqual([])
    for (const { theme, width } of looks) {
      await page.emulateMedia({ colorScheme: theme })
      await page.setViewportSize({ width, height: 900 })
      expect([theme, width, await overhangOf(page)]).toEqual([theme, width, 0])
      // colors and sizes are two questions: each is asked both ways, once
      if ((theme === 'light') === (width === 1280))
        expect([theme, width, await barriersOf(page)]).toEqual([theme, width, []])
    }
    expect(faults).toEqual([])
    expect(strangers).toEqual([])
  })

  it('say so where an address leads nowhere', async () => {
    const { page } = seen
    await seen.go('/no/such/page')
    expect(await page.locator('h1').innerText()).toBe('No such page')
    await seen.go('/orders/no-such-order')
    expect(await page.locator('[role=alert]').innerText()).toContain('HKL_NOT_FOUND')
  })
})
