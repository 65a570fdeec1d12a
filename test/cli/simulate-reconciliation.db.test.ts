import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import {
  isReconciledPast,
  reportReconciliation,
  timeIn,
} from '../../src/cli/simulate-reconciliation.ts'
import { LedgerDatabase, type LedgerFixture } from '../report/ledger-fixture.ts'
import { recordRun } from '../report/reconciliation-fixture.ts'

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

describe('a pass past the end of a simulation', () => {
  it('is one that began after it and came to its end, with the checkpoints and not a window by hand', async () => {
    const past = await timeIn(fixture.db, -30_000)
    await recordRun(fixture, { at: -60 })
    await recordRun(fixture, { at: -20, how: 'range' })
    await recordRun(fixture, { at: -15, state: 'running' })
    await recordRun(fixture, { at: -10, state: 'incomplete', error: 'it answered 503' })
    expect(await isReconciledPast(fixture.db, past)).toBe(false)
    await recordRun(fixture, { at: -5 })
    expect(await isReconciledPast(fixture.db, past)).toBe(true)
  })
})

describe('the report on what was done on purpose', () => {
  it('tells what was lost and is here, what is missing, and which tampering has a finding', async () => {
    const lost = ['evt_1', 'evt_2', 'evt_3'].map((eventId) => ({
      eventId,
      type: 'refund.created',
      orderId: '1001',
    }))
    for (const id of ['evt_1', 'evt_2']) await fixture.event({ id, type: 'refund.created' })
    await fixture.sql('set local session_replication_role = replica')
    await fixture.sql(
      `update hookledger.inbox_events set via = 'reconciliation' where event_id = 'evt_1'`,
    )
    await fixture.sql('reset session_replication_role')
    const finding = await fixture.finding({ kind: 'tampered', order: '1001' })
    await fixture.finding({ kind: 'entitlement_without_state', order: '1001' })
    await fixture.finding({ kind: 'tampered', order: '1002', state: 'closed' })
    await recordRun(fixture, { at: -5 })
    const tampered = [
      { orderId: '1001', trick: 'state_changed' },
      { orderId: '1002', trick: 'access_given' },
    ] as const
    const past = await timeIn(fixture.db, -30_000)
    expect(await reportReconciliation(fixture.db, { lost, tampered }, past)).toEqual({
      lost: 3,
      recovered: 1,
      missing: ['evt_3'],
      tampered: [
        { order_id: '1001', trick: 'state_changed', finding_id: finding },
        { order_id: '1002', trick: 'access_given', finding_id: null },
      ],
      passes: 1,
      calls: 12,
      records: 40,
      repaired: 0,
      complete: true,
    })
  })
})
