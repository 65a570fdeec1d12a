import { afterEach, describe, expect, it } from 'vitest'
import type { RecordReference } from '../../src/workflow/records.ts'
import {
  RecordsError,
  type Fact,
  type MadeEvent,
  type ProviderRecord,
} from '../../src/workflow/records.ts'
import { probe } from '../support/probe.ts'
import {
  checkpointOf,
  createReconcileProbe,
  doors,
  type ReconcileProbe,
  type ReconcileProbeOptions,
} from '../support/reconcile-probe.ts'
import { garbage, listed } from '../support/scripted-records.ts'

const closing: (() => Promise<unknown>)[] = []

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const minute = 60_000
const month = 30 * 86_400_000

/** What a payment's webhook would have carried. */
function eventsOf({ id, object }: ProviderRecord): MadeEvent[] {
  if (object['status'] !== 'paid') return []
  const body = { id: `object:payment:${id}`, type: 'pay', order: object['order'], payment: id }
  return [
    {
      eventId: body.id,
      eventType: 'pay',
      occurredAt: null,
      apiVersion: null,
      body: { ...body, amount: object['amount'] },
    },
  ]
}

function factsOf({ id, object }: ProviderRecord): Fact[] {
  const amount = BigInt(object['amount'] as number)
  const standing = object['status'] === 'paid' ? 'paid' : 'unpaid'
  return [{ fact: 'payment', id, standing, amount, currency: 'USD', refunded: 0n }]
}

/** A payment as the provider has it. */
function payment(id: string, order: string, agoMs: number, status = 'paid'): ProviderRecord {
  return {
    kind: 'payment',
    id,
    createdAt: new Date(Math.floor((Date.now() - agoMs) / 1000) * 1000),
    account: 'acct_1',
    object: { id, order, status, amount: 4900 },
  }
}

async function create(options: ReconcileProbeOptions = {}): Promise<ReconcileProbe> {
  const made = await createReconcileProbe({
    kinds: [
      { kind: 'payment', holds: 'objects', reachMs: null },
      { kind: 'event', holds: 'events', reachMs: month },
    ],
    eventsOf,
    factsOf,
    ...options,
  })
  closing.push(made.close)
  return made
}

function fill(made: ReconcileProbe, count: number): void {
  for (let at = 0; at < count; at++)
    made.records.held.push(payment(`pay_${at}`, `o${at}`, (at + 1) * minute))
}

describe('a pass over objects', () => {
  it('puts in what no event told, shaped as the webhook, and is absorbed by one that comes later', async () => {
    const made = await create()
    made.records.held.push(payment('pay_1', '1', 60 * minute))
    expect(await made.pass()).toMatchObject({
      state: 'complete',
      injected: 1,
      opened: 1,
      closed: 1,
    })
    expect(await made.rows(`select state from orders`)).toEqual([{ state: 'paid' }])
    await made.deliver(probe('pay', { id: 'evt_later', order: '1', payment: 'pay_1' }))
    await made.work()
    expect(await made.rows(`select event_id, kind from decisions where final order by 1`)).toEqual([
      { event_id: 'evt_later', kind: 'absorbed' },
      { event_id: 'object:payment:pay_1', kind: 'fulfilled' },
    ])
  })

  it('goes through events first: what they bring is not made from objects', async () => {
    const made = await create()
    const event = probe('pay', { id: 'evt_pay', order: '1', payment: 'pay_1' })
    made.records.held.push(payment('pay_1', '1', 60 * minute), listed(event, 60 * minute))
    expect(await made.pass()).toMatchObject({ state: 'complete', injected: 1 })
    expect(made.records.asked[0]?.kind).toBe('event')
    expect(await doors(made)).toEqual({ evt_pay: 'reconciliation' })
  })

  it('puts nothing in for an object that says what is here already', async () => {
    const made = await create()
    await made.deliver(probe('pay', { order: '1', payment: 'pay_1' }))
    await made.work()
    made.records.held.push(
      payment('pay_1', '1', 60 * minute),
      payment('pay_2', '2', 60 * minute, 'unpaid'),
    )
    const run = await made.pass()
    expect(run).toMatchObject({ state: 'complete', injected: 0, opened: 0 })
    expect(run.coverage['payment']).toMatchObject({ records: 2, known: 2, injected: 0 })
  })

  it('changes nothing the second time', async () => {
    const made = await create()
    fill(made, 8)
    await made.pass()
    const { through } = await checkpointOf(made, 'payment')
    expect(await made.pass()).toMatchObject({
      state: 'complete',
      injected: 0,
      opened: 0,
      closed: 0,
    })
    expect((await checkpointOf(made, 'payment')).through).toBeGreaterThanOrEqual(through)
  })
})

