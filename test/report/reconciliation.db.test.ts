import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { explain } from '../../src/report/explain.ts'
import { seriesOf } from './gauge-series.ts'
import { status } from '../../src/report/status.ts'
import { LedgerDatabase, type LedgerFixture } from './ledger-fixture.ts'
import { reconciledHistory, recordCheckpoint, recordRun } from './reconciliation-fixture.ts'

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

describe('the status of reconciliation', () => {
  it('is empty where nothing was ever reconciled', async () => {
    expect((await status(fixture.db)).reconciliation).toEqual({
      checkpoints: [],
      runs: [],
      repairs: { applied: 0, unverified: 0, oldest_unverified_age_ms: null },
    })
  })

  it('tells how far each kind of record was looked at, and since when that is', async () => {
    const run = await recordRun(fixture)
    await recordCheckpoint(fixture, { kind: 'refund', run, ageSeconds: 600, inWork: true })
    await recordCheckpoint(fixture, { kind: 'event', run, ageSeconds: 90 })
    const { checkpoints } = (await status(fixture.db)).reconciliation
    expect(checkpoints).toMatchObject([
      { source: 'stripe:acct_1:test', kind: 'event', in_work: false, deep_at: null },
      { source: 'stripe:acct_1:test', kind: 'refund', in_work: true },
    ])
    expect(checkpoints.map((each) => Math.round(each.age_ms / 30_000))).toEqual([3, 20])
  })

  it('tells of the newest pass, and of the newest complete one where that is another', async () => {
    await recordRun(fixture, { at: -900 })
    const complete = await recordRun(fixture, { at: -600 })
    const error = 'the provider answered 503 for 60 s: the next pass goes on'
    const newest = await recordRun(fixture, { at: -300, state: 'incomplete', error })
    const { runs } = (await status(fixture.db)).reconciliation
    expect(runs.map((run) => [run.run_id, run.state])).toEqual([
      [newest, 'incomplete'],
      [complete, 'complete'],
    ])
    expect(runs[0]).toMatchObject({ source: 'stripe', calls: 12, injected: 3, opened: 1, error })
    expect(runs[1]?.coverage).toMatchObject({ event: { records: 40 } })
    const last = await recordRun(fixture, { at: -10 })
    const now = (await status(fixture.db)).reconciliation.runs
    expect(now.map((run) => run.run_id)).toEqual([last])
  })

  it('counts repairs that nobody verified yet, with the age of the oldest', async () => {
    const { repair } = await reconciledHistory(fixture)
    expect((await status(fixture.db)).reconciliation.repairs).toMatchObject({
      applied: 1,
      unverified: 0,
    })
    await fixture.sql('set local session_replication_role = replica')
    await fixture.sql(
      `update hookledger.repairs set verified_at = null, applied_at = now() - interval '5 minutes' where repair_id = $1`,
      [repair],
    )
    const { repairs } = (await status(fixture.db)).reconciliation
    expect(repairs.unverified).toBe(1)
    expect(Math.round((repairs.oldest_unverified_age_ms ?? 0) / 60_000)).toBe(5)
  })
})

describe('the gauges of reconciliation', () => {
  it('give the oldest checkpoint, open findings by class, and repairs to be verified', async () => {
    const run = await recordRun(fixture)
    await recordCheckpoint(fixture, { kind: 'event', run, ageSeconds: 240 })
    await recordCheckpoint(fixture, { kind: 'refund', run, ageSeconds: 60 })
    await fixture.finding({ kind: 'event_missing', class: 'lag' })
    await fixture.finding({ kind: 'paid_there', order: '1001' })
    await fixture.finding({ kind: 'paid_twice', order: '1001', state: 'repairing' })
    const read = await seriesOf(fixture.db)
    expect(read).toMatchObject({
      'findings lag': 1,
      'findings contradiction': 2,
      'reconcile_differences paid_there': 1,
      repaired_contradictions_total: 0,
      repairs_unverified: 0,
    })
    const age = read['reconciliation_oldest_checkpoint_seconds'] ?? 0
    expect(Math.round(age / 60)).toBe(4)
  })
})

describe('explain', () => {
  it('tells of a finding the pass that saw it, the repair with who and why, and that it was verified', async () => {
    const history = await reconciledHistory(fixture)
    const found = await explain(fixture.db, history.repaired)
    expect(found?.asked.kind).toBe('finding')
    const [record] = found?.records ?? []
    expect(record?.runs.map((run) => run.run_id)).toEqual([history.run])
    expect(record?.repairs).toMatchObject([
      { repair_id: history.repair, reason: 'the customer wrote', decision_id: history.decision },
    ])
    const told = record?.timeline ?? []
    const opened = told.find((entry) => entry.text.startsWith('finding refunded_there ('))
    expect(opened?.details).toContain(
      `during the scheduled pass over stripe by reconciler (${history.run})`,
    )
    const repaired = told.find((entry) => entry.what === 'repaired')
    expect(repaired?.text).toBe('worker-1 repaired refunded_there by provider, stays paid')
    expect(repaired?.details).toEqual([
      'because the customer wrote',
      `repair ${history.repair} of finding ${history.repaired}, decision ${history.decision}`,
    ])
    const closed = told.find((entry) => entry.what === 'closed')
    expect(closed?.details[0]).toBe('because both sides agree')
    // its act is told once, as the repair
    expect(told.filter((entry) => entry.what === 'acted').map((entry) => entry.text)).toEqual([
      `ada did findings dismiss finding:${history.dismissed}`,
    ])
    expect(told.find((entry) => entry.what === 'verified')?.text).toBe(
      'repair of refunded_there verified: both sides agree',
    )
  })

  it('says of a repair that nobody has verified it yet', async () => {
    const history = await reconciledHistory(fixture)
    await fixture.sql('set local session_replication_role = replica')
    await fixture.sql(`update hookledger.repairs set verified_at = null`)
    const [record] = (await explain(fixture.db, '1001'))?.records ?? []
    const repaired = record?.timeline.find((entry) => entry.what === 'repaired')
    expect(repaired?.details).toContain('not verified yet: the next pass asks again')
    expect(record?.timeline.some((entry) => entry.what === 'verified')).toBe(false)
    expect(record?.repairs[0]?.repair_id).toBe(history.repair)
  })
})
