import { money } from 'hookledger'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { permissionsOf, roles } from '../../src/api/access.ts'
import { bulkLoop } from '../../src/compose/bulk/bulk-run.ts'
import type { Role } from '../../src/compose/console-options.ts'
import { PermanentError } from '../../src/core/errors.ts'
import { partsOf } from '../../src/hookledger.ts'
import { fulfill, skip, type Decision } from '../../src/workflow/decision.ts'
import { openBrowser, type ConsoleBrowser, type Seen } from '../support/browser.ts'
import { createProbe, probe, probeWorkflow, type Probe, type ProbeHooks } from '../support/probe.ts'
import { scripted, unknown } from '../support/scripted-destination.ts'

const crm = scripted()
const hooks: ProbeHooks = {}
const reason = 'ticket 4711: the customer wrote'
const event = (id: string): string => `/events/stripe%3Aprobe%3Atest/${id}`
let bench: Probe
let served: ConsoleBrowser
let seen: Seen

beforeAll(async () => {
  bench = await createProbe({
    workflows: [probeWorkflow(hooks)],
    destinations: { crm },
    console: { approval: { bulkFrom: 2 } },
  })
  served = await openBrowser(bench.hookledger)
})
afterAll(async () => {
  await served.close()
  await bench.close()
})
beforeEach(async () => {
  crm.reset()
  delete hooks.decide
  await bench.reset()
})
afterEach(async () => {
  await seen.close()
})

async function lookAs(role: Role, path: string): Promise<Seen['page']> {
  seen = await served.look({ as: role })
  await seen.go(path)
  return seen.page
}

/** Opens an act, fills what it asks, and does it by a double click; waits for what is said of it. */
async function act(
  name: string,
  given: {
    readonly verb: string
    readonly typed?: string
    readonly fields?: Readonly<Record<string, string>>
    readonly says?: string | RegExp
  },
): Promise<void> {
  const { page } = seen
  await page.getByRole('button', { name, exact: true }).click()
  const dialog = page.getByRole('dialog')
  for (const [label, value] of Object.entries(given.fields ?? {}))
    await dialog.getByLabel(label).fill(value)
  const verb = dialog.getByRole('button', { name: given.verb, exact: true })
  expect(await verb.isDisabled()).toBe(true)
  await dialog.getByLabel('Reason').fill(reason)
  if (given.typed !== undefined) {
    const typed = dialog.getByLabel(/to confirm/)
    await typed.fill(`${given.typed}x`)
    expect(await verb.isDisabled()).toBe(true)
    await typed.fill(given.typed)
  }
  await verb.dblclick()
  if (given.says !== undefined) await page.getByRole('status').getByText(given.says).waitFor()
  await seen.settled()
}

const acts = (): Promise<{ act: string; reason: string; actor: string }[]> =>
  bench.rows('select act, reason, actor from operator_acts order by act_id')

async function expectRecorded(...names: string[]): Promise<void> {
  const actor = 'operator@example.com'
  expect(await acts()).toEqual(names.map((name) => ({ act: name, reason, actor })))
}

function sending(): Decision {
  return fulfill({
    to: 'paid',
    payment: { id: 'pay_1', money: money(4900, 'usd') },
    effects: [{ type: 'grant', send: [{ to: 'crm', body: { hello: 1 } }] }],
  } as never) as Decision
}

async function operation(answer: 'dead' | 'uncertain'): Promise<string> {
  hooks.decide = sending
  crm.next(
    answer === 'uncertain'
      ? unknown
      : { kind: 'refused', error: 'HTTP 422', status: 422, settlesEarlier: true },
  )
  await bench.deliver(probe('pay', { id: 'evt_1', order: 'o1' }))
  await bench.work()
  const [row] = await bench.rows<{ id: string }>('select operation_id as id from outbox_operations')
  return row?.id ?? ''
}

