import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { planReplay, replayMany } from '../../src/inbox/replay-many.ts'
import { replayEvent, replayKeys, type ReplayableState } from '../../src/inbox/replay.ts'
import { LedgerDatabase, type LedgerFixture } from '../report/ledger-fixture.ts'

const by = { reason: 'the parser is fixed', actor: 'ada' }
let database: LedgerDatabase
let fixture: LedgerFixture
let end: () => Promise<void>
let history: { paid: string; grant: string; refund: string }

beforeAll(async () => {
  database = await LedgerDatabase.create()
})

afterAll(() => database.drop())

beforeEach(async () => {
  ;({ fixture, end } = await database.trying())
  history = await fixture.cleanHistory()
})

afterEach(() => end())

async function eventIn(
  state: 'dead' | 'ignored' | 'deferred' | 'delayed',
  id: string,
  body?: null,
): Promise<string> {
  const key = await fixture.event({
    id,
    type: 'refund.created',
    ...(body === null ? { body } : {}),
  })
  await fixture.put(key, state)
  return key
}

async function stateOf(id: string): Promise<string | undefined> {
  const [row] = await fixture.sql<{ state: string }>(
    'select state from hookledger.webhook_inbox where event_id = $1',
    [id],
  )
  return row?.state
}

async function ledger(): Promise<unknown> {
  const tables = [
    'ledger_decisions',
    'fulfillment_effects',
    'entitlements',
    'orders',
    'ledger_payments',
  ]
  const contents = await Promise.all(
    tables.map((table) => fixture.sql(`select * from hookledger.${table} order by 1, 2, 3`)),
  )
  return contents
}