describe('a window of objects', () => {
  /** Keeps what is found from being compared: it is asked for by reference before it is a finding. */
  function refuseReferences(made: ReconcileProbe): () => void {
    const { fetch } = made.records
    const refusing = async (_: RecordReference): Promise<never> => {
      throw new RecordsError('refused', 'the key may not read payments')
    }
    made.records.fetch = refusing
    return () => {
      made.records.fetch = fetch
    }
  }

  it('is closed only when it was compared, and gone through again where it was not', async () => {
    const made = await create({ pageSize: 2, settings: { sliceMs: month } })
    await made.deliver(probe('pay', { order: 'o0', payment: 'pay_0' }))
    await made.work()
    fill(made, 6)
    await made.rows(`update ledger_payments set amount = 100`)
    const allow = refuseReferences(made)
    const { through } = await checkpointOf(made, 'payment').catch(() => ({ through: 0 }))
    const run = await made.pass()
    expect(run.state).toBe('incomplete')
    expect(run.error).toContain('the key may not read payments')
    const kept = await checkpointOf(made, 'payment')
    expect(kept.inWork).toBe(true)
    expect((await checkpointOf(made, 'event')).inWork).toBe(false)
    expect(kept.through).toBeLessThan(Date.now() - minute)
    expect(kept.through).toBeGreaterThan(through)
    allow()
    made.records.asked.length = 0
    expect(await made.pass()).toMatchObject({ state: 'complete', injected: 0 })
    const first = made.records.asked.find(({ kind }) => kind === 'payment')
    expect(first?.cursor).toBeNull()
    expect(await made.rows(`select kind from findings where state = 'open'`)).toEqual([
      { kind: 'amount_differs' },
    ])
    expect((await checkpointOf(made, 'payment')).inWork).toBe(false)
  })

  it('is taken up in the middle where what was seen of it was compared', async () => {
    const made = await create({ pageSize: 2, settings: { sliceMs: month } })
    fill(made, 10)
    const payments = (): typeof made.records.asked =>
      made.records.asked.filter(({ kind }) => kind === 'payment')
    made.records.faults.push(
      () => null,
      () => null,
      () => null,
      garbage,
    )
    expect(await made.pass()).toMatchObject({ state: 'incomplete', injected: 4 })
    const stoppedAt = payments().at(-1)?.cursor
    expect(stoppedAt).not.toBeNull()
    made.records.asked.length = 0
    expect(await made.pass()).toMatchObject({ state: 'complete', injected: 6 })
    expect(payments()[0]?.cursor).toBe(stoppedAt)
  })

  it('that was compared and not closed goes on behind its end', async () => {
    const made = await create()
    fill(made, 3)
    await made.pass()
    await made.rows(
      `update reconciliation_checkpoints set window_from = through - interval '1 day', window_to = through - interval '1 hour',
         slice_from = through - interval '1 hour', slice_to = through - interval '1 hour' where kind = 'payment'`,
    )
    made.records.asked.length = 0
    expect(await made.pass()).toMatchObject({ state: 'complete', injected: 0 })
    const asked = made.records.asked.filter(({ kind }) => kind === 'payment')
    expect(asked.length).toBeGreaterThan(0)
    expect(asked.every(({ from, to }) => from < to)).toBe(true)
    expect((await checkpointOf(made, 'payment')).inWork).toBe(false)
  })

  /** An event that nobody has decided for a minute, of the type that the records are told as. */
  async function backlog(made: ReconcileProbe): Promise<void> {
    await made.deliver(probe('pay', { order: 'x', payment: 'pay_x' }))
    await made.rows(`update inbox_events set received_at = now() - interval '1 minute'`)
  }

  it('is gone through again from the first record that a backlog kept from being judged', async () => {
    const made = await create({ settings: { overlapMs: minute } })
    made.records.held.push(
      payment('pay_1', '1', 72 * 60 * minute),
      payment('pay_2', '2', 24 * 60 * minute),
    )
    await backlog(made)
    expect(await made.pass()).toMatchObject({ state: 'complete', injected: 0 })
    const { through } = await checkpointOf(made, 'payment')
    expect(Date.now() - through).toBeGreaterThan(71 * 60 * minute)
    await made.work()
    expect(await made.pass()).toMatchObject({ state: 'complete', injected: 2 })
    const later = await checkpointOf(made, 'payment')
    expect(Date.now() - later.through).toBeLessThan(60 * minute)
    expect(await made.pass()).toMatchObject({ state: 'complete', injected: 0, opened: 0 })
  })

  it('is taken up at a page that a backlog kept from being judged, though the run went further', async () => {
    const made = await create({ pageSize: 2, settings: { sliceMs: month } })
    fill(made, 6)
    await backlog(made)
    made.records.faults.push(
      () => null,
      () => null,
      () => null,
      garbage,
    )
    expect(await made.pass()).toMatchObject({ state: 'incomplete', injected: 0 })
    await made.work()
    expect(await made.pass()).toMatchObject({ state: 'complete', injected: 6 })
  })

  it('is begun anew where the run that was at it is gone', async () => {
    const made = await create({ pageSize: 2, settings: { sliceMs: month } })
    fill(made, 10)
    made.records.faults.push(
      () => null,
      () => null,
      () => null,
      garbage,
    )
    await made.pass()
    await made.rows(`update reconciliation_runs set compared_at = null`)
    made.records.asked.length = 0
    expect(await made.pass()).toMatchObject({ state: 'complete', injected: 6 })
    const first = made.records.asked.find(({ kind }) => kind === 'payment')
    expect(first?.cursor).toBeNull()
  })

  it('is gone through by two at once: each sees all of it, and everything is put in once', async () => {
    const made = await create({ pageSize: 2, settings: { sliceMs: month } })
    fill(made, 12)
    const other = await made.other()
    made.records.beforeAnswer = () =>
      new Promise((resolve) => setTimeout(resolve, Math.random() * 8))
    const [first, second] = await Promise.all([
      made.pass(),
      other.pass({ how: 'manual', actor: 'test' }),
    ])
    const run = second.runs[0]
    expect([first.state, run?.state]).toEqual(['complete', 'complete'])
    expect([first, run].map((each) => each?.coverage['payment']?.records)).toEqual([12, 12])
    expect(first.injected + (run?.injected ?? 0)).toBe(12)
    expect(await made.rows(`select count(*)::int as n from fulfillment_effects`)).toEqual([
      { n: 12 },
    ])
    expect(await made.pass()).toMatchObject({ state: 'complete', injected: 0, opened: 0 })
    expect((await checkpointOf(made, 'payment')).inWork).toBe(false)
  })
})
