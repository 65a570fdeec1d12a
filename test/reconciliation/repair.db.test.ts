import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { audit } from '../../src/report/audit.ts'
import { checkoutSessionCompleted, refundCreated } from '../../src/testing/stripe-events.ts'
import { createRepairBench, type RepairBench } from '../support/repair-bench.ts'

const by = { reason: 'the customer wrote in', actor: 'ada' }

let bench: RepairBench
beforeAll(async () => {
  bench = await createRepairBench()
})
afterAll(() => bench.close())

async function expectAudited(): Promise<void> {
  const { checks } = await audit(bench.db)
  expect(checks.filter(({ holds }) => !holds)).toEqual([])
}

describe('a repair of a fact that is missing here', () => {
  it('records what the provider says, with payment, effects, entitlements and operations', async () => {
    const payment = bench.provider.pay('r1')
    const order = await bench.find({ kind: 'paid_there', order: null, payment })
    const plan = await bench.repairs.plan(order)
    expect(plan).toMatchObject({
      kind: 'paid_there',
      choice: 'provider',
      order: { id: 'r1', from: null, to: 'paid' },
      payments: [{ id: payment, amount: 4900n, currency: 'USD', known: false }],
      granted: ['email:r1@example.com pro'],
      operations: [{ destination: 'email', effect: { type: 'license', reference: '' } }],
    })
    expect(plan?.effects.map(({ type }) => type)).toEqual(['license', 'buyer'])
    expect(await bench.order('r1')).toEqual({ state: undefined, active: [] })
    const report = await bench.repairs.apply(order, by)
    expect(report).toMatchObject({
      outcome: 'applied',
      finding: 'closed',
      repair: { repairId: plan?.id, to: 'paid', actor: 'ada' },
    })
    expect(await bench.order('r1')).toEqual({ state: 'paid', active: ['email:r1@example.com pro'] })
    expect(await bench.finding(order)).toMatchObject({ state: 'closed', repairs: 1, verified: 1 })
    expect(
      await bench.rows(
        `select e.event_id, e.event_type, e.via, d.kind, d.final, d.reason, d.actor, d.from_state, d.to_state
         from ledger_decisions d join inbox_events e using (event_key) where d.order_id = 'r1'`,
      ),
    ).toEqual([
      {
        event_id: plan?.id,
        event_type: 'repair.paid_there',
        via: 'repair',
        kind: 'repaired',
        final: true,
        reason: 'the customer wrote in',
        actor: 'ada',
        from_state: 'pending',
        to_state: 'paid',
      },
    ])
    await expectAudited()
  })

  it('absorbs the webhook that comes after it, and the license is sent once', async () => {
    await bench.deliver(checkoutSessionCompleted({ order: 'r1', email: 'r1@example.com' }))
    await bench.work()
    expect(
      await bench.rows(
        `select kind from ledger_decisions where order_id = 'r1' order by decision_id`,
      ),
    ).toEqual([{ kind: 'repaired' }, { kind: 'absorbed' }])
    expect(await bench.rows(`select state from outbox_operations where order_id = 'r1'`)).toEqual([
      { state: 'sent' },
    ])
    await expectAudited()
  })

  it('takes back what was entitled where the provider gave the money back', async () => {
    const payment = await bench.buy('r2')
    bench.provider.refund(payment)
    const id = await bench.find({ kind: 'refunded_there', order: 'r2', payment })
    const plan = await bench.repairs.plan(id)
    expect(plan).toMatchObject({
      order: { id: 'r2', from: 'paid', to: 'refunded' },
      payments: [],
      revoked: ['email:r2@example.com pro'],
    })
    expect(plan?.effects).toMatchObject([{ type: 'refund', amount: 4900n, payment }])
    await bench.repairs.apply(id, by)
    expect(await bench.order('r2')).toEqual({ state: 'refunded', active: [] })
    await expectAudited()
  })

  it('wakes what waited for it', async () => {
    const payment = bench.provider.pay('r4')
    const refund = refundCreated({ order: 'r4', id: 're_r4', amount: 4900 })
    await bench.deliver(refund)
    await bench.work()
    expect(
      await bench.rows(`select state from webhook_inbox where event_id = $1`, [refund.id]),
    ).toEqual([{ state: 'deferred' }])
    const id = await bench.find({ kind: 'paid_there', payment })
    await bench.repairs.apply(id, by)
    await bench.work()
    expect(await bench.order('r4')).toEqual({ state: 'refunded', active: [] })
    await expectAudited()
  })

  it('records several facts as one decision that grants nothing which it revokes', async () => {
    const payment = bench.provider.pay('r3')
    bench.provider.refund(payment)
    const id = await bench.find({ kind: 'paid_there', payment })
    const plan = await bench.repairs.plan(id)
    expect(plan).toMatchObject({ order: { from: null, to: 'refunded' }, granted: [], revoked: [] })
    await bench.repairs.apply(id, by)
    expect(await bench.order('r3')).toEqual({ state: 'refunded', active: [] })
    await expectAudited()
  })
})

