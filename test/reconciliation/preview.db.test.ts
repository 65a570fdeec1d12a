import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { comparisonOf, type WiredComparison } from '../../src/compose/comparison.ts'
import { partsOf } from '../../src/hookledger.ts'
import type { ConfiguredSourceLike, PreviewOutcome } from '../../src/reconciliation/ports.ts'
import { fulfill } from '../../src/workflow/decision.ts'
import type { MadeEvent } from '../../src/workflow/records.ts'
import {
  clearHooks,
  createProbe,
  probe as body,
  probeWorkflow,
  type Probe,
  type ProbeBody,
  type ProbeHooks,
} from '../support/probe.ts'

const hooks: ProbeHooks = {}
let probe: Probe
let wired: WiredComparison
let source: ConfiguredSourceLike

beforeAll(async () => {
  probe = await createProbe({ workflows: [probeWorkflow(hooks)] })
  const parts = partsOf(probe.hookledger)
  const installed = await parts.installation()
  const { db } = probe
  wired = comparisonOf({ db, installed, config: parts.config, signals: parts.signals })
  source = parts.config.sources.get('probe') as ConfiguredSourceLike
})
afterAll(() => probe.close())
beforeEach(async () => {
  clearHooks(hooks)
  await probe.reset()
})

function made(type: string, fields: Partial<ProbeBody> = {}): MadeEvent {
  const event = body(type, fields)
  const eventId = `object:${type}:${event.id}`
  return { eventId, eventType: type, occurredAt: null, apiVersion: null, body: { ...event } }
}

/** Makes everything in the inbox so old. */
const received = (ago: string): Promise<unknown> =>
  probe.rows(`update inbox_events set received_at = now() - $1::interval`, [ago])

const preview = (...events: MadeEvent[]): Promise<readonly PreviewOutcome[]> =>
  wired.preview.preview(source, 'probe', events)

const told = (outcomes: readonly PreviewOutcome[]): unknown[] =>
  outcomes.map(({ outcome, orderId, orderExists, known }) => [
    outcome?.kind,
    orderId,
    orderExists,
    known,
  ])

