/** A filter that fits only what lies far back: the page says that it has not looked at everything, and goes on. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { mostLooked } from '../../src/report/lists/keyset.ts'
import { openBrowser, type ConsoleBrowser } from '../support/browser.ts'
import { createConsoleHistory, type ConsoleHistory } from '../support/console-history.ts'

let history: ConsoleHistory
let served: ConsoleBrowser
beforeAll(async () => {
  history = await createConsoleHistory()
  await history.fixture.event({ id: 'evt_far', type: 'far.back' })
  await history.fixture.sql(
    `insert into hookledger.inbox_events (source_id, event_id, event_type, body_sha256, body_bytes)
     select min(source_id), 'evt_near_' || n, 'near.by', sha256('x'), 1
     from hookledger.sources, generate_series(1, ${mostLooked + 10}) n group by n order by n`,
  )
  served = await openBrowser(history.hookledger)
})
afterAll(async () => {
  await served.close()
  await history.close()
})

it('a page on which nothing fits says that the next one looks further, and that one finds it', async () => {
  const seen = await served.look()
  const { page } = seen
  const main = (): Promise<string> => page.locator('main').innerText()
  await seen.go('/inbox?type=far.back')
  expect(await main()).toContain('the next page looks further')
  expect(await main()).not.toContain('evt_far')
  await page.getByRole('button', { name: 'Next' }).click()
  await seen.settled()
  await expect.poll(main).toContain('evt_far')
  expect(await page.getByRole('button', { name: 'Next' }).isDisabled()).toBe(true)
  expect(seen.faults).toEqual([])
  await seen.close()
})