describe('a repair of an order that somebody changed', () => {
  it('restores the state and the entitlements that its decisions say', async () => {
    await bench.buy('t1')
    await bench.pool.query(`update orders set state = 'refunded' where order_id = 't1'`)
    await bench.pool.query(`update entitlements set active = false where order_id = 't1'`)
    const id = await bench.find({ kind: 'tampered', order: 't1' })
    const plan = await bench.repairs.plan(id)
    expect(plan).toMatchObject({
      choice: 'restore',
      order: { from: 'refunded', to: 'paid', decided: 'paid' },
      effects: [],
      operations: [],
      granted: ['email:t1@example.com pro'],
    })
    expect(plan?.summary.join('\n')).toContain('somebody changed the row')
    const report = await bench.repairs.apply(id, by)
    expect(report.repair).toMatchObject({ from: 'refunded', to: 'paid' })
    expect(await bench.order('t1')).toEqual({ state: 'paid', active: ['email:t1@example.com pro'] })
    expect(await bench.finding(id)).toMatchObject({ state: 'closed', verified: 1 })
    await expectAudited()
  })

  it('restores one that the app opened after its events had come', async () => {
    const payment = await bench.buy('t5')
    await bench.hookledger.openOrder(bench.pool as never, { id: 't5', workflow: 'license' })
    bench.provider.refund(payment)
    await bench.deliver(refundCreated({ order: 't5', id: 're_t5', amount: 4900 }))
    await bench.work()
    await bench.pool.query(`update orders set state = 'paid' where order_id = 't5'`)
    const id = await bench.find({ kind: 'tampered', order: 't5' })
    expect(await bench.repairs.plan(id)).toMatchObject({
      order: { from: 'paid', to: 'refunded', decided: 'refunded' },
    })
    await bench.repairs.apply(id, by)
    expect(await bench.order('t5')).toEqual({ state: 'refunded', active: [] })
    await expectAudited()
  })

  it('restores whose it is, and what was to be paid for it', async () => {
    await bench.hookledger.openOrder(bench.pool as never, {
      id: 't6',
      workflow: 'license',
      subject: 'user:6',
      expected: { amount: 4900n, currency: 'USD' },
    })
    await bench.pool.query(
      `update orders set subject = 'user:thief', expected_amount = 1 where order_id = 't6'`,
    )
    const id = await bench.find({ kind: 'tampered', order: 't6' })
    const plan = await bench.repairs.plan(id)
    expect(plan?.summary).toEqual(
      expect.arrayContaining([
        'it is for user:6, not user:thief',
        'it expects 49.00 USD, not 0.01 USD',
      ]),
    )
    await bench.repairs.apply(id, by)
    expect(
      await bench.rows(
        `select subject, expected_amount::int as expected, currency from orders where order_id = 't6'`,
      ),
    ).toEqual([{ subject: 'user:6', expected: 4900, currency: 'USD' }])
    expect(await bench.finding(id)).toMatchObject({ state: 'closed', verified: 1 })
    await expectAudited()
  })

  it('withdraws what no decision granted, and puts back what somebody deleted', async () => {
    await bench.buy('t2')
    await bench.pool.query(
      `insert into entitlements (order_id, subject, entitlement, active, granted_by, changed_by)
       select order_id, 'email:thief@example.com', entitlement, true, granted_by, changed_by from entitlements where order_id = 't2'`,
    )
    await bench.pool.query(
      `delete from entitlements where order_id = 't2' and subject = 'email:t2@example.com'`,
    )
    const id = await bench.find({ kind: 'tampered', order: 't2' })
    await bench.repairs.apply(id, by)
    expect(await bench.order('t2')).toEqual({ state: 'paid', active: ['email:t2@example.com pro'] })
    await expectAudited()
  })

  it('takes how much and until when from the provider, which decisions do not say', async () => {
    await bench.buy('t3')
    await bench.pool.query(`update entitlements set quantity = 5 where order_id = 't3'`)
    const id = await bench.find({ kind: 'tampered', order: 't3' })
    await bench.repairs.apply(id, by)
    expect(
      await bench.rows(`select quantity::int from entitlements where order_id = 't3'`),
    ).toEqual([{ quantity: 1 }])
    await expectAudited()
  })

  it('is refused as long as another finding is to be repaired on top of it', async () => {
    const payment = await bench.buy('t4')
    bench.provider.refund(payment)
    await bench.pool.query(`update orders set state = 'lost' where order_id = 't4'`)
    const id = await bench.find({ kind: 'refunded_there', order: 't4', payment })
    await expect(bench.repairs.apply(id, by)).rejects.toMatchObject({
      code: 'HKL_REPAIR_IMPOSSIBLE',
      message: expect.stringContaining('its decisions lead to paid') as string,
    })
    const tampered = await bench.find({ kind: 'tampered', order: 't4' })
    await bench.repairs.apply(tampered, by)
    await bench.repairs.apply(id, by)
    expect(await bench.order('t4')).toEqual({ state: 'refunded', active: [] })
    await expectAudited()
  })
})