describe('preview', () => {
  it('says what the worker would decide, and writes nothing', async () => {
    const before = await probe.rows(`select (select count(*) from inbox_events) as events,
      (select count(*) from orders) as orders, (select last_value from ledger_decisions_decision_id_seq) as id`)
    const outcomes = await preview(made('pay', { order: '1' }), made('refund', { order: '1' }))
    expect(told(outcomes)).toEqual([
      ['fulfilled', '1', false, false],
      ['moved', '1', false, false],
    ])
    expect(outcomes[0]?.outcome).toMatchObject({
      from: 'pending',
      to: 'paid',
      granted: ['user:1 pro'],
    })
    const after = await probe.rows(`select (select count(*) from inbox_events) as events,
      (select count(*) from orders) as orders, (select last_value from ledger_decisions_decision_id_seq) as id`)
    expect(after).toEqual(before)
  })

  it('folds the events of one record together, and those of another apart', async () => {
    await probe.deliver(body('pay', { order: '1', payment: 'p1' }))
    await probe.work()
    const refund = made('refund', { order: '1', payment: 'p1' })
    const again = made('refund', { order: '1', payment: 'p1' })
    const together = await preview(refund, again)
    expect(together.map(({ outcome }) => outcome?.kind)).toEqual(['moved', 'contradicted'])
    const apart = await wired.preview.previewEach(source, 'probe', [[refund], [again], []])
    expect(apart.map((outcomes) => outcomes.map(({ outcome }) => outcome?.kind))).toEqual([
      ['moved'],
      ['moved'],
      [],
    ])
  })

  it('follows names that are bound, and that an event of the record brings', async () => {
    await probe.deliver(body('note', { order: '1', learns: 'cart' }))
    await probe.work()
    expect(told(await preview(made('pay', { waits: 'cart' })))).toEqual([
      ['fulfilled', '1', true, false],
    ])
    const brought = await preview(
      made('note', { order: '2', learns: 'x' }),
      made('note', { waits: 'x' }),
    )
    expect(told(brought)).toEqual([
      ['fulfilled', '2', false, false],
      ['fulfilled', '2', false, false],
    ])
  })

  it('knows a payment that another order has', async () => {
    await probe.deliver(body('pay', { order: '1', payment: 'p1' }))
    await probe.work()
    const [outcome] = await preview(made('pay', { order: '2', payment: 'p1' }))
    expect(outcome?.outcome).toMatchObject({
      kind: 'contradicted',
      findings: [{ kind: 'fulfilled_twice' }],
    })
    expect(outcome?.known).toBe(false)
  })

  it('knows a contradiction that was recorded, by its words or by its finding', async () => {
    await probe.deliver(body('pay', { order: '1', payment: 'p1' }))
    await probe.deliver(body('refund', { order: '1', payment: 'p1', amount: 9900 }))
    await probe.deliver(body('pay', { order: '2', payment: 'p1' }))
    await probe.work()
    expect(told(await preview(made('pay', { order: '2', payment: 'p1' })))).toEqual([
      ['contradicted', '2', true, true],
    ])
    expect(
      told(await preview(made('refund', { order: '1', payment: 'p1', amount: 9900 }))),
    ).toEqual([['contradicted', '1', true, true]])
    expect(
      told(await preview(made('refund', { order: '1', payment: 'p1', amount: 9800 }))),
    ).toEqual([['contradicted', '1', true, false]])
  })

  it('knows that an event of the type waits for the same already', async () => {
    const waiting = made('pay', { waits: 'cart' })
    expect(told(await preview(waiting))).toEqual([['deferred', null, false, false]])
    await probe.deliver(body('pay', { waits: 'cart' }))
    await probe.work()
    expect(told(await preview(waiting))).toEqual([['deferred', null, false, true]])
    expect(told(await preview(made('note', { waits: 'cart' })))).toEqual([
      ['deferred', null, false, false],
    ])
  })

  it('gives the error of a workflow that throws, known where it threw before', async () => {
    hooks.decide = () => {
      throw new TypeError('no such field')
    }
    const [first] = await preview(made('custom', { order: '1' }))
    expect(first).toMatchObject({ outcome: null, known: false, orderId: '1' })
    expect(first?.failure).toBeInstanceOf(TypeError)
    await probe.deliver(body('custom', { order: '1' }))
    await probe.work()
    expect(await preview(made('custom', { order: '1' }))).toMatchObject([
      { outcome: null, known: true },
    ])
  })

  it('says which event the inbox has, and that it is not decided yet', async () => {
    const event = made('note', { order: '1' })
    await probe.deliver({ ...(event.body as unknown as ProbeBody), id: event.eventId })
    expect(await preview(event)).toMatchObject([{ eventKey: expect.any(BigInt), isPending: true }])
    await probe.work()
    expect(await preview(event)).toMatchObject([{ eventKey: expect.any(BigInt), isPending: false }])
  })

  it('is kept by an event of the order that was woken just now, and by none of another order', async () => {
    for (const order of ['1', '2']) {
      await probe.deliver(body('note', { id: `first_${order}`, order }))
      await probe.deliver(body('after', { id: `after_${order}`, order, needs: `second_${order}` }))
    }
    await probe.work()
    await received('1 minute')
    // as a decision leaves it that wakes what waits for its order
    await probe.rows(`with woken as (delete from inbox_deferred d using inbox_events e
        where e.event_key = d.event_key and e.event_id = 'after_1' returning d.*)
      insert into inbox_ready (event_key, received_on, attempts, deadline_at, waits_for)
      select event_key, received_on, attempts, deadline_at, waits_for from woken`)
    const [own, others] = await preview(
      made('after', { order: '1', needs: 'first_1' }),
      made('after', { order: '2', needs: 'first_2' }),
    )
    expect([own, others].map((each) => each?.outcome?.kind)).toEqual(['fulfilled', 'fulfilled'])
    expect([own?.isPending, others?.isPending]).toEqual([true, false])
  })

  it('is kept by a backlog of its type, whoever it is about', async () => {
    await probe.deliver(body('note', { order: '1' }))
    expect(await preview(made('note', { order: '2' }))).toMatchObject([{ isPending: false }])
    await received('1 minute')
    expect(await preview(made('note', { order: '2' }))).toMatchObject([{ isPending: true }])
    expect(await preview(made('pay', { order: '2' }))).toMatchObject([{ isPending: false }])
  })

  it('is of the account that it is asked for', async () => {
    await probe.deliver(body('note', { order: '1' }))
    await probe.work()
    const foreign = await wired.preview.preview(source, 'acct_other', [
      made('note', { order: '1' }),
    ])
    expect(foreign[0]?.outcome).toMatchObject({
      kind: 'contradicted',
      findings: [{ kind: 'foreign_account' }],
    })
  })
})

describe('paymentsNamed', () => {
  it('says what would be recorded of an order that had nothing', async () => {
    await probe.deliver(body('pay', { order: '1', payment: 'p1' }))
    await probe.work()
    const event = made('pay', { order: '1', payment: 'p1', amount: 5000 })
    expect(told(await preview(event))).toEqual([['absorbed', '1', true, false]])
    expect(await wired.preview.paymentsNamed(source, 'probe', [event])).toEqual([
      { id: 'p1', amount: 5000n, currency: 'USD', applied: true },
    ])
  })

  it('says nothing of an event that names none', async () => {
    hooks.decide = () => fulfill({ effects: [{ type: 'note' }] }) as never
    expect(
      await wired.preview.paymentsNamed(source, 'probe', [made('pay', { order: '1' })]),
    ).toEqual([])
  })
})