describe('replayEvent', () => {
  it.each(['dead', 'ignored', 'deferred', 'delayed'] as const)(
    'puts a %s event back on the ready list with new attempts',
    async (state) => {
      const key = await eventIn(state, 'evt_1')
      expect(await replayEvent(fixture.db, { id: 'evt_1' }, by)).toEqual({
        outcome: 'replayed',
        event_key: key,
        from: state,
      })
      expect(await stateOf('evt_1')).toBe('pending')
      expect(
        await fixture.sql('select attempts from hookledger.inbox_ready where event_key = $1', [
          key,
        ]),
      ).toEqual([{ attempts: 0 }])
      expect(
        await fixture.sql('select 1 from hookledger.inbox_waits where event_key = $1', [key]),
      ).toEqual([])
    },
  )

  it('records who did it, why, and from which state', async () => {
    const key = await eventIn('dead', 'evt_1')
    await replayEvent(fixture.db, { id: 'evt_1' }, by)
    expect(
      await fixture.sql('select act, target, reason, actor, details from hookledger.operator_acts'),
    ).toEqual([
      {
        act: 'replay',
        target: `event:${key}`,
        reason: by.reason,
        actor: 'ada',
        details: { from: 'dead' },
      },
    ])
  })

  it('answers an event with a final decision with that decision and changes nothing', async () => {
    const before = await ledger()
    const answer = await replayEvent(fixture.db, { id: 'evt_paid' }, by)
    expect(answer).toMatchObject({
      outcome: 'recorded',
      event_key: history.paid,
      decision: { decision_id: history.grant, kind: 'fulfilled', order_id: '1001' },
    })
    expect(await ledger()).toEqual(before)
    expect(await fixture.sql('select 1 from hookledger.inbox_ready')).toEqual([])
    expect(await fixture.sql('select 1 from hookledger.operator_acts')).toEqual([])
  })

  it('says that an event on the ready list is pending, and records no act', async () => {
    const key = await fixture.event({ id: 'evt_1', type: 'refund.created' })
    await fixture.put(key, 'ready')
    expect(await replayEvent(fixture.db, { id: 'evt_1' }, by)).toEqual({
      outcome: 'pending',
      event_key: key,
    })
    expect(await fixture.sql('select 1 from hookledger.operator_acts')).toEqual([])
  })

  it('refuses an event without a body, which stays as it is', async () => {
    await eventIn('dead', 'evt_1', null)
    await expect(replayEvent(fixture.db, { id: 'evt_1' }, by)).rejects.toMatchObject({
      code: 'HKL_INBOX_PAYLOAD_EXPIRED',
      message: expect.stringContaining('payload expired'),
    })
    expect(await stateOf('evt_1')).toBe('dead')
  })

  it('replays an event whose body was moved aside when its day was dropped', async () => {
    const key = await eventIn('dead', 'evt_1', null)
    await fixture.sql(`insert into hookledger.payloads_held (event_key, body) values ($1, '{}')`, [
      key,
    ])
    expect(await replayEvent(fixture.db, { id: 'evt_1' }, by)).toMatchObject({
      outcome: 'replayed',
    })
  })

  it('keeps the deadline of an event that waits, and the mark that a finding is open', async () => {
    const deadline = new Date(Date.now() + 3_600_000)
    const key = await fixture.event({ id: 'evt_1', type: 'refund.created' })
    await fixture.put(key, 'deferred', { deadline: deadline.toISOString() })
    await replayEvent(fixture.db, { id: 'evt_1' }, by)
    expect(
      await fixture.sql('select deadline_at, waits_for, overdue from hookledger.inbox_ready'),
    ).toEqual([{ deadline_at: deadline, waits_for: 'payment_intent pi_9', overdue: false }])
    await eventIn('dead', 'evt_2')
    await replayEvent(fixture.db, { id: 'evt_2' }, by)
    expect(await fixture.sql('select 1 from hookledger.inbox_ready where overdue')).toHaveLength(1)
  })

  it('knows no event that never came, and asks which one is meant where two sources have the id', async () => {
    await expect(replayEvent(fixture.db, { id: 'evt_none' }, by)).rejects.toMatchObject({
      code: 'HKL_INBOX_EVENT_UNKNOWN',
    })
    await fixture.sql(
      `insert into hookledger.sources (provider, provider_account, environment) values ('stripe', 'acct_2', 'test')`,
    )
    await fixture.sql(
      `insert into hookledger.inbox_events (source_id, event_id, event_type, body_sha256, body_bytes) values (2, 'evt_paid', 'x', '', 0)`,
    )
    await expect(replayEvent(fixture.db, { id: 'evt_paid' }, by)).rejects.toMatchObject({
      code: 'HKL_INBOX_NOT_REPLAYABLE',
    })
    expect(
      await replayEvent(fixture.db, { id: 'evt_paid', source: 'stripe:acct_1' }, by),
    ).toMatchObject({ event_key: history.paid })
    expect(await replayEvent(fixture.db, { id: `event:${history.paid}` }, by)).toMatchObject({
      event_key: history.paid,
    })
  })
})

