/** Orders that somebody changed, and whose events then went on from what he had made of them. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createHookledger } from 'hookledger'
import { partsOf } from '../../src/hookledger.ts'
import type { Repairs } from '../../src/reconciliation/repair/repairs.ts'
import { audit } from '../../src/report/audit.ts'
import { checkoutSessionCompleted, refundCreated } from '../../src/testing/stripe-events.ts'
import { createRepairBench, type RepairBench } from '../support/repair-bench.ts'
import { shopOptions } from '../support/shop.ts'

const by = { reason: 'the customer wrote in', actor: 'ada' }

let bench: RepairBench
let mute: Repairs
beforeAll(async () => {
  bench = await createRepairBench()
  mute = await partsOf(createHookledger({ ...shopOptions, database: bench.pool })).repairs()
})
afterAll(() => bench.close())

async function expectAudited(): Promise<void> {
  const { checks } = await audit(bench.db)
  expect(checks.filter(({ holds }) => !holds)).toEqual([])
}

/** The app opens it, somebody writes `paid` into its row, and only then is it paid for. */
async function paidAfterItsState(order: string): Promise<string> {
  await bench.hookledger.openOrder(bench.pool as never, { id: order, workflow: 'license' })
  await bench.pool.query(`update orders set state = 'paid' where order_id = $1`, [order])
  const payment = await bench.buy(order)
  expect(await bench.order(order)).toEqual(paid(order))
  return payment
}

/** It was paid for and given back, somebody activates it again, and only then is it paid for again. */
async function paidAfterItsEntitlement(order: string, state = 'refunded'): Promise<string> {
  const first = await bench.buy(order)
  bench.provider.refund(first)
  const [{ id } = { id: '' }] = bench.provider.payments.get(first)?.refunds ?? []
  await bench.deliver(refundCreated({ order, id, amount: 4900 }))
  await bench.work()
  expect(await bench.order(order)).toEqual({ state: 'refunded', active: [] })
  await bench.pool.query(`update orders set state = $2 where order_id = $1`, [order, state])
  await bench.pool.query(
    `update entitlements set active = true, stated = true where order_id = $1`,
    [order],
  )
  const second = bench.provider.pay(order, { attempt: 2 })
  await bench.deliver(
    checkoutSessionCompleted({ order, attempt: 2, email: `${order}@example.com` }),
  )
  await bench.work()
  expect(await bench.order(order)).toEqual(paid(order))
  return second
}

function paid(order: string): object {
  return { state: 'paid', active: [`email:${order}@example.com pro`] }
}

async function decisionsOf(order: string): Promise<number> {
  return (await bench.rows(`select 1 from ledger_decisions where order_id = $1`, [order])).length
}

