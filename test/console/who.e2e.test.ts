/**
 * Who sees what, where it depends on more than a permission: what state a thing is in, who planned it, whether it is
 * a grant. What somebody may not do has no button, and the address of its page leads to no act either.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { permissionsOf, roles, type Permission } from '../../src/api/access.ts'
import type { Identity, Role } from '../../src/compose/console-options.ts'
import { openBrowser, type ConsoleBrowser, type Seen } from '../support/browser.ts'
import { startApi } from '../support/console-api.ts'
import { createConsoleHistory, type ConsoleHistory } from '../support/console-history.ts'

const reason = 'whoever ships knows more'
/** All that a bulk act could be asked of them, and only one of them planned it. */
const planner: Identity = { actor: 'ada@example.com', roles: ['operator', 'approver'] }
const second: Identity = { actor: 'grace@example.com', roles: ['operator', 'approver'] }
let history: ConsoleHistory
let served: ConsoleBrowser
let seen: Seen
let paths: Readonly<Record<'planned' | 'waiting' | 'grant' | 'skipped' | 'uncertain', string>>

beforeAll(async () => {
  history = await createConsoleHistory({ console: { approval: { bulkFrom: 1 } } })
  const api = (await startApi(history.hookledger)).as(planner)
  const plan = async (bulkId: string): Promise<string> => {
    const what = { act: 'assign', filter: {}, details: { owner: 'dock' } }
    const asked = { bulk_id: bulkId, reason, ...what }
    return (await api.post<{ confirm: string }>('/bulk', asked)).confirm
  }
  const [planned, waiting] = [
    '11111111-1111-4111-8111-111111111111',
    '22222222-2222-4222-8222-222222222222',
  ]
  await plan(planned)
  await api.post(`/bulk/${waiting}/start`, { confirm: await plan(waiting), reason })
  const subject = 'user:grace'
  const entitlements = [{ entitlement: 'pro' }]
  const grant = await api.post<{ order_id: string }>('/grants', {
    id: '33333333-3333-4333-8333-333333333333',
    subject,
    confirm: subject,
    entitlements,
    reason,
  })
  const event = await history.fixture.event({ id: 'evt_skipped', type: 'price.unknown' })
  await history.fixture.decide({ event, kind: 'skipped', order: '1001', reason: 'no such price' })
  paths = {
    planned: `/bulk/${planned}`,
    waiting: `/bulk/${waiting}`,
    grant: `/orders/${encodeURIComponent(grant.order_id)}`,
    skipped: '/events/stripe%3Aacct_1%3Atest/evt_skipped',
    uncertain: `/operations/${history.outbox.asking}`,
  }
  served = await openBrowser(history.hookledger)
})
afterAll(async () => {
  await served.close()
  await history.close()
})
afterEach(() => seen.close())

async function buttonsAt(path: string): Promise<string[]> {
  await seen.go(path)
  const texts = await seen.page.locator('.page-actions button').allInnerTexts()
  return texts.map((text) => text.trim()).sort()
}

describe('each role', () => {
  it.each(roles)('%s: acts by the state of a thing, and none of another role', async (role) => {
    const may = (permission: Permission, ...names: string[]): string[] =>
      permissionsOf[role].includes(permission) ? names : []
    seen = await served.look({ as: role })
    expect(await buttonsAt(paths.skipped)).toEqual([
      ...may('operate', 'Decide anew'),
      ...may('reveal', 'Reveal body'),
    ])
    expect(await buttonsAt(paths.uncertain)).toEqual(
      [...may('reveal', 'Reveal request'), ...may('operate', 'Discard', 'Resolve', 'Retry')].sort(),
    )
    expect(await buttonsAt(paths.grant)).toEqual(may('operate', 'End the grant'))
    // somebody else planned them
    expect(await buttonsAt(paths.planned)).toEqual(may('operate', 'Cancel'))
    expect(await buttonsAt(paths.waiting)).toEqual(
      [...may('approve', 'Approve', 'Reject'), ...may('operate', 'Cancel')].sort(),
    )
    expect(seen.faults).toEqual([])
  })

  it.each(roles.filter((role) => !permissionsOf[role].includes('operate')))(
    '%s: the address of the form of a grant says that it is not for them',
    async (role) => {
      seen = await served.look({ as: role })
      await seen.go('/grant')
      expect(await seen.page.locator('main').innerText()).toContain('Only an operator')
      expect(await seen.page.locator('main').locator('input, button').count()).toBe(0)
    },
  )

  it.each(roles.filter((role) => !permissionsOf[role].includes('administer')))(
    '%s: the address of the sessions tells nothing of them',
    async (role) => {
      seen = await served.look({ as: role })
      await seen.go('/sessions')
      expect(await seen.page.locator('main [role=alert]').innerText()).toContain(
        'You may not do this',
      )
      expect(await seen.page.locator('main table').count()).toBe(0)
    },
  )
})

describe('a bulk act that needs two people', () => {
  it.each([
    ['whoever planned it starts it or cancels it', 'planned', planner, ['Cancel', 'Start']],
    ['another person with the same roles cancels it', 'planned', second, ['Cancel']],
    ['whoever planned it cannot approve it', 'waiting', planner, ['Cancel']],
    ['another person can', 'waiting', second, ['Approve', 'Cancel', 'Reject']],
  ] as const)('%s', async (_, state, who, buttons) => {
    seen = await served.look({ as: who })
    expect(await buttonsAt(paths[state])).toEqual(buttons)
  })
})

describe('somebody with no role, and nobody', () => {
  it.each([
    ['nobody', null],
    ['no role', { actor: 'bob@example.com', roles: [] as Role[] }],
  ] as const)('%s: sees neither a page nor a figure', async (_, who) => {
    seen = await served.look({ as: who })
    for (const path of ['/', '/orders', paths.grant, '/audit-log']) {
      await seen.go(path)
      const shown = await seen.page.locator('body').innerText()
      expect(shown).not.toMatch(/1001|pro\b|stripe:acct/)
      expect(await seen.page.locator('table').count()).toBe(0)
    }
  })
})