describe('replayMany', () => {
  const all: readonly ReplayableState[] = ['dead', 'ignored', 'deferred', 'delayed']

  it('replays all dead events and nothing else', async () => {
    for (let n = 0; n < 3; n++) await eventIn('dead', `evt_dead_${n}`)
    await eventIn('dead', 'evt_expired', null)
    await eventIn('ignored', 'evt_ignored')
    const plan = await planReplay(fixture.db, {}, ['dead'])
    expect(plan.matched).toEqual({ dead: 4 })
    expect(await replayMany(fixture.db, {}, plan, by)).toMatchObject({
      replayed: 3,
      expired: 1,
      busy: 0,
    })
    expect(await stateOf('evt_ignored')).toBe('ignored')
    expect(await stateOf('evt_expired')).toBe('dead')
  })

  it('takes only the types, the source and the time that are asked for', async () => {
    await eventIn('ignored', 'evt_1')
    const other = await fixture.event({
      id: 'evt_2',
      type: 'plan.updated',
      receivedAt: '2026-01-01T00:00:00Z',
    })
    await fixture.put(other, 'ignored')
    expect((await planReplay(fixture.db, { types: ['plan.updated'] }, all)).matched).toMatchObject({
      ignored: 1,
    })
    expect(
      (await planReplay(fixture.db, { until: new Date('2026-01-02') }, all)).matched,
    ).toMatchObject({ ignored: 1 })
    expect(
      (await planReplay(fixture.db, { since: new Date('2026-01-02') }, all)).matched,
    ).toMatchObject({ ignored: 1 })
    expect((await planReplay(fixture.db, { source: 'stripe:acct_9' }, all)).matched).toMatchObject({
      ignored: 0,
    })
  })

  it('changes nothing of the ledger when everything ever received is replayed', async () => {
    const before = await ledger()
    const plan = await planReplay(fixture.db, {}, all)
    expect(await replayMany(fixture.db, {}, plan, by)).toEqual({
      replayed: 0,
      recorded: 3,
      expired: 0,
      busy: 0,
    })
    expect(await ledger()).toEqual(before)
  })

  it('goes on in chunks to the end, past what it cannot replay', async () => {
    await fixture.sql(
      `with e as (insert into hookledger.inbox_events (source_id, event_id, event_type, body_sha256, body_bytes)
         select 1, 'bulk_' || n, 'plan.updated', '', 0 from generate_series(1, 1200) n returning event_key, received_at)
       insert into hookledger.inbox_ignored (event_key, received_on, reason, event_type) select event_key, (received_at at time zone 'UTC')::date, 'x', 'plan.updated' from e`,
    )
    await fixture.sql(
      `insert into hookledger.payloads (event_key, received_on, body) select event_key, received_on, '{}' from hookledger.inbox_ignored where event_key % 2 = 0`,
    )
    const seen: number[] = []
    const plan = await planReplay(fixture.db, {}, ['ignored'])
    const report = await replayMany(fixture.db, {}, plan, by, {
      onProgress: (each) => seen.push(each.replayed + each.expired),
    })
    expect(report).toMatchObject({ replayed: 600, expired: 600 })
    expect(seen).toEqual([500, 1000, 1200])
  })

  it('stops between two chunks when it is told to', async () => {
    await eventIn('dead', 'evt_1')
    const plan = await planReplay(fixture.db, {}, ['dead'])
    expect(
      await replayMany(fixture.db, {}, plan, by, { signal: AbortSignal.abort() }),
    ).toMatchObject({ replayed: 0 })
  })
})

describe('replayEvent, beside others', () => {
  let committing: LedgerFixture

  beforeEach(() => {
    committing = database.committing()
  })

  it('leaves an event alone that a worker has in its hands', async () => {
    const key = await committing.event({ id: 'evt_held', type: 'refund.created' })
    await committing.put(key, 'dead')
    const worker = await database.pool.connect()
    try {
      await worker.query('begin')
      await worker.query('delete from hookledger.inbox_dead where event_key = $1', [key])
      expect(await replayEvent(committing.db, { id: 'evt_held' }, by)).toEqual({
        outcome: 'pending',
        event_key: key,
      })
      await worker.query('rollback')
    } finally {
      worker.release()
    }
    expect(
      await committing.sql('select 1 from hookledger.inbox_dead where event_key = $1', [key]),
    ).toHaveLength(1)
  })

  it('is done once when several operators ask at the same time', async () => {
    const key = await committing.event({ id: 'evt_wanted', type: 'refund.created' })
    await committing.put(key, 'dead')
    const answers = await Promise.all(
      [1, 2, 3, 4].map(() => replayKeys(committing.db, 'dead', [key], by)),
    )
    expect(answers.flatMap((each) => each.replayed)).toEqual([key])
    expect(
      await committing.sql('select 1 from hookledger.operator_acts where target = $1', [
        `event:${key}`,
      ]),
    ).toHaveLength(1)
  })
})
