import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { destinationStatus } from '../../src/report/destinations.ts'
import { explain } from '../../src/report/explain.ts'
import { seriesOf } from './gauge-series.ts'
import { causedBy } from '../../src/report/operation-consequences.ts'
import { nextStep } from '../../src/report/operation-story.ts'
import {
  findOperations,
  listOperations,
  openStates,
  operationsAbout,
} from '../../src/report/operations.ts'
import { status } from '../../src/report/status.ts'
import { LedgerDatabase, type LedgerFixture } from './ledger-fixture.ts'
import { outboxHistory, recordOperation, sha256, type OutboxHistory } from './outbox-fixture.ts'

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

const names = (rows: readonly { readonly operation_id: string }[]): string[] => {
  const known = Object.entries(outbox)
  return rows.map((row) => known.find(([, id]) => id === row.operation_id)?.[0] ?? 'other')
}

describe('listOperations', () => {
  it('lists what is not finished, the newest first, and nothing that is', async () => {
    const rows = await listOperations(fixture.db, { states: openStates, limit: 10 })
    expect(names(rows)).toEqual(['app', 'dead', 'asking', 'uncertain'])
  })

  it('lists by state, destination and order', async () => {
    const list = async (filter: object): Promise<string[]> =>
      names(await listOperations(fixture.db, { states: [], limit: 10, ...filter }))
    expect(await list({ states: ['sent'] })).toEqual(['renewed', 'sent'])
    expect(await list({ states: ['uncertain'] })).toEqual(['asking', 'uncertain'])
    expect(await list({ orderId: '1001' })).toHaveLength(6)
    expect(await list({ orderId: 'nobody' })).toEqual([])
    await recordOperation(fixture.db, { destination: 'crm' })
    expect(await list({ destination: 'crm' })).toEqual(['other'])
    expect(await list({ destination: 'email', states: openStates })).toHaveLength(4)
  })

  it('goes on where a page ended, without a gap or a repetition', async () => {
    const seen: string[] = []
    for (let after: string | undefined; ;) {
      const page = await listOperations(fixture.db, { states: [], after, limit: 3 })
      if (page.length === 0) break
      seen.push(...names(page))
      after = page.at(-1)?.sequence
    }
    const all = await listOperations(fixture.db, { states: [], limit: 100 })
    expect(seen).toEqual(names(all))
    expect(seen).toHaveLength(8)
  })

  it('tells the key that goes out, the hash of the request, and never the request', async () => {
    const rows = await listOperations(fixture.db, { states: ['sent'], limit: 10 })
    const [renewed, sent] = rows
    expect(renewed?.key).toBe(`${outbox.renewed}:2`)
    expect(sent?.key).toBe(outbox.sent)
    expect(sent?.request_sha256).toBe(sha256(`{"to":"${outbox.sent}"}`))
    expect(sent?.has_request).toBe(true)
    expect(
      JSON.stringify(await operationsAbout(fixture.db, { orderId: '1001', ids: [] })),
    ).not.toMatch(/"to"|secret/)
  })
})

describe('findOperations', () => {
  it('takes an id, its beginning, the key that the destination saw, and nothing shorter', async () => {
    const find = async (id: string): Promise<string[]> =>
      names(await findOperations(fixture.db, id))
    expect(await find(outbox.renewed)).toEqual(['renewed'])
    expect(await find(`${outbox.renewed}:2`)).toEqual(['renewed'])
    expect(await find(`operation:${outbox.renewed}`)).toEqual(['renewed'])
    expect(await find('DEAD00')).toEqual(['dead'])
    expect(await find('5e0000')).toEqual(['sent', 'renewed'])
    expect(await find('dead0')).toEqual([])
    expect(await find('------')).toEqual([])
    expect(await find("'; drop")).toEqual([])
  })
})