describe('an order whose state somebody changed, and that was paid for then', () => {
  it('is what the provider says, and not what was decided before', async () => {
    await paidAfterItsState('g1')
    const id = await bench.find({ kind: 'tampered', order: 'g1' })
    const plan = await bench.repairs.plan(id)
    expect(plan).toMatchObject({
      choice: 'provider',
      order: { from: 'paid', to: 'paid', decided: 'pending' },
      payments: [],
      effects: [],
      operations: [],
      revoked: [],
    })
    expect(plan?.summary).toEqual(
      expect.arrayContaining([
        expect.stringContaining('decisions went on from paid, to which none had led'),
        "the provider's records say that it is paid",
      ]),
    )
    expect(plan?.choices.map(({ choice }) => choice)).toEqual([
      'provider',
      'restore',
      'target',
      'keep',
    ])
    expect(await bench.repairs.apply(id, by)).toMatchObject({
      outcome: 'applied',
      finding: 'closed',
    })
    expect(await bench.order('g1')).toEqual(paid('g1'))
    await expectAudited()
    // the walk of its decisions leads there now: another change is plainly restored
    await bench.pool.query(`update orders set state = 'lost' where order_id = 'g1'`)
    const again = await bench.find({ kind: 'tampered', order: 'g1' })
    expect(await bench.repairs.plan(again)).toMatchObject({
      choice: 'restore',
      order: { from: 'lost', to: 'paid', decided: 'paid' },
    })
    await bench.repairs.apply(again, by)
    expect(await bench.order('g1')).toEqual(paid('g1'))
    await expectAudited()
  })

  it('is given what the provider has and nobody recorded with it, once', async () => {
    const payment = await paidAfterItsState('g2')
    bench.provider.refund(payment)
    const second = bench.provider.pay('g2', { attempt: 2 })
    // its names lead there, as those of an event that a workflow passed over
    await bench.pool.query(
      `insert into order_names (source_id, kind, name, order_id)
       select source_id, kind, $1, order_id from order_names where order_id = 'g2' and kind = 'payment_intent'`,
      [second],
    )
    const id = await bench.find({ kind: 'tampered', order: 'g2' })
    const plan = await bench.repairs.plan(id)
    expect(plan).toMatchObject({
      choice: 'provider',
      order: { from: 'paid', to: 'paid', decided: 'pending' },
      payments: [{ id: second, amount: 4900n, known: false }],
      revoked: [],
    })
    expect(plan?.effects.map(({ type }) => type).sort()).toEqual(['buyer', 'refund'])
    expect(plan?.operations).toMatchObject([{ name: 'refund', effect: { type: 'refund' } }])
    expect(await bench.repairs.apply(id, by)).toMatchObject({ finding: 'closed' })
    expect(await bench.order('g2')).toEqual(paid('g2'))
    expect(
      await bench.rows(
        `select effect_type, count(*)::int as n from fulfillment_effects where order_id = 'g2' group by 1 order by 1`,
      ),
    ).toEqual([
      { effect_type: 'buyer', n: 2 },
      { effect_type: 'license', n: 1 },
      { effect_type: 'refund', n: 1 },
    ])
    await expectAudited()
  })

  it('waits for the word of a person where the provider cannot be asked', async () => {
    await paidAfterItsState('g3')
    const decisions = await decisionsOf('g3')
    const id = await bench.find({ kind: 'tampered', order: 'g3' })
    await expect(mute.apply(id, by)).rejects.toMatchObject({
      code: 'HKL_REPAIR_CHOICE',
      message: expect.stringMatching(
        /went on from paid.*and the provider cannot be asked here; choose: --choice restore .* \| --to STATE .* \| --choice keep /,
      ) as string,
    })
    expect(await decisionsOf('g3')).toBe(decisions)
    expect(await bench.order('g3')).toEqual(paid('g3'))
    expect(await mute.plan(id, { choice: 'restore' })).toMatchObject({
      order: { from: 'paid', to: 'pending' },
      revoked: ['email:g3@example.com pro'],
      summary: expect.arrayContaining([
        expect.stringContaining('may take away what was paid for'),
      ]) as string[],
    })
    expect(await mute.plan(id, { to: 'paid' })).toMatchObject({ order: { to: 'paid' } })
    expect(await mute.apply(id, by, { choice: 'keep' })).toMatchObject({ finding: 'dismissed' })
    expect(await bench.order('g3')).toEqual(paid('g3'))
    await expectAudited()
  })

  it('waits, too, where the records do not account for all that is recorded here', async () => {
    const payment = await paidAfterItsState('g4')
    const id = await bench.find({ kind: 'tampered', order: 'g4' })
    bench.provider.pay('g4', { attempt: 2 })
    bench.provider.payments.delete(payment)
    await bench.pool.query(
      `insert into order_names (source_id, kind, name, order_id)
       select source_id, kind, $1, order_id from order_names where order_id = 'g4' and kind = 'payment_intent'`,
      [[...bench.provider.payments.keys()].at(-1)],
    )
    await expect(bench.repairs.plan(id)).rejects.toMatchObject({
      code: 'HKL_REPAIR_CHOICE',
      message: expect.stringContaining('do not account for all that is recorded here') as string,
    })
    await expect(bench.repairs.apply(id, by, { choice: 'provider' })).rejects.toMatchObject({
      code: 'HKL_REPAIR_CHOICE',
    })
    // a person may know better
    await bench.repairs.apply(id, by, { choice: 'restore' })
    expect(await bench.order('g4')).toEqual({ state: 'pending', active: [] })
    await expectAudited()
  })
})

describe('an entitlement that somebody activated, and that was paid for then', () => {
  it.each([
    ['refunded', 'h1'],
    ['paid', 'h2'],
  ])('stays, as the provider says, where the row said %s', async (state, order) => {
    await paidAfterItsEntitlement(order, state)
    const id = await bench.find({ kind: 'tampered', order })
    const plan = await bench.repairs.plan(id)
    expect(plan).toMatchObject({
      choice: 'provider',
      order: { from: 'paid', to: 'paid' },
      revoked: [],
    })
    expect(plan?.summary.join('\n')).toContain(
      `a decision may have found email:${order}@example.com pro as somebody had changed it`,
    )
    expect(await bench.repairs.apply(id, by)).toMatchObject({
      outcome: 'applied',
      finding: 'closed',
    })
    expect(await bench.order(order)).toEqual(paid(order))
    expect(await bench.finding(id)).toMatchObject({ state: 'closed', verified: 1 })
    await expectAudited()
  })

  it('waits for the word of a person where the provider cannot be asked', async () => {
    await paidAfterItsEntitlement('h3')
    const decisions = await decisionsOf('h3')
    const id = await bench.find({ kind: 'tampered', order: 'h3' })
    await expect(mute.apply(id, by)).rejects.toMatchObject({ code: 'HKL_REPAIR_CHOICE' })
    expect(await decisionsOf('h3')).toBe(decisions)
    expect(await bench.order('h3')).toEqual(paid('h3'))
    expect(await mute.apply(id, by, { to: 'paid' })).toMatchObject({ outcome: 'applied' })
    expect(await bench.order('h3')).toEqual(paid('h3'))
    await expectAudited()
  })

  it('is withdrawn where nobody paid again, whatever can be asked', async () => {
    const payment = await bench.buy('h4')
    bench.provider.refund(payment)
    const [{ id: refund } = { id: '' }] = bench.provider.payments.get(payment)?.refunds ?? []
    await bench.deliver(refundCreated({ order: 'h4', id: refund, amount: 4900 }))
    await bench.work()
    await bench.pool.query(`update orders set state = 'paid' where order_id = 'h4'`)
    await bench.pool.query(`update entitlements set active = true where order_id = 'h4'`)
    const id = await bench.find({ kind: 'tampered', order: 'h4' })
    for (const repairs of [bench.repairs, mute])
      expect(await repairs.plan(id)).toMatchObject({
        choice: 'restore',
        order: { from: 'paid', to: 'refunded' },
        revoked: ['email:h4@example.com pro'],
      })
    await mute.apply(id, by)
    expect(await bench.order('h4')).toEqual({ state: 'refunded', active: [] })
    await expectAudited()
  })
})
