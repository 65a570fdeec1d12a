import { money } from 'hookledger'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { fulfill, reverse, type Decision } from '../../src/workflow/decision.ts'
import { startApi, type TestApi } from '../support/console-api.ts'
import { createProbe, probe, probeWorkflow, type Probe, type ProbeHooks } from '../support/probe.ts'
import { scripted } from '../support/scripted-destination.ts'

const hooks: ProbeHooks = {}
let bench: Probe
let api: TestApi

beforeAll(async () => {
  bench = await createProbe({
    workflows: [probeWorkflow(hooks)],
    destinations: { crm: scripted() },
  })
  api = await startApi(bench.hookledger)
})
afterAll(() => bench.close())
beforeEach(async () => {
  delete hooks.decide
  await bench.reset()
})

interface Subject {
  readonly present: string
  readonly merged: readonly string[]
  readonly may_use: readonly { readonly entitlement: string; readonly quantity: string }[]
  readonly grounds: readonly {
    readonly order_id: string
    readonly in_force: boolean
    readonly granted: { readonly kind: string; readonly event: { readonly id: string } | null }
  }[]
  readonly orders: readonly { readonly order_id: string; readonly entitles: boolean }[]
  readonly customers: readonly { readonly customer_id: string }[]
  readonly acts: readonly { readonly act: string; readonly reason: string }[]
}

const subjectAt = (subject: string): Promise<Subject> =>
  api.get<Subject>(`/subjects/${encodeURIComponent(subject)}`)

function giving(quantity: number): Decision {
  return fulfill({
    to: 'paid',
    payment: { id: `pay_${quantity}`, money: money(4900, 'usd') },
    effects: [{ type: 'grant' }],
    entitle: [{ subject: 'user:ada', entitlement: 'pro', quantity }],
  } as never) as Decision
}

async function pays(order: string, quantity: number): Promise<void> {
  hooks.decide = () => giving(quantity)
  await bench.deliver(probe('pay', { id: `evt_${order}`, order }))
  await bench.work()
}

describe('the page of a subject', () => {
  it('says what may be used now, and for each order which decision of which event gave it', async () => {
    await pays('o1', 2)
    const told = await subjectAt('user:ada')
    expect(told).toMatchObject({
      present: 'user:ada',
      may_use: [{ entitlement: 'pro', quantity: '2', valid_until: null }],
      grounds: [
        {
          order_id: 'o1',
          in_force: true,
          entitles: true,
          granted: { kind: 'fulfilled', event: { id: expect.stringMatching(/\/evt_o1$/) } },
        },
      ],
      is_cut: false,
    })
  })

  it('keeps what is no longer in force as a ground, with the decision that ended it', async () => {
    await pays('o1', 1)
    hooks.decide = () =>
      reverse({ to: 'refunded', of: { type: 'grant' }, once: { type: 'refund' } } as never)
    await bench.deliver(probe('refund', { id: 'evt_back', order: 'o1' }))
    await bench.work()
    const told = await subjectAt('user:ada')
    expect(told.may_use).toEqual([])
    expect(told.grounds).toMatchObject([
      { in_force: false, changed: { event: { id: expect.stringMatching(/\/evt_back$/) } } },
    ])
  })

  it('is read as what it was merged into, with both histories and who said so', async () => {
    await pays('o1', 1)
    await api.post('/subjects/user%3Aada/merge', {
      into: 'user:countess',
      reason: 'the same person',
      confirm: 'user:ada',
    })
    for (const name of ['user:ada', 'user:countess']) {
      expect(await subjectAt(name)).toMatchObject({
        present: 'user:countess',
        merged: ['user:ada'],
        may_use: [{ entitlement: 'pro' }],
        acts: [{ act: 'subject merge', reason: 'the same person' }],
      })
    }
  })

  it('answers 404 with a way on for what nothing names', async () => {
    const { status, code } = await api.ask('GET', '/subjects/nobody')
    expect([status, code]).toEqual([404, 'HKL_NOT_FOUND'])
  })
})

describe('the pages of workflows', () => {
  it('tell states with their orders, transitions and the version that runs', async () => {
    await pays('o1', 1)
    const { workflows } = await api.get<{ workflows: { workflow: string }[] }>('/workflows')
    expect(workflows.map(({ workflow }) => workflow)).toContain('probe')
    const told = await api.get<{
      states: { state: string; orders: string }[]
      transitions: { from: string; to: string }[]
      versions: { is_current: boolean }[]
    }>('/workflows/probe')
    expect(told).toMatchObject({ is_configured: true, in_shadow: false })
    expect(told.transitions).toContainEqual({ from: 'pending', to: 'paid' })
    expect(told.versions.filter((each) => each.is_current)).toHaveLength(1)
    expect((await api.ask('GET', '/workflows/none')).status).toBe(404)
  })
})

describe('the promises', () => {
  it('are told one by one, and the one that is broken names what breaks it', async () => {
    await pays('o1', 1)
    await bench.pool.query(`delete from hookledger.inbox_events where event_id = 'evt_o1'`)
    const told = await api.get<{
      readonly holds: boolean
      readonly promises: readonly {
        readonly promise: string
        readonly holds: boolean
        readonly checks: readonly { readonly check: string; readonly violations: number }[]
      }[]
    }>('/promises')
    expect(told.holds).toBe(false)
    expect(told.promises.map(({ promise, holds }) => [promise, holds])).toEqual(
      expect.arrayContaining([
        ['P1', false],
        ['P6', true],
      ]),
    )
    const [accepted] = told.promises
    expect(accepted?.checks).toContainEqual(
      expect.objectContaining({ check: 'accepted_event_missing', violations: 1 }),
    )
  })
})