describe('explain', () => {
  it('tells which operations a decision asked for, and every attempt with what came of it', async () => {
    const [record] = (await explain(fixture.db, '1001'))?.records ?? []
    const decided = record?.timeline.find((entry) => entry.decision_id === outbox.decision)
    expect(decided?.details).toContain(`operation label to email (${outbox.sent})`)
    const called = record?.timeline.filter((entry) => entry.what === 'called') ?? []
    expect(called.filter((entry) => entry.text.startsWith('label'))).toMatchObject([
      {
        text: 'label to email: call 1, retry',
        details: ['because status 503', 'status 503, after 120 ms, by dispatcher:1'],
      },
      { text: 'label to email: call 2, sent' },
    ])
    expect(called.map((entry) => entry.text)).toEqual(
      expect.arrayContaining([
        'pickup to email: lookup 2, absent',
        'shipment to email: call 2, nobody knows',
        'parcel to email: lookup 2, no answer',
        'gift to email: call 1, refused',
      ]),
    )
    const renewed = called.find((entry) => entry.text === 'pickup to email: call 3, sent')
    expect(renewed?.details.join()).toContain(`under the key ${outbox.renewed}:2`)
    const canceled = record?.timeline.find((entry) => entry.text.startsWith('canceled'))
    expect(canceled?.details).toContain(`reminder to email (${outbox.canceled}) is not sent`)
    expect(record?.acts).toEqual([])
  })

  it('finds the order by an operation, its beginning, or the key that the destination saw', async () => {
    for (const id of [outbox.sent, `${outbox.renewed}:2`, 'dead0000']) {
      const found = await explain(fixture.db, id)
      expect(found?.asked).toMatchObject({ kind: 'operation', order_ids: ['1001'] })
      expect(found?.records[0]?.order?.order_id).toBe('1001')
    }
    // several begin so: nothing is guessed
    expect(await explain(fixture.db, '5e0000')).toBeNull()
  })

  it('tells the story of an operation that belongs to no order, with what a person did', async () => {
    const found = await explain(fixture.db, outbox.discarded)
    expect(found?.asked).toMatchObject({ kind: 'operation', order_ids: [] })
    expect(found?.records[0]?.timeline.map((entry) => entry.text)).toEqual([
      `ada did outbox discard operation:${outbox.discarded}`,
      'operation receipt to email was recorded',
    ])
    const asking = await recordOperation(fixture.db, { order: null, state: 'dead' })
    const finding = await fixture.finding({
      kind: 'operation_dead',
      order: null,
      evidence: { operation: asking },
    })
    const [byFinding] = (await explain(fixture.db, finding))?.records ?? []
    expect(byFinding?.operations.map((each) => each.operation_id)).toEqual([asking])
    const [record] = (await explain(fixture.db, asking))?.records ?? []
    expect(record?.findings.map((each) => each.kind)).toEqual(['operation_dead'])
  })

  it('links an event that our own call caused to the operation, both ways', async () => {
    const event = await fixture.event({ id: 'evt_own', type: 'refund.created' })
    const decision = await fixture.decide({
      event,
      kind: 'absorbed',
      order: '1001',
      from: 'paid',
      to: 'paid',
      evidence: { operation: outbox.sent },
    })
    const [record] = (await explain(fixture.db, 'evt_own'))?.records ?? []
    const entry = record?.timeline.find(
      (each) => each.decision_id === decision && each.what === 'decided',
    )
    expect(entry?.details).toContain(`caused by our own operation label to email (${outbox.sent})`)
    expect(await causedBy(fixture.db, { operation_id: outbox.sent, order_id: '1001' })).toEqual([
      {
        event_id: 'evt_own',
        event_type: 'refund.created',
        decision_id: decision,
        kind: 'absorbed',
      },
    ])
  })

  it('says that an answer came too late', async () => {
    const id = await recordOperation(fixture.db, {
      state: 'sent',
      tries: [{ outcome: 'sent', late: true }],
    })
    const [record] = (await explain(fixture.db, id))?.records ?? []
    const entry = record?.timeline.find(
      (each) => each.text === 'receipt to email: call 1, sent, too late',
    )
    expect(entry?.details[0]).toBe(
      'the answer came after its lease was lost: it is kept as evidence',
    )
  })
})

