import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Database } from '../../src/postgres/executor.ts'
import { explain, type Explanation } from '../../src/report/explain.ts'
import { LedgerDatabase, type LedgerFixture } from './ledger-fixture.ts'

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

async function explained(id: string): Promise<Explanation> {
  const found = await explain(fixture.db, id)
  if (found === null) throw new Error(`${id} is unknown`)
  return found
}

function told(found: Explanation): string[] {
  return found.records.flatMap((record) => record.timeline.map((entry) => entry.text))
}

describe('explain', () => {
  it('tells the story of an order in order of time, with what each decision made and why', async () => {
    const found = await explained('1001')
    expect(found.asked).toMatchObject({ kind: 'order', order_ids: ['1001'] })
    const [record] = found.records
    expect(record?.order).toMatchObject({
      order_id: '1001',
      state: 'paid',
      entitles: true,
      names: [{ kind: 'payment_intent', name: 'pi_1' }],
    })
    expect(told(found)).toEqual([
      'checkout.session.completed evt_paid arrived',
      'payment_intent.succeeded evt_intent arrived',
      'refund.created evt_refund arrived',
      'checkout.session.completed evt_paid: fulfilled, pending → paid',
      'payment_intent.succeeded evt_intent: absorbed, stays paid',
      'refund.created evt_refund: moved, stays paid',
      'evt_paid was delivered again, the last of 3 times',
    ])
    const granted = record?.timeline.find((entry) => entry.decision_id === history.grant)
    expect(granted?.details).toEqual([
      'because pending to paid: license',
      'payment pi_1 49.00 USD',
      'effect license',
      'granted email:ada@example.com pro',
      `decision ${history.grant} by worker-1, version v1`,
    ])
  })

  it.each([
    ['an event', 'evt_intent', 'event'],
    ['a name or payment', 'pi_1', 'name'],
    ['the reference of an effect', 're_1', 'effect'],
  ])('finds the order by %s', async (_, id, kind) => {
    const found = await explained(id)
    expect(found.asked).toMatchObject({ kind, id, order_ids: ['1001'] })
    expect(found.records[0]?.order?.order_id).toBe('1001')
  })

  it('finds an order by a payment that is no name of it', async () => {
    const key = await fixture.event({ id: 'evt_second', type: 'payment_intent.succeeded' })
    await fixture.decide({
      event: key,
      kind: 'contradicted',
      order: '1001',
      from: 'paid',
      to: 'paid',
      payment: { id: 'pi_low', amount: 100 },
    })
    const found = await explained('pi_low')
    expect(found.asked.kind).toBe('payment')
    expect(found.records[0]?.timeline.flatMap((entry) => entry.details)).toContain(
      'payment pi_low 1.00 USD, kept but not applied',
    )
  })

  it('finds our own numbers of events and decisions', async () => {
    expect((await explained(`event:${history.paid}`)).asked.event_keys).toEqual([history.paid])
    expect((await explained(`decision:${history.grant}`)).asked.order_ids).toEqual(['1001'])
  })

  it('finds a finding by the beginning of its id, and tells its figures', async () => {
    const id = await fixture.finding({
      kind: 'paid_twice',
      order: '1001',
      evidence: { payment: 'pi_2', amount: 9007199254740993n.toString() },
    })
    const found = await explained(id.slice(0, 8))
    expect(found.asked).toMatchObject({ kind: 'finding', id })
    expect(told(found)).toContain('finding paid_twice (contradiction, high)')
  })

  it('says of an event that waits what for and until when', async () => {
    const key = await fixture.event({ id: 'evt_wait', type: 'charge.dispute.closed' })
    await fixture.put(key, 'deferred', { waitsFor: 'payment_intent pi_9' })
    const found = await explained('evt_wait')
    expect(found.records[0]?.order).toBeNull()
    expect(found.records[0]?.events[0]).toMatchObject({
      state: 'deferred',
      waits_for: 'payment_intent pi_9',
    })
    expect(found.records[0]?.events[0]?.deadline_at).not.toBeNull()
  })

  it('finds what waits for a name that no order has yet', async () => {
    const key = await fixture.event({ id: 'evt_wait', type: 'charge.dispute.closed' })
    await fixture.put(key, 'deferred')
    await fixture.name('payment_intent', 'pi_9', null)
    const found = await explained('pi_9')
    expect(found.asked).toMatchObject({ kind: 'name', order_ids: [], event_keys: [key] })
  })

  it('shows among the events of an order those that wait for it', async () => {
    const key = await fixture.event({ id: 'evt_wait', type: 'charge.dispute.closed' })
    await fixture.put(key, 'deferred')
    await fixture.sql(
      `insert into hookledger.inbox_waits (kind, source_id, name, event_key) values ('order', 0, '1001', $1)`,
      [key],
    )
    const found = await explained('1001')
    expect(found.records[0]?.events.map((event) => event.event_id)).toContain('evt_wait')
  })

  it('tells that other bytes came under the same id', async () => {
    await fixture.sql(
      `insert into hookledger.deliveries (source_id, event_id, body_sha256) values (1, 'evt_intent', '\\x00')`,
    )
    const found = await explained('evt_intent')
    const again = found.records[0]?.timeline.find(
      (entry) => entry.what === 'redelivered' && entry.event_id === 'evt_intent',
    )
    expect(again?.details).toEqual(['2 different bodies came under this id; the first one counts'])
  })

  it('tells what an operator did, and why', async () => {
    await fixture.sql(
      `insert into hookledger.operator_acts (act, target, reason, actor) values ('replay', $1, 'fixed the parser', 'ada')`,
      [`event:${history.paid}`],
    )
    const acts = (await explained('1001')).records[0]?.timeline.filter(
      (entry) => entry.what === 'acted',
    )
    expect(acts).toMatchObject([
      { text: `ada did replay event:${history.paid}`, details: ['because fixed the parser'] },
    ])
  })

  it('knows an order that was never opened, since what claimed it was a contradiction', async () => {
    const claims = [
      { id: 'evt_refused', evidence: { order: '2002', other_order: '1001' } },
      { id: 'evt_claimed_twice', evidence: { orders: '2002, 2003' } },
    ]
    for (const { id, evidence } of claims) {
      const event = await fixture.event({ id, type: 'checkout.session.completed' })
      await fixture.decide({ event, kind: 'contradicted', evidence })
      await fixture.finding({ kind: 'name_of_other_order', event, evidence })
    }
    const found = await explained('2002')
    expect(found.asked).toMatchObject({ kind: 'order', id: '2002', order_ids: [] })
    expect(told(found)).toEqual(
      expect.arrayContaining([
        'checkout.session.completed evt_refused: contradicted',
        'checkout.session.completed evt_claimed_twice: contradicted',
      ]),
    )
    expect((await explained('1001')).asked.order_ids).toEqual(['1001'])
  })

  it('keeps amounts and figures past 2^53 exact', async () => {
    await fixture.sql(
      `alter table hookledger.ledger_decisions disable trigger ledger_decisions_append_only`,
    )
    await fixture.sql(
      `update hookledger.ledger_decisions set evidence = '{"amount": 9007199254740993}' where decision_id = $1`,
      [history.grant],
    )
    await fixture.sql(`update hookledger.ledger_payments set amount = 9007199254740993`)
    const [record] = (await explained('1001')).records
    expect(record?.payments[0]?.amount).toBe(9007199254740993n)
    expect(record?.decisions.find((each) => each.decision_id === history.grant)?.evidence).toEqual({
      amount: 9007199254740993n,
    })
  })

  it('reads only the newest decisions of an order with very many, and counts the rest', async () => {
    await fixture.sql(
      `insert into hookledger.ledger_decisions (order_id, kind, final, reason, actor) select '1001', 'skipped', false, 'again', 'worker-1' from generate_series(1, 600)`,
    )
    const [record] = (await explained('1001')).records
    expect(record?.decisions).toHaveLength(500)
    expect(record?.omitted_decisions).toBe(103)
  })

  it('knows nothing of an unknown id', async () => {
    expect(await explain(fixture.db, 'nobody')).toBeNull()
    expect(await explain(fixture.db, "'; drop table x; --")).toBeNull()
  })

  it('reads by index, also where statistics say little', async () => {
    await fixture.sql(
      `insert into hookledger.order_names (source_id, kind, name, order_id) select 1, 'charge', 'ch_' || n, '1001' from generate_series(1, 30000) n`,
    )
    await fixture.sql('analyze hookledger.order_names')
    const statements: string[] = []
    const watched: Database = {
      ...fixture.db,
      query: (statement) => {
        statements.push(statement.text)
        return fixture.db.query(statement)
      },
    }
    await explain(watched, 'ch_29999')
    const lookup = statements.find((text) => text.includes('with recursive kinds')) ?? ''
    const plan = await fixture.sql<{ 'QUERY PLAN': string }>(
      `explain ${lookup.replaceAll('$1', `'ch_29999'`)}`,
    )
    expect(plan.map((row) => row['QUERY PLAN']).join('\n')).not.toContain('Seq Scan on order_names')
  })
})
