/**
 * What a page of the list of pages looks like depends on what it shows: a page of each state that a thing can be in,
 * and each dialog that can be opened there, by hand and by keyboard alone, on a narrow screen and in the dark.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { barriersOf, overhangOf } from '../support/barriers.ts'
import { openBrowser, type ConsoleBrowser, type Seen } from '../support/browser.ts'
import { startApi } from '../support/console-api.ts'
import { createConsoleHistory, type ConsoleHistory } from '../support/console-history.ts'

let history: ConsoleHistory
let served: ConsoleBrowser
let seen: Seen
let grant: string
let started: string

beforeAll(async () => {
  history = await createConsoleHistory()
  const api = await startApi(history.hookledger)
  const subject = 'user:grace'
  const answer = await api.post<{ order_id: string }>('/grants', {
    id: '11111111-1111-4111-8111-111111111111',
    subject,
    confirm: subject,
    entitlements: [{ entitlement: 'pro' }],
    reason: 'an apology for the outage',
  })
  grant = answer.order_id
  started = '22222222-2222-4222-8222-222222222222'
  const reason = 'whoever ships knows more'
  const what = {
    act: 'assign',
    filter: { kind: 'operation_uncertain' },
    details: { owner: 'dock' },
  }
  const { confirm } = await api.post<{ confirm: string }>('/bulk', {
    bulk_id: started,
    reason,
    ...what,
  })
  await api.post(`/bulk/${started}/start`, { confirm, reason })
  served = await openBrowser(history.hookledger)
  seen = await served.look({ width: 360 })
})
afterAll(async () => {
  await seen.close()
  await served.close()
  await history.close()
})

const event = (id: string): string => `/events/stripe%3Aacct_1%3Atest/${id}`
type Where = readonly [what: string, path: () => string, buttons: readonly string[]]

const places: readonly Where[] = [
  ['an event that was decided', () => event('evt_paid'), ['Reveal body']],
  ['an event that waits for a worker', () => event('evt_ready'), ['Replay']],
  ['an event that is tried again later', () => event('evt_delayed'), ['Replay']],
  ['an event that waits for another', () => event('evt_deferred'), ['Replay']],
  ['an event that nothing handles', () => event('evt_ignored'), ['Replay']],
  ['an event that is dead', () => event('evt_dead'), ['Replay']],
  ['an event that a worker died of', () => event('evt_suspects'), ['Replay']],
  ['an operation that was sent', () => op('sent'), ['Reveal request']],
  ['one that nobody knows of', () => op('asking'), ['Resolve', 'Discard', 'Retry']],
  ['one that is dead', () => op('dead'), ['Discard', 'Retry']],
  ['one that was canceled', () => op('canceled'), []],
  ['one that somebody gave up', () => op('discarded'), []],
  ['a finding', () => `/findings/${history.finding}`, ['Assign', 'Dismiss', 'Plan a repair']],
  ['a finding that was repaired', () => `/findings/${history.reconciled.repaired}`, []],
  ['a finding that was dismissed', () => `/findings/${history.reconciled.dismissed}`, []],
  ['a grant', () => `/orders/${encodeURIComponent(grant)}`, ['End the grant']],
  ['a subject', () => '/subjects/user%3Agrace', ['Link a customer', 'Merge', 'Erase']],
  ['the bulk acts', () => '/bulk', ['Plan a bulk act']],
  ['a bulk act that was planned', () => bulk('planned'), ['Start', 'Cancel']],
  ['a bulk act that was done', () => bulk('done'), []],
]

function op(state: 'sent' | 'asking' | 'dead' | 'canceled' | 'discarded'): string {
  return `/operations/${history.outbox[state]}`
}

function bulk(state: 'planned' | 'done'): string {
  return `/bulk/${state === 'done' ? started : history.parameters['bulk_id']}`
}

const shown = (): Promise<string[]> => seen.page.locator('.page-actions button').allInnerTexts()

describe('a page and its dialogs, on a narrow screen, in the dark, by keyboard', () => {
  it.each(places)('%s', async (_, path, buttons) => {
    const { page, faults, strangers } = seen
    faults.length = 0
    await page.emulateMedia({ colorScheme: 'dark' })
    await seen.go(path())
    expect(await page.locator('h1').count()).toBe(1)
    expect(await page.locator('main [role=alert]').allInnerTexts()).toEqual([])
    expect(await overhangOf(page)).toBe(0)
    expect(await barriersOf(page)).toEqual([])
    const names = (await shown()).map((each) => each.trim())
    expect(names).toEqual(expect.arrayContaining([...buttons]))
    for (const name of names) await lookAtDialog(name)
    // a plan that cannot be made is refused, and the dialog says so
    const unexpected = faults.filter((fault) => !fault.includes('status of 409'))
    expect([unexpected, strangers]).toEqual([[], []])
  })
})

/** Opened by Enter, named and free of barriers, within the screen; Escape ends it, and its button has the focus. */
async function lookAtDialog(name: string): Promise<void> {
  const { page } = seen
  const button = page.getByRole('button', { name, exact: true })
  await button.focus()
  await page.keyboard.press('Enter')
  const dialog = page.getByRole('dialog')
  await dialog.waitFor()
  await seen.settled()
  const heading = await dialog.locator('h2').innerText()
  expect(await page.getByRole('dialog', { name: heading, exact: true }).count()).toBe(1)
  const box = await dialog.boundingBox()
  expect([name, (box?.x ?? -1) >= 0, (box?.x ?? 0) + (box?.width ?? 999) <= 360]).toEqual([
    name,
    true,
    true,
  ])
  const wide = await dialog.evaluate((element) => element.scrollWidth - element.clientWidth)
  expect([name, wide]).toEqual([name, 0])
  expect([name, await barriersOf(page)]).toEqual([name, []])
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })
  expect(await page.evaluate<string>('document.activeElement.innerText')).toContain(name)
}

describe('after an act that takes its own button away', () => {
  it('the focus is on the page, not lost', async () => {
    const { page } = seen
    await seen.go(op('dead'))
    await page.getByRole('button', { name: 'Discard' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Reason').fill('it is obsolete')
    await dialog.getByLabel(/to confirm/).fill('1001')
    await dialog.locator('button[type=submit]').click()
    await dialog.waitFor({ state: 'detached' })
    await seen.settled()
    expect(await shown()).not.toContain('Discard')
    expect(await page.evaluate<string>('document.activeElement.id')).toBe('page')
  })
})