async function finding(): Promise<string> {
  const [row] = await bench.rows<{ id: string }>(
    `insert into findings (finding_id, kind, class, severity, owner, evidence, due_at, order_id)
     values (gen_random_uuid(), 'paid_twice', 'contradiction', 'high', 'operations', '{"payment": "pay_2"}',
       now() + interval '1 day', (select min(order_id) from orders)) returning finding_id as id`,
  )
  return row?.id ?? ''
}

async function deadEvents(...ids: string[]): Promise<void> {
  hooks.decide = () => {
    throw new PermanentError('no such price')
  }
  await bench.deliver(...ids.map((id) => probe('pay', { id, order: `of_${id}` })))
  await bench.work()
  delete hooks.decide
}

describe('who sees which buttons', () => {
  it.each([...roles, null])('%s: those of their permissions, and no other', async (role) => {
    await deadEvents('evt_dead')
    const dead = await operation('dead')
    const found = await finding()
    const can = role === null ? [] : permissionsOf[role]
    const may = (permission: (typeof can)[number], ...names: string[]): string[] =>
      can.includes(permission) ? names : []
    const pages: Readonly<Record<string, string[]>> = {
      [event('evt_dead')]: [...may('reveal', 'Reveal body'), ...may('operate', 'Replay')],
      [`/operations/${dead}`]: [
        ...may('reveal', 'Reveal request'),
        ...may('operate', 'Discard', 'Retry'),
      ],
      [`/findings/${found}`]: may('operate', 'Assign', 'Dismiss', 'Plan a repair'),
      '/subjects/user%3Ao9': [
        ...may('operate', 'Link a customer', 'Merge'),
        ...may('erase', 'Erase'),
      ],
      '/bulk': may('operate', 'Plan a bulk act'),
    }
    delete hooks.decide
    await bench.deliver(probe('pay', { order: 'o9' }))
    await bench.work()
    seen = await served.look({ as: role })
    for (const [path, names] of Object.entries(pages)) {
      await seen.go(path)
      const buttons = await seen.page.locator('.page-actions button').allInnerTexts()
      expect([path, buttons.map((each) => each.trim())]).toEqual([path, names])
    }
    const entries = await seen.page.locator('nav a').allInnerTexts()
    expect(entries.includes('Grant')).toBe(can.includes('operate'))
    expect(entries.includes('Sessions')).toBe(can.includes('administer'))
    expect(entries.includes('Orders')).toBe(role !== null)
  })
})

