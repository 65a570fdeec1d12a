import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { audit } from '../../src/report/audit.ts'
import { LedgerDatabase, type LedgerFixture } from './ledger-fixture.ts'
import { act, outboxHistory, recordOperation, type OutboxHistory } from './outbox-fixture.ts'

let database: LedgerDatabase
let fixture: LedgerFixture
let end: () => Promise<void>
let outbox: OutboxHistory

beforeAll(async () => {
  database = await LedgerDatabase.create()
})

afterAll(() => database.drop())

beforeEach(async () => {
  ;({ fixture, end } = await database.trying())
  await fixture.cleanHistory()
  outbox = await outboxHistory(fixture)
})

afterEach(() => end())

/** Opens the gates that the schema keeps shut, as only its owner can. */
async function unguarded(statement: string): Promise<void> {
  await fixture.sql('set local session_replication_role = replica')
  await fixture.sql(statement)
  await fixture.sql('reset session_replication_role')
}

async function brokenNow(): Promise<string[]> {
  const { checks } = await audit(fixture.db)
  return checks.filter((each) => !each.holds).map((each) => each.check)
}

describe('audit of the outbox', () => {
  it.each([
    ['nothing was known to be uncertain', [{ outcome: 'retry' }, { at: 90_000, outcome: 'sent' }]],
    [
      'a lookup proved that it was not done',
      [
        { outcome: 'uncertain' },
        { kind: 'lookup', at: 90_000, outcome: 'absent' },
        { at: 90_001, outcome: 'sent' },
      ],
    ],
  ] as const)('lets a key be used past its window where %s', async (_, tries) => {
    await recordOperation(fixture.db, { order: null, state: 'sent', tries })
    expect(await brokenNow()).toEqual([])
  })

  it('takes no lookup for a proof that nobody answered', async () => {
    for (const outcome of [{}, { outcome: 'no_answer' }]) {
      const tries = [
        { outcome: 'uncertain' },
        { kind: 'lookup', at: 90_000, ...outcome },
        { at: 90_001, outcome: 'sent' },
      ] as const
      await recordOperation(fixture.db, { order: null, state: 'sent', tries })
    }
    const { checks } = await audit(fixture.db)
    expect(checks.find((each) => each.check === 'called_past_window')?.violations).toBe(2)
  })

  it('counts the window anew from the first call after a proof', async () => {
    const tries = [
      { outcome: 'uncertain' },
      { kind: 'lookup', at: 90_000, outcome: 'absent' },
      { at: 90_001, outcome: 'uncertain' },
      { at: 180_000, outcome: 'sent' },
    ] as const
    await recordOperation(fixture.db, { order: null, state: 'sent', tries })
    expect(await brokenNow()).toEqual(['called_past_window'])
  })

  it('counts the window anew from a call past it of which nothing was unknown', async () => {
    const tries = (last: number) =>
      [
        { outcome: 'retry' },
        { at: 90_000, outcome: 'uncertain' },
        { at: last, outcome: 'sent' },
      ] as const
    const operation = { order: null, state: 'sent' } as const
    await recordOperation(fixture.db, { ...operation, tries: tries(90_060) })
    expect(await brokenNow()).toEqual([])
    await recordOperation(fixture.db, { ...operation, tries: tries(180_000) })
    expect(await brokenNow()).toEqual(['called_past_window'])
  })

  it('finds attempts and answers of what was never recorded', async () => {
    await unguarded(
      `insert into hookledger.outbox_answers (attempt_id, outcome) values (999999, 'sent')`,
    )
    expect(await brokenNow()).toEqual(['called_before_commit'])
  })

  it('takes for unknown what was answered only after the next call had begun', async () => {
    const tries = [
      { outcome: 'retry', late: true },
      { at: 90_000, outcome: 'sent' },
    ] as const
    const id = await recordOperation(fixture.db, { order: null, state: 'sent', tries })
    expect(await brokenNow()).toEqual([])
    await unguarded(`update hookledger.outbox_answers set answered_at = now() + interval '2 days'
      where attempt_id = (select attempt_id from hookledger.outbox_attempts where operation_id = '${id}' and number = 1)`)
    expect(await brokenNow()).toEqual(['called_past_window'])
  })

  it('does not look at windows where the destination honors no id: at least once is what it says', async () => {
    const tries = [{ outcome: 'uncertain' }, { at: 90_000, outcome: 'sent' }] as const
    const operation = { order: null, state: 'sent', promise: 'at_least_once', tries } as const
    await recordOperation(fixture.db, operation)
    expect(await brokenNow()).toEqual([])
  })

  it('takes the recorded word of a person for an answer', async () => {
    const id = await recordOperation(fixture.db, {
      order: null,
      state: 'sent',
      tries: [{ outcome: 'uncertain' }],
    })
    expect(await brokenNow()).toEqual(['sent_without_answer'])
    await act(fixture, 'outbox resolve', id, { as: 'not_done' })
    expect(await brokenNow()).toEqual(['sent_without_answer'])
    await act(fixture, 'outbox resolve', id, { as: 'sent' })
    expect(await brokenNow()).toEqual([])
  })

  it('lets a person allow a new key, and no key after it', async () => {
    const tries = [
      { outcome: 'refused' },
      { generation: 2, outcome: 'uncertain' },
      { generation: 3, outcome: 'sent' },
    ]
    const id = await recordOperation(fixture.db, {
      order: null,
      state: 'sent',
      generation: 3,
      tries,
    })
    await act(fixture, 'outbox retry', id, { from: 'dead', key_generation: 2 })
    const { checks } = await audit(fixture.db)
    const check = checks.find((each) => each.check === 'new_key_without_proof')
    expect(check?.examples).toEqual([{ key: id, detail: 'has key 3 without proof about key 2' }])
  })

  it('finds an operation that its decision does not name', async () => {
    await recordOperation(fixture.db, {
      name: 'smuggled',
      effect: ['shipment', ''],
      decision: outbox.decision,
    })
    expect(await brokenNow()).toEqual(['operation_without_decision'])
  })
})
