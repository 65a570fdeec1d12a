import { custom } from '../../src/outbox/destinations/custom.ts'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { comparisonOf, type WiredComparison } from '../../src/compose/comparison.ts'
import { partsOf } from '../../src/hookledger.ts'
import { assignFinding, dismissFinding } from '../../src/reconciliation/finding-acts.ts'
import type { Discrepancy, FindingCounts } from '../../src/reconciliation/ports.ts'
import { finding } from '../../src/workflow/finding-kinds.ts'
import { createProbe, probeWorkflow, type Probe } from '../support/probe.ts'

let probe: Probe
let wired: WiredComparison

beforeAll(async () => {
  probe = await createProbe({
    workflows: [probeWorkflow()],
    destinations: {
      pager: custom({ contract: { idempotency: 'key' }, call: async () => ({ id: 'page_1' }) }),
    },
    findings: {
      owner: 'support',
      owners: { paid_here: 'finance' },
      escalate: { to: 'pager', afterHours: [0, 24] },
    },
  })
  const parts = partsOf(probe.hookledger)
  const installed = await parts.installation()
  wired = comparisonOf({ db: probe.db, installed, config: parts.config, signals: parts.signals })
})
afterAll(() => probe.close())
beforeEach(() => probe.reset())

const by = { reason: 'the customer wrote', actor: 'ada' }
const month = 30 * 86_400_000

function discrepancy(figures: Record<string, string>, about = 'payment:1:p1'): Discrepancy {
  return {
    draft: finding('paid_here', about, figures),
    source: 'stripe:acct_1:test',
    orderId: '1',
    eventKey: null,
    sourceId: 1,
    reference: { kind: 'payment', id: 'p1', account: 'acct_1' },
  }
}

const find = (there = 'unpaid', about?: string): Promise<FindingCounts> =>
  probe.db.transaction((tx) => wired.findings.found(tx, [discrepancy({ there }, about)]))

const idOf = (about = 'payment:1:p1'): string =>
  wired.findings.id('paid_here', 'stripe:acct_1:test', about)

async function row(): Promise<Record<string, unknown>> {
  const [found] = await probe.rows(
    `select state, owner, evidence, closed_because, escalations, times_seen::int as times,
       closed_at is not null as closed, dismissed_until is not null as dismissed,
       round(extract(epoch from due_at - now()) / 3600)::int as due_in_hours from findings`,
  )
  return found ?? {}
}

describe('a finding', () => {
  it('is opened with the owner of its kind and due as its class is', async () => {
    expect(await find()).toEqual({ opened: 1, openedIds: [idOf()], seen: 0 })
    expect(await row()).toMatchObject({
      state: 'open',
      owner: 'finance',
      times: 1,
      due_in_hours: 72,
    })
  })

  it('is the same one when it is found again, with what it says now', async () => {
    await find()
    expect(await find('failed')).toEqual({ opened: 0, openedIds: [], seen: 1 })
    expect(await row()).toMatchObject({ state: 'open', times: 2, evidence: { there: 'failed' } })
  })

  it('is closed with why, and opens again under its id when both sides differ again', async () => {
    await find()
    const close = (): Promise<number> =>
      probe.db.transaction((tx) => wired.findings.close(tx, [idOf()], 'both sides agree'))
    expect(await close()).toBe(1)
    expect(await close()).toBe(0)
    expect(await row()).toMatchObject({
      state: 'closed',
      closed: true,
      closed_because: 'both sides agree',
    })
    expect(await find()).toMatchObject({ opened: 1 })
    expect(await row()).toMatchObject({
      state: 'open',
      closed: false,
      closed_because: null,
      times: 2,
    })
  })

  it('has its repairs verified by the commit that closes it', async () => {
    await find()
    await probe.rows(
      `insert into repairs (repair_id, finding_id, plan, reason, actor, previous_state, new_state)
       values (gen_random_uuid(), $1, '{}', 'r', 'ada', '{}', '{}')`,
      [idOf()],
    )
    await probe.rows(`update findings set state = 'repairing'`)
    await find()
    expect(await row()).toMatchObject({ state: 'repairing' })
    await probe.db.transaction((tx) => wired.findings.close(tx, [idOf()], 'both sides agree'))
    expect(await probe.rows(`select verified_at is not null as verified from repairs`)).toEqual([
      { verified: true },
    ])
  })

  it('can be written by two at once in any order of their ids', async () => {
    const abouts = Array.from({ length: 20 }, (_, at) => `payment:1:p${at}`)
    const all = abouts.map((about) => discrepancy({ there: 'unpaid' }, about))
    const write = (found: readonly Discrepancy[]): Promise<FindingCounts> =>
      probe.db.transaction((tx) => wired.findings.found(tx, found))
    const counts = await Promise.all([write(all), write([...all].reverse()), write(all)])
    expect(counts.reduce((sum, { opened }) => sum + opened, 0)).toBe(20)
    expect(await probe.rows(`select distinct times_seen::int as times from findings`)).toEqual([
      { times: 3 },
    ])
  })
})

