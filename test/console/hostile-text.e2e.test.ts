import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { pagePaths, type PageName } from '../../console/src/links.ts'
import { openBrowser, type ConsoleBrowser, type Seen } from '../support/browser.ts'
import { createConsoleHistory, type ConsoleHistory } from '../support/console-history.ts'
import { hostile, hostileTexts, makeHostile } from '../support/hostile-text.ts'

let history: ConsoleHistory
let served: ConsoleBrowser
let seen: Seen
let columns: string[]
let values: Readonly<Record<string, string>>

beforeAll(async () => {
  history = await createConsoleHistory()
  const { fixture, parameters } = history
  // of every kind of thing that lists show, one for each of the texts
  for (const at of hostileTexts.keys()) {
    const event = await fixture.event({ id: `evt-${at}`, type: `type-${at}` })
    await fixture.decide({
      event,
      kind: 'fulfilled',
      order: `order-${at}`,
      from: 'pending',
      to: 'paid',
      reason: `reason-${at}`,
      payment: { id: `payment-${at}`, amount: 100 },
      effects: [{ type: 'license', reference: `reference-${at}` }],
      entitle: [{ subject: `subject-${at}`, entitlement: `entitlement-${at}`, active: true }],
    })
    await fixture.finding({ kind: 'paid_twice', order: `order-${at}` })
    await fixture.sql(
      `insert into hookledger.operator_acts (act, target, reason, actor) values ('replay', $1, $2, $3)`,
      [`target-${at}`, `reason-${at}`, `actor-${at}`],
    )
    await fixture.sql(
      `insert into hookledger.rejections (source, reason, times) values ($1, 'mismatch', 1)`,
      [`source-${at}`],
    )
  }
  columns = await makeHostile(history.pool)
  values = {
    ...Object.fromEntries(
      Object.entries(parameters).map(([key, value]) =>
        /^[0-9a-f-]{36}$/.test(value) || key === 'source' ? [key, value] : [key, hostile(value)],
      ),
    ),
    list: 'decisions',
  }
  served = await openBrowser(history.hookledger)
  seen = await served.look()
  await seen.page.addInitScript(() => {
    delete (globalThis as { hostile?: unknown }).hostile
  })
})
afterAll(async () => {
  await seen.close()
  await served.close()
  await history.close()
})

/** What would be there if a text had been taken for markup. */
const harm = `(() => {
  const nodes = [...document.querySelectorAll('iframe, object, embed, img, video, audio, source, math, base, style, template, foreignObject, animate, body form[action], body link, body meta')]
  const scripts = [...document.scripts].filter(({ src }) => !src.startsWith(location.origin + '/console/assets/'))
  const handlers = [...document.querySelectorAll('*')].filter((node) => [...node.attributes].some(({ name, value }) => name.startsWith('on') || (/^(href|src|action|xlink:href|data)$/.test(name) && /^\\s*(javascript|data|vbscript):/i.test(value))))
  return [...nodes, ...scripts, ...handlers].map(({ outerHTML }) => outerHTML.slice(0, 200)).concat('hostile' in window ? ['it ran'] : [])
})()`

async function expectNoHarm(): Promise<void> {
  expect(await seen.page.evaluate<string[]>(harm)).toEqual([])
  expect(seen.faults).toEqual([])
  expect(seen.strangers).toEqual([])
}

const textOf = (): Promise<string> => seen.page.locator('main').innerText()

beforeEach(() => {
  seen.faults.length = 0
})

describe('text of strangers', () => {
  it('stands in every column that takes one', () => {
    expect(columns).toEqual(
      expect.arrayContaining([
        'bulk_acts.reason',
        'entitlements.subject',
        'findings.evidence',
        'findings.owner',
        'fulfillment_effects.effect_reference',
        'inbox_dead.reason',
        'inbox_deferred.waits_for',
        'inbox_events.event_id',
        'inbox_events.event_type',
        'ledger_decisions.evidence',
        'ledger_decisions.reason',
        'ledger_payments.payment_id',
        'operator_acts.actor',
        'operator_acts.reason',
        'order_names.name',
        'orders.order_id',
        'outbox_operations.last_error',
        'outbox_operations.receipt',
        'reconciliation_runs.source',
        'rejections.source',
        'repairs.reason',
      ]),
    )
    expect(columns.length).toBeGreaterThan(60)
  })

  it.each(Object.keys(pagePaths) as PageName[])(
    'is text on the page %s: no node, no script, nothing loaded',
    async (name) => {
      const path = pagePaths[name].replaceAll(/:(\w+)/g, (_, key: string) =>
        encodeURIComponent(values[key] ?? ''),
      )
      await seen.go(path)
      await expectNoHarm()
    },
  )

  it.each([
    ['events', 'type-'],
    ['orders', 'order-'],
    ['subjects', 'subject-'],
    ['audit', 'target-'],
    ['rejections', 'source-'],
  ] as const)('is shown as it is, all thirty, in the list of %s', async (name, prefix) => {
    await seen.go(pagePaths[name])
    const shown = await textOf()
    for (const [at, text] of hostileTexts.entries()) {
      // what cannot be seen is shown as an escape
      const visible = text.split(/[\u200b\u202e\ufeff]/).at(-2) ?? text
      expect(shown, `${prefix}${at}`).toContain(visible.includes('<') ? visible : text)
    }
    await expectNoHarm()
  })

  it('is text in the address: what is searched for, filters, ids', async () => {
    for (const [at, text] of hostileTexts.entries()) {
      const typed = encodeURIComponent(text)
      const paths = [
        `/search?q=${typed}`,
        `/orders?state=${typed}&subject=${typed}`,
        `/events/${typed}/${typed}`,
      ]
      await seen.go(paths[at % paths.length] ?? '/')
      seen.faults.length = 0 // an address that leads nowhere is answered 404
      await expectNoHarm()
    }
  })

  it('is text in what is revealed, byte for byte', async () => {
    const { page } = seen
    const body = JSON.stringify({ id: 'evt_html', note: hostileTexts.join(' '), big: 1 }).replace(
      '"big":1',
      '"big":9007199254740993',
    )
    await history.fixture.event({ id: 'evt_html', type: 'note.made', body })
    await seen.go(`/events/${encodeURIComponent(values['source'] ?? '')}/evt_html`)
    await page.getByRole('button', { name: 'Reveal body' }).click()
    await page.getByLabel('Reason').fill('a customer asks what was sent')
    await page
      .getByRole('dialog')
      .getByRole('button', { name: /reveal/i })
      .click()
    await page.getByRole('dialog').getByText('9007199254740993').first().waitFor()
    await expectNoHarm()
    expect(await page.getByRole('dialog').innerText()).toContain(
      '<img src=x onerror=window.hostile=1>',
    )
  })
})

// the last: what it breaks on purpose is told by the browser a moment later
describe('the look for harm', () => {
  it('sees a text that was taken for markup', async () => {
    await seen.go('/')
    await seen.page.evaluate(
      `document.querySelector('main').innerHTML = ${JSON.stringify(hostileTexts[3])}`,
    )
    expect(await seen.page.evaluate<string[]>(harm)).not.toEqual([])
  })
})