describe('acts on an event', () => {
  it('replays a dead one, at once in its story and in the audit log', async () => {
    await deadEvents('evt_dead')
    const page = await lookAs('operator', event('evt_dead'))
    await act('Replay', { verb: 'Replay', says: 'ready for the next worker' })
    expect(await page.locator('main').innerText()).toContain(reason)
    await expectRecorded('replay')
    await seen.go('/audit-log')
    expect(await page.locator('main').innerText()).toContain(reason)
    await bench.work()
    await seen.go(event('evt_dead'))
    expect(await page.locator('main').innerText()).toContain('fulfilled')
  })

  it('decides one anew: first the plan, then exactly that', async () => {
    hooks.decide = () => skip('no such price') as Decision
    await bench.deliver(probe('pay', { id: 'evt_skip', order: 'o1' }))
    await bench.work()
    delete hooks.decide
    const page = await lookAs('operator', event('evt_skip'))
    await page.getByRole('button', { name: 'Decide anew' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Reason').fill(reason)
    await dialog.getByRole('button', { name: 'Show the plan' }).click()
    await dialog.getByText('decision: fulfilled').waitFor()
    expect(await bench.rows('select 1 from fulfillment_effects')).toEqual([])
    const typed = dialog.getByLabel(/to confirm/)
    if ((await typed.count()) > 0) await typed.fill('o1')
    await dialog.getByRole('button', { name: 'Decide anew' }).dblclick()
    await page.getByRole('status').getByText('Decided anew').waitFor()
    await seen.settled()
    expect(await bench.rows('select effect_type from fulfillment_effects')).toHaveLength(1)
    expect(await page.locator('main').innerText()).toContain('fulfilled')
  })

  it('reveals its body to whoever may, and writes down who looked and why', async () => {
    const big = '12345678901234567890'
    await bench.deliver(probe('pay', { id: 'evt_1', order: 'o1', big, html: '<b>bold</b>' }))
    const page = await lookAs('privacy', event('evt_1'))
    expect(await page.locator('main').innerText()).not.toContain(big)
    await act('Reveal body', { verb: 'Reveal' })
    const dialog = page.getByRole('dialog')
    await dialog.getByText(big).waitFor()
    await dialog.getByRole('button', { name: 'Exactly as sent' }).click()
    expect(await dialog.innerText()).toContain('"html":"<b>bold</b>"')
    expect(await bench.rows('select reason, actor from payload_reads')).toEqual([
      { reason, actor: 'privacy@example.com' },
    ])
  })
})

describe('acts on an operation', () => {
  it('retries a dead one once', async () => {
    const page = await lookAs('operator', `/operations/${await operation('dead')}`)
    await act('Retry', { verb: 'Retry', says: /.+/ })
    await expectRecorded('outbox retry')
    await bench.work()
    expect(await page.locator('main').innerText()).toContain(reason)
  })

  it('resolves an uncertain one as a person knows it', async () => {
    const page = await lookAs('operator', `/operations/${await operation('uncertain')}`)
    await page.getByRole('button', { name: 'Resolve' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('radio').first().check()
    await dialog.getByLabel('Reason').fill(reason)
    await dialog.getByLabel(/to confirm/).fill('o1')
    await dialog.locator('button[type=submit]').dblclick()
    await dialog.waitFor({ state: 'detached' })
    await seen.settled()
    await expectRecorded('outbox resolve')
  })

  it('discards one for good', async () => {
    const page = await lookAs('operator', `/operations/${await operation('dead')}`)
    await act('Discard', { verb: 'Discard', typed: 'o1', says: 'Discarded' })
    await expectRecorded('outbox discard')
    expect(await page.locator('.page-actions button').count()).toBe(0)
  })

  it('reveals what was sent', async () => {
    const page = await lookAs('privacy', `/operations/${await operation('dead')}`)
    await act('Reveal request', { verb: 'Reveal' })
    await page.getByRole('dialog').getByText('hello').waitFor()
    expect(await bench.rows('select reason from operation_reads')).toEqual([{ reason }])
  })
})

describe('acts on a finding', () => {
  it('assigns it, and says that it is fine for some days', async () => {
    const page = await lookAs('operator', `/findings/${await finding()}`)
    await act('Assign', { verb: 'Assign', fields: { Owner: 'billing' }, says: 'billing’s now' })
    expect(await page.locator('main').innerText()).toContain('billing')
    await act('Dismiss', { verb: 'Dismiss', says: 'Dismissed' })
    expect(await page.locator('main').innerText()).toContain('Dismissed')
    expect((await acts()).map((each) => each.act)).toEqual(['findings assign', 'findings dismiss'])
  })
})

describe('acts on a subject', () => {
  it('grants once however often it is pressed, and ends it', async () => {
    const page = await lookAs('operator', '/subjects')
    await seen.go('/grant')
    await page.getByLabel('Subject').fill('user:grace')
    await page.getByLabel('May use').fill('pro')
    await act('Grant…', { verb: 'Grant', typed: 'user:grace', says: 'Granted' })
    const granted = `select 1 from current_entitlements where subject = 'user:grace'`
    expect(await bench.rows(granted)).toHaveLength(1)
    expect(page.url()).toContain('/orders/')
    const id = decodeURIComponent(page.url().split('/').at(-1) ?? '')
    await act('End the grant', { verb: 'End it', typed: id, says: 'Ended' })
    expect(await bench.rows(granted)).toEqual([])
    expect(await page.locator('main').innerText()).toContain('ended')
    expect(await acts()).toHaveLength(2)
    await seen.go('/subjects/user%3Agrace')
    expect(await page.locator('main').innerText()).toContain('May use nothing')
  })

  it('links a customer and merges it into another', async () => {
    await bench.deliver(probe('pay', { order: 'o1' }))
    await bench.work()
    const page = await lookAs('operator', '/subjects/user%3Ao1')
    await act('Link a customer', {
      verb: 'Link',
      typed: 'user:o1',
      fields: { 'Source, as': 'probe', 'Customer at': 'cus_1' },
      says: 'Linked',
    })
    expect(await page.locator('main').innerText()).toContain('cus_1')
    await act('Merge', {
      verb: 'Merge',
      typed: 'user:o1',
      fields: { Into: 'user:o2' },
      says: 'Merged',
    })
    expect(page.url()).toContain('/subjects/user%3Ao2')
    expect(await page.locator('main').innerText()).toContain('May use now: pro')
    await expectRecorded('customer link', 'subject merge')
  })

  it('erases it, for whoever has that right', async () => {
    await bench.deliver(probe('pay', { order: 'o1' }))
    await bench.work()
    const page = await lookAs('privacy', '/subjects/user%3Ao1')
    await page.getByRole('button', { name: 'Erase' }).click()
    await page
      .getByRole('dialog')
      .getByText(/bodies/)
      .first()
      .waitFor()
    await page.keyboard.press('Escape')
    await act('Erase', { verb: 'Erase', typed: 'user:o1', says: 'Erased' })
    expect(page.url()).not.toContain('user%3Ao1')
    expect(await bench.rows(`select 1 from orders where subject = 'user:o1'`)).toEqual([])
    expect((await acts()).map((each) => each.act)).toEqual(['erase'])
  })
})

describe('a bulk act', () => {
  it('is planned with its count, approved by another person, run to its end', async () => {
    await deadEvents('evt_1', 'evt_2', 'evt_3')
    let page = await lookAs('operator', '/bulk')
    await page.getByRole('button', { name: 'Plan a bulk act' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Reason').fill(reason)
    await dialog.getByRole('button', { name: 'Plan it' }).dblclick()
    await dialog.waitFor({ state: 'detached' })
    await seen.settled()
    const at = new URL(page.url()).pathname.replace('/console', '')
    expect(await page.locator('main').innerText()).toContain('3')
    await act('Start', { verb: 'Start it', typed: '3' })
    expect(await page.locator('.page-actions button').allInnerTexts()).toEqual(['Cancel'])
    await seen.close()
    page = await lookAs('approver', at)
    await act('Approve', { verb: 'Approve it', typed: '3' })
    const loop = bulkLoop(partsOf(bench.hookledger))
    loop.start()
    await page.getByText('3 of 3: 3 done').waitFor({ timeout: 20_000 })
    await loop.stop()
    expect(await bench.rows('select 1 from inbox_dead')).toEqual([])
    expect((await acts()).filter((each) => each.act === 'replay')).toHaveLength(3)
  })

  it('is rejected or canceled with nothing done', async () => {
    await deadEvents('evt_1', 'evt_2')
    for (const [role, name] of [
      ['approver', 'Reject'],
      ['operator', 'Cancel'],
    ] as const) {
      const page = await lookAs('operator', '/bulk')
      await page.getByRole('button', { name: 'Plan a bulk act' }).click()
      await page.getByRole('dialog').getByLabel('Reason').fill(reason)
      await page.getByRole('button', { name: 'Plan it' }).click()
      await page.getByRole('dialog').waitFor({ state: 'detached' })
      await seen.settled()
      await act('Start', { verb: 'Start it', typed: '2' })
      const at = new URL(page.url()).pathname.replace('/console', '')
      await seen.close()
      await lookAs(role, at)
      await act(name, { verb: `${name} it` })
      expect(await seen.page.locator('.page-actions button').count()).toBe(0)
      if (role === 'approver') await seen.close()
    }
    expect(await bench.rows('select 1 from inbox_dead')).toHaveLength(2)
  })
})