describe('assignFinding', () => {
  it('gives it to somebody else, and records who did and why', async () => {
    await find()
    expect(await assignFinding(probe.db, idOf(), ' bob ', by)).toMatchObject({ owner: 'bob' })
    expect(await row()).toMatchObject({ owner: 'bob', state: 'open' })
    await find()
    expect(await row()).toMatchObject({ owner: 'bob' })
    expect(
      await probe.rows(`select act, target, reason, actor, details from operator_acts`),
    ).toEqual([
      {
        act: 'findings assign',
        target: `finding:${idOf()}`,
        ...by,
        details: { from: 'finance', to: 'bob' },
      },
    ])
  })

  it('refuses one that there is not, and one that is closed', async () => {
    await expect(assignFinding(probe.db, idOf(), 'bob', by)).rejects.toMatchObject({
      code: 'HKL_FINDING_UNKNOWN',
    })
    await find()
    await probe.rows(`update findings set state = 'closed'`)
    await expect(assignFinding(probe.db, idOf(), 'bob', by)).rejects.toMatchObject({
      code: 'HKL_FINDING_NOT_OPEN',
    })
    expect(await probe.rows(`select 1 from operator_acts`)).toEqual([])
  })
})

describe('dismissFinding', () => {
  const dismiss = (): Promise<unknown> =>
    dismissFinding(probe.db, idOf(), new Date(Date.now() + month), by)

  it('covers what the finding says, until a day', async () => {
    await find()
    expect(await dismiss()).toMatchObject({ state: 'dismissed', kind: 'paid_here' })
    expect(await find()).toMatchObject({ opened: 0 })
    expect(await row()).toMatchObject({ state: 'dismissed', dismissed: true, times: 2 })
    expect(await probe.rows(`select act, actor from operator_acts`)).toEqual([
      { act: 'findings dismiss', actor: 'ada' },
    ])
  })

  it('ends when the finding says something else', async () => {
    await find()
    await dismiss()
    expect(await find('failed')).toMatchObject({ opened: 1 })
    expect(await row()).toMatchObject({ state: 'open', evidence: { there: 'failed' } })
  })

  it('ends with its day, whether the finding is found again or not', async () => {
    await find()
    await dismiss()
    await probe.rows(
      `update findings set dismissed_until = now() - interval '1 second', due_at = now()`,
    )
    const now = new Date()
    const signal = new AbortController().signal
    const report = await wired.comparison.checkLocally({ from: now, to: now, signal })
    expect(report.opened).toBe(1)
    expect(await row()).toMatchObject({ state: 'open', due_in_hours: 72 })
  })

  it('refuses a day that is past', async () => {
    await find()
    const past = new Date(Date.now() - 1000)
    await expect(dismissFinding(probe.db, idOf(), past, by)).rejects.toThrow(/past/)
    expect(await row()).toMatchObject({ state: 'open' })
  })
})

describe('a finding past its due date', () => {
  it('is told of once a step: by a signal, and by an operation to whom it is escalated', async () => {
    const told: unknown[] = []
    const unhear = partsOf(probe.hookledger).signals.on('findings.overdue', (each) =>
      told.push(each),
    )
    await find()
    expect(await wired.comparison.escalate()).toBe(0)
    await probe.rows(`update findings set due_at = now() - interval '1 minute'`)
    expect(await wired.comparison.escalate()).toBe(1)
    expect(await wired.comparison.escalate()).toBe(0)
    expect(told).toMatchObject([
      { findingId: idOf(), kind: 'paid_here', owner: 'finance', orderId: '1', step: 1 },
    ])
    await probe.rows(`update findings set due_at = now() - interval '25 hours'`)
    expect(await wired.comparison.escalate()).toBe(1)
    expect(told).toMatchObject([{ step: 1 }, { step: 2 }])
    unhear()
    const sent = await probe.rows<{ destination: string; order_id: string; body: string }>(
      `select destination, order_id, convert_from(request, 'UTF8') as body from outbox order by created_at`,
    )
    expect(sent.map(({ destination, order_id: order }) => [destination, order])).toEqual([
      ['pager', '1'],
      ['pager', '1'],
    ])
    expect(sent.map(({ body }) => body.includes('"step":2'))).toEqual([false, true])
  })

  it('that missed steps is told of once, with the last', async () => {
    await find()
    await probe.rows(`update findings set due_at = now() - interval '3 days'`)
    expect(await wired.comparison.escalate()).toBe(1)
    expect(await row()).toMatchObject({ escalations: 2 })
    expect(await probe.rows(`select 1 from outbox`)).toHaveLength(1)
  })

  it('is not told of when it is dismissed, and anew once it opens again', async () => {
    await find()
    await dismissFinding(probe.db, idOf(), new Date(Date.now() + month), by)
    await probe.rows(`update findings set due_at = now() - interval '3 days', escalations = 2`)
    expect(await wired.comparison.escalate()).toBe(0)
    await find('failed')
    expect(await row()).toMatchObject({ escalations: 0, due_in_hours: 72 })
  })
})
