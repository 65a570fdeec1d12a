import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { listDead } from '../../src/report/dead.ts'
import { findFindings, listFindings } from '../../src/report/findings.ts'
import { status } from '../../src/report/status.ts'
import { LedgerDatabase, type LedgerFixture } from './ledger-fixture.ts'

let database: LedgerDatabase
let fixture: LedgerFixture
let end: () => Promise<void>

beforeAll(async () => {
  database = await LedgerDatabase.create()
})

afterAll(() => database.drop())

beforeEach(async () => {
  ;({ fixture, end } = await database.trying())
  await fixture.cleanHistory()
})

afterEach(() => end())

describe('status', () => {
  it('counts events by state as the inbox view has them', async () => {
    for (const state of [
      'ready',
      'delayed',
      'suspects',
      'deferred',
      'ignored',
      'dead',
      'ready',
    ] as const) {
      await fixture.put(
        await fixture.event({ id: `evt_${state}_${Math.random()}`, type: 'plan.updated' }),
        state,
      )
    }
    const report = await status(fixture.db)
    expect(report.events).toEqual({
      total: 10,
      pending: 4,
      deferred: 1,
      processed: 3,
      ignored: 1,
      dead: 1,
    })
    expect(report.pending).toMatchObject({ ready: 2, delayed: 1, suspects: 1 })
    const rows = await fixture.sql<{ state: string; events: string }>(
      'select state, count(*) as events from hookledger.webhook_inbox group by state',
    )
    const view = Object.fromEntries(rows.map((row) => [row.state, Number(row.events)]))
    expect(view).toEqual({ pending: 4, deferred: 1, processed: 3, ignored: 1, dead: 1 })
  })

  it('does not count as pending what is finished and only waits to be dropped', async () => {
    const [row] = await fixture.sql<{ event_key: string }>(
      `select event_key from hookledger.inbox_events where event_id = 'evt_paid'`,
    )
    await fixture.put(row?.event_key ?? '', 'ready')
    expect((await status(fixture.db)).events).toMatchObject({ pending: 0, processed: 3 })
  })

  it('tells the age of the oldest pending event, whichever table holds it', async () => {
    const old = new Date(Date.now() - 3_600_000).toISOString()
    await fixture.put(
      await fixture.event({ id: 'evt_old', type: 'plan.updated', receivedAt: old }),
      'delayed',
    )
    await fixture.put(await fixture.event({ id: 'evt_new', type: 'plan.updated' }), 'ready')
    const age = (await status(fixture.db)).pending.oldest_age_ms ?? 0
    expect(Math.round(age / 60_000)).toBe(60)
  })

  it('counts duplicates as deliveries of events that were stored already', async () => {
    expect((await status(fixture.db)).deliveries).toMatchObject({ total: 5, duplicates: 2 })
  })

  it('counts waits and which of them are overdue, and when the next one is due', async () => {
    const deadline = new Date(Date.now() + 3_600_000).toISOString()
    await fixture.put(await fixture.event({ id: 'evt_1', type: 'refund.created' }), 'deferred', {
      deadline,
    })
    await fixture.put(await fixture.event({ id: 'evt_2', type: 'refund.created' }), 'deferred')
    await fixture.sql(
      `update hookledger.inbox_deferred set overdue = true where deadline_at <> $1`,
      [deadline],
    )
    expect((await status(fixture.db)).waiting).toEqual({
      events: 2,
      overdue: 1,
      next_deadline_at: deadline,
    })
  })

  it('counts orders by state, findings by kind, and active entitlements', async () => {
    await fixture.finding({ kind: 'paid_twice', order: '1001' })
    await fixture.finding({ kind: 'paid_twice', order: '1001', due: '-1 hour' })
    await fixture.finding({ kind: 'underpaid', order: '1001', state: 'dismissed' })
    const report = await status(fixture.db)
    expect(report.orders).toEqual([{ workflow: 'license', state: 'paid', orders: 1 }])
    expect(report.findings).toEqual([
      { class: 'contradiction', kind: 'paid_twice', open: 2, overdue: 1 },
    ])
    expect(report.entitlements.active).toBe(1)
    expect(report.environment).toBe('test')
    expect(report.partitions_until).toMatch(/^\d{4}-\d\d-\d\d$/)
  })

  it('is all zeros for a schema in which nothing has happened', async () => {
    const report = await status(database.committing().db)
    expect(report.events).toEqual({
      total: 0,
      pending: 0,
      deferred: 0,
      processed: 0,
      ignored: 0,
      dead: 0,
    })
    expect(report.pending.oldest_age_ms).toBeNull()
    expect(report.waiting.next_deadline_at).toBeNull()
  })
})

describe('listFindings', () => {
  it('lists what fits, those due first first', async () => {
    const late = await fixture.finding({ kind: 'paid_twice', order: '1001', due: '-1 hour' })
    const soon = await fixture.finding({ kind: 'underpaid', order: '1001', due: '1 hour' })
    await fixture.finding({ kind: 'paid_twice', order: null, state: 'closed' })
    const open = { states: ['open', 'repairing'], limit: 10 }
    expect((await listFindings(fixture.db, open)).map((each) => each.finding_id)).toEqual([
      late,
      soon,
    ])
    expect(
      (await listFindings(fixture.db, { ...open, overdue: true })).map((each) => each.finding_id),
    ).toEqual([late])
    expect(
      (await listFindings(fixture.db, { ...open, kind: 'underpaid' })).map(
        (each) => each.finding_id,
      ),
    ).toEqual([soon])
    expect(await listFindings(fixture.db, { ...open, owner: 'nobody' })).toEqual([])
    expect(await listFindings(fixture.db, { limit: 10 })).toHaveLength(3)
    expect(await listFindings(fixture.db, { limit: 1 })).toHaveLength(1)
  })
})

describe('findFindings', () => {
  it('takes the beginning of an id, and nothing that is no beginning of one', async () => {
    const id = await fixture.finding({ kind: 'paid_twice', order: '1001' })
    expect(
      (await findFindings(fixture.db, id.slice(0, 6).toUpperCase())).map((each) => each.finding_id),
    ).toEqual([id])
    expect(await findFindings(fixture.db, id.slice(0, 5))).toEqual([])
    expect(await findFindings(fixture.db, '%%%%%%')).toEqual([])
  })
})

describe('listDead', () => {
  it('lists dead events with their reason, the last to die first, and whether a body is left', async () => {
    await fixture.put(await fixture.event({ id: 'evt_1', type: 'refund.created' }), 'dead', {
      reason: 'it threw',
    })
    await fixture.put(
      await fixture.event({ id: 'evt_2', type: 'plan.updated', body: null }),
      'dead',
      { reason: 'unreadable', rearmedBy: 'operator' },
    )
    const dead = await listDead(fixture.db, { limit: 10 })
    expect(dead).toMatchObject([
      {
        event_id: 'evt_2',
        source: 'stripe:acct_1:test',
        reason: 'unreadable',
        rearmed_by: 'operator',
        has_body: false,
        deliveries: 1,
      },
      { event_id: 'evt_1', reason: 'it threw', rearmed_by: 'redelivery', has_body: true },
    ])
    expect(await listDead(fixture.db, { types: ['refund.created'], limit: 10 })).toHaveLength(1)
    expect(await listDead(fixture.db, { eventId: 'evt_2', limit: 10 })).toHaveLength(1)
  })
})