describe('nextStep', () => {
  async function stepOf(operation: Parameters<typeof recordOperation>[1]): Promise<string> {
    const id = await recordOperation(fixture.db, operation)
    const [found] = await findOperations(fixture.db, id)
    if (found === undefined) throw new Error('it is gone')
    const { at, text, asks } = nextStep(found)
    return `${at === null ? 'never' : 'then'}, ${asks ? 'asks' : 'by itself'}: ${text.replaceAll(id, 'ID')}`
  }

  it('says what happens next, and when, or what a person does', async () => {
    const uncertain = { state: 'uncertain', tries: [{ outcome: 'uncertain' }] } as const
    const forgotten = { ...uncertain, tries: [{ at: -90_000 }] } as const
    expect(await stepOf({})).toBe('then, by itself: it is sent')
    expect(await stepOf({ tries: [{ outcome: 'retry' }] })).toBe(
      'then, by itself: it is sent again, under the same key',
    )
    expect(await stepOf({ state: 'sending', tries: [{}] })).toBe(
      'then, by itself: dispatcher:1 has it; without an answer it is uncertain then',
    )
    expect(await stepOf(uncertain)).toBe(
      'then, by itself: the same request goes out again, under the same key',
    )
    expect(await stepOf(forgotten)).toBe(
      'then, by itself: its key is no longer remembered for certain: it is looked up first',
    )
    expect(await stepOf({ ...uncertain, promise: 'at_least_once' })).toBe(
      'then, by itself: it is looked up where that is possible, else sent again: it may arrive twice',
    )
    expect(await stepOf({ ...uncertain, nextIn: null })).toBe(
      'never, asks: find out at email whether it was done, then: hookledger outbox resolve ID --as sent (or --as not-done) --reason …',
    )
    expect(await stepOf({ state: 'dead' })).toMatch(/^never, asks: correct the cause/)
    expect(await stepOf({ state: 'discarded' })).toBe('never, by itself: nothing: it is finished')
  })
})

describe('destinationStatus', () => {
  it('tells of each destination what is due and for how long, what is open, and whether it is paused', async () => {
    await fixture.sql(
      `insert into hookledger.outbox_destinations (destination, promise, window_ms, failures, closed_until)
       values ('email', 'once', 82800000, 21, now() + interval '1 minute'), ('crm', 'at_least_once', 0, 3, now() - interval '1 minute')`,
    )
    await recordOperation(fixture.db, { destination: 'gone', nextIn: -3600 })
    await recordOperation(fixture.db, { destination: 'crm', state: 'sending', tries: [{}] })
    const [crm, email, gone] = await destinationStatus(fixture.db)
    expect(crm).toMatchObject({
      destination: 'crm',
      promise: 'at_least_once',
      sending: 1,
      due: 0,
      oldest_due_age_ms: null,
      closed_until: null,
    })
    expect(email).toMatchObject({
      promise: 'once',
      pending: 1,
      due: 0,
      uncertain: 2,
      dead: 1,
      asking: 2,
      failures: 21,
    })
    expect(email?.closed_until).not.toBeNull()
    expect(gone).toMatchObject({ promise: null, pending: 1, due: 1 })
    expect(Math.round((gone?.oldest_due_age_ms ?? 0) / 60_000)).toBe(60)
    expect((await status(fixture.db)).destinations.map((each) => each.destination)).toEqual([
      'crm',
      'email',
      'gone',
    ])
  })
})

describe('gauges', () => {
  it('counts what is open and the age of what is due', async () => {
    await recordOperation(fixture.db, { nextIn: -120 })
    await recordOperation(fixture.db, { state: 'sending', tries: [{}] })
    const read = await seriesOf(fixture.db)
    expect(read).toMatchObject({
      'outbox_backlog pending': 2,
      'outbox_backlog sending': 1,
      'outbox_backlog uncertain': 2,
      'outbox_backlog dead': 1,
      outbox_destinations_paused: 0,
    })
    expect(Math.round((read['outbox_oldest_due_seconds'] ?? 0) / 60)).toBe(2)
  })
})
