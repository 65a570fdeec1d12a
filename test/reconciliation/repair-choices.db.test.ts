import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createHookledger, defineWorkflow, fulfill, money, orderId } from 'hookledger'
import { partsOf } from '../../src/hookledger.ts'
import { audit } from '../../src/report/audit.ts'
import {
  checkoutSessionCompleted,
  checkoutSessionExpired,
} from '../../src/testing/stripe-events.ts'
import { license } from '../../examples/shop/license.ts'
import { createRepairBench, type RepairBench } from '../support/repair-bench.ts'
import { shopOptions } from '../support/shop.ts'

const by = { reason: 'talked to the customer', actor: 'ada' }

/** Credits that are given back by an effect of the shop's own. */
const credit = defineWorkflow('credit', {
  sources: ['stripe'],
  initial: 'open',
  opens: 'event',
  states: { open: {} },
  transitions: {},
  accepts: () => true,
  effects: {
    credited: {},
    compensation: {
      apply: async ({ db, effect }) => {
        if (effect.data['payment'] === 'pi_poison') throw new Error('the books are closed')
        await db.query(
          `insert into shop.accounts as a (account_id, credits) values ($1, -1)
           on conflict (account_id) do update set credits = a.credits - 1`,
          ['c1'],
        )
      },
    },
  },
}).on('invoice.paid', {
  order: ({ event }) => orderId(event.data.object.metadata?.['credit']),
  decide: ({ event }) =>
    fulfill({
      to: 'open',
      payment: { id: event.data.object.id, money: money(100, 'usd') },
      effects: [{ type: 'credited', reference: event.data.object.id }],
    }),
})

let bench: RepairBench
beforeAll(async () => {
  bench = await createRepairBench({ workflows: [license, credit] })
})
afterAll(() => bench.close())

async function expectAudited(): Promise<void> {
  const { checks } = await audit(bench.db)
  expect(checks.filter(({ holds }) => !holds)).toEqual([])
}

async function paidTwice(order: string): Promise<{ first: string; second: string; id: string }> {
  const first = await bench.buy(order)
  const second = bench.provider.pay(order, { attempt: 2 })
  await bench.deliver(
    checkoutSessionCompleted({ order, attempt: 2, email: `${order}@example.com` }),
  )
  await bench.work()
  const [row] = await bench.rows<{ finding_id: string }>(
    `select finding_id from findings where kind = 'paid_twice' and order_id = $1`,
    [order],
  )
  return { first, second, id: row?.finding_id ?? '' }
}

describe('a finding that can be ended in several ways', () => {
  it('asks which one, and lists them all', async () => {
    const { first, second, id } = await paidTwice('w1')
    await expect(bench.repairs.plan(id)).rejects.toMatchObject({
      code: 'HKL_REPAIR_CHOICE',
      message: expect.stringMatching(
        new RegExp(
          `--choice refund:${second} .*--choice refund:${first} .*--choice compensate:license .*--to STATE .*--choice keep`,
        ),
      ) as string,
    })
    await expect(bench.repairs.plan(id, { choice: 'refnd' })).rejects.toMatchObject({
      code: 'HKL_REPAIR_CHOICE',
    })
    await expect(bench.repairs.plan(id, { choice: 'refund:pi_other' })).rejects.toMatchObject({
      code: 'HKL_REPAIR_CHOICE',
    })
  })

  it('gives the payment that came last back through the outbox, and closes when the provider did', async () => {
    const { second, id } = await paidTwice('w2')
    const plan = await bench.repairs.plan(id, { choice: 'refund' })
    expect(plan).toMatchObject({
      choice: `refund:${second}`,
      refund: { payment: second, amount: 4900n, currency: 'USD' },
      operations: [{ destination: 'stripe', effect: null }],
      effects: [],
      entitle: null,
    })
    const report = await bench.repairs.apply(id, by, { choice: 'refund' })
    expect(report).toMatchObject({ outcome: 'applied', finding: 'waiting' })
    expect(await bench.finding(id)).toMatchObject({ state: 'repairing', verified: 0 })
    await bench.hookledger.runOnce({ budgetMs: 5000 })
    expect(bench.sent).toContainEqual({ refund: second, amount: '4900' })
    expect(await bench.repairs.verify()).toMatchObject({ verified: 0 })
    bench.provider.refund(second)
    expect(await bench.repairs.verify()).toMatchObject({ verified: 1 })
    expect(await bench.finding(id)).toMatchObject({ state: 'closed', verified: 1 })
    expect(await bench.order('w2')).toMatchObject({ state: 'paid' })
    await expectAudited()
  })

  it('never gives the same payment back twice, whichever finding asks', async () => {
    const { second, id } = await paidTwice('w3')
    await bench.repairs.apply(id, by, { choice: `refund:${second}` })
    const other = await bench.find({
      kind: 'fulfilled_twice',
      order: 'w3',
      evidence: { payment: second },
    })
    await expect(bench.repairs.plan(other, { choice: 'refund' })).rejects.toMatchObject({
      code: 'HKL_REPAIR_IMPOSSIBLE',
      message: expect.stringContaining('is being given back already') as string,
    })
    const again = await bench.repairs.apply(id, by, { choice: `refund:${second}` })
    expect(again).toMatchObject({ outcome: 'recorded', finding: 'waiting' })
    const paid = bench.provider.payments.get(second)
    paid?.refunds.push({ id: 're_elsewhere', amount: 4900 })
    const third = await bench.find({ kind: 'paid_twice', evidence: { payment: second } })
    await expect(bench.repairs.plan(third, { choice: 'refund' })).rejects.toMatchObject({
      message: expect.stringContaining('is given back already') as string,
    })
  })

  it('records a compensating effect once, whose SQL runs in the same commit', async () => {
    await bench.rows(
      `insert into shop.accounts values ('c1', 2) on conflict (account_id) do update set credits = 2`,
    )
    await bench.rows(
      `insert into orders (order_id, workflow, state, source_id) select 'c1', 'credit', 'open', source_id from sources where provider = 'stripe'`,
    )
    await bench.rows(
      `insert into ledger_decisions (order_id, workflow, kind, final, to_state, entitles, reason, actor) values ('c1', 'credit', 'opened', false, 'open', false, 'opened', 'app')`,
    )
    const id = await bench.find({ kind: 'fulfilled_twice', order: 'c1' })
    const report = await bench.repairs.apply(id, by, { choice: 'compensate' })
    expect(report).toMatchObject({ outcome: 'applied', finding: 'dismissed' })
    expect(
      await bench.rows(`select credits::int from shop.accounts where account_id = 'c1'`),
    ).toEqual([{ credits: 1 }])
    expect(
      await bench.rows(
        `select effect_type, effect_reference, data ->> 'kind' as kind from fulfillment_effects where order_id = 'c1'`,
      ),
    ).toEqual([
      { effect_type: 'compensation', effect_reference: `finding:${id}`, kind: 'fulfilled_twice' },
    ])
    await expect(bench.repairs.apply(id, by, { choice: 'compensate' })).rejects.toMatchObject({
      code: 'HKL_FINDING_NOT_OPEN',
    })
    await expectAudited()
  })

  it('applies nothing where the SQL of a compensating effect fails', async () => {
    const id = await bench.find({
      kind: 'fulfilled_twice',
      order: 'c1',
      evidence: { payment: 'pi_poison' },
    })
    bench.provider.payments.set('pi_poison', {
      order: 'c1',
      attempt: 1,
      email: '',
      amount: 100,
      standing: 'paid',
      refunds: [],
    })
    await expect(bench.repairs.apply(id, by, { choice: 'compensate' })).rejects.toMatchObject({
      code: 'HKL_REPAIR_IMPOSSIBLE',
      message: expect.stringContaining('the books are closed') as string,
    })
    expect(await bench.finding(id)).toMatchObject({ state: 'open', repairs: 0 })
    expect(
      await bench.rows(
        `select 1 from inbox_events where via = 'repair' and event_type = 'repair.fulfilled_twice'`,
      ),
    ).toHaveLength(1)
  })

  it('keeps everything as it is with a reason, until the figures change', async () => {
    const { id } = await paidTwice('w4')
    const { version } = (
      await bench.rows<{ version: string }>(`select version from orders where order_id = 'w4'`)
    )[0] ?? { version: '' }
    const report = await bench.repairs.apply(id, by, { choice: 'keep' })
    expect(report).toMatchObject({ outcome: 'applied', finding: 'dismissed' })
    expect(await bench.rows(`select version from orders where order_id = 'w4'`)).toEqual([
      { version },
    ])
    expect(
      await bench.rows(
        `select dismissed_evidence = evidence as covers, dismissed_until > now() + interval '1 year' as lasts from findings where finding_id = $1`,
        [id],
      ),
    ).toEqual([{ covers: true, lasts: true }])
    await expectAudited()
  })
})

describe('a state that a person names', () => {
  it('is taken although no transition leads there, and records the payment that both sides need', async () => {
    const payment = bench.provider.pay('n1')
    await bench.hookledger.openOrder(bench.pool as never, {
      id: 'n1',
      workflow: 'license',
      subject: 'user:1',
    })
    const id = await bench.find({ kind: 'paid_there', order: 'n1', payment })
    const plan = await bench.repairs.plan(id, { to: 'paid' })
    expect(plan).toMatchObject({
      choice: 'target:paid',
      order: { from: 'pending', to: 'paid' },
      payments: [{ id: payment }],
      effects: [],
      operations: [],
    })
    expect(plan?.summary.join('\n')).toContain('states nothing to entitle to')
    await bench.repairs.apply(id, by, { to: 'paid' })
    expect(await bench.order('n1')).toEqual({ state: 'paid', active: [] })
    await expectAudited()
  })

  it('takes entitlements with it, both ways', async () => {
    const payment = await bench.buy('n2')
    const id = await bench.find({ kind: 'paid_here', order: 'n2', payment })
    await bench.repairs.apply(id, by, { to: 'canceled' })
    expect(await bench.order('n2')).toEqual({ state: 'canceled', active: [] })
    const back = await bench.find({ kind: 'order_stuck', order: 'n2' })
    const plan = await bench.repairs.plan(back, { to: 'paid' })
    expect(plan?.granted).toEqual(['email:n2@example.com pro'])
    await bench.repairs.apply(back, by, { to: 'paid' })
    expect(await bench.order('n2')).toEqual({ state: 'paid', active: ['email:n2@example.com pro'] })
    await expectAudited()
  })

  it('lets a payment count no longer that the provider never had, so that no later event entitles again', async () => {
    const payment = await bench.buy('n4')
    const held = bench.provider.payments.get(payment)
    if (held !== undefined) held.standing = 'unpaid'
    const id = await bench.find({ kind: 'paid_here', order: 'n4', payment })
    const plan = await bench.repairs.plan(id, { to: 'canceled' })
    expect(plan).toMatchObject({ voided: [{ id: payment }], order: { to: 'canceled' } })
    const report = await bench.repairs.apply(id, by, { to: 'canceled' })
    expect(report.finding).toBe('closed')
    expect(
      await bench.rows(`select applied from ledger_payments where payment_id = $1`, [payment]),
    ).toEqual([{ applied: false }])
    await bench.deliver(checkoutSessionExpired({ order: 'n4', attempt: 3 }))
    await bench.work()
    expect(await bench.order('n4')).toEqual({ state: 'canceled', active: [] })
    await expectAudited()
  })

  it('can be the one that somebody wrote into the row', async () => {
    await bench.buy('n3')
    await bench.pool.query(`update orders set state = 'refunded' where order_id = 'n3'`)
    const id = await bench.find({ kind: 'tampered', order: 'n3' })
    const plan = await bench.repairs.plan(id, { to: 'refunded' })
    expect(plan).toMatchObject({ order: { from: 'refunded', to: 'refunded', decided: 'paid' } })
    await bench.repairs.apply(id, by, { to: 'refunded' })
    expect(await bench.order('n3')).toEqual({ state: 'refunded', active: [] })
    await expectAudited()
  })

  it('must be a state of the workflow', async () => {
    const id = await bench.find({ kind: 'paid_here', order: 'n2' })
    await expect(bench.repairs.plan(id, { to: 'payed' })).rejects.toMatchObject({
      code: 'HKL_CONFIG_UNKNOWN_NAME',
      message: expect.stringContaining('did you mean "paid"') as string,
    })
  })
})

describe('what the checks refused', () => {
  it('can be accepted by a person, with all that the workflow makes of it', async () => {
    const payment = bench.provider.pay('a1', { amount: 4500 })
    await bench.deliver(
      checkoutSessionCompleted({ order: 'a1', amount: 4500, email: 'a1@example.com' }),
    )
    await bench.work()
    const [row] = await bench.rows<{ finding_id: string; kind: string }>(
      `select finding_id, kind from findings where evidence ->> 'payment' = $1`,
      [payment],
    )
    expect(row?.kind).toBe('not_accepted')
    const id = row?.finding_id ?? ''
    await expect(bench.repairs.plan(id)).rejects.toMatchObject({ code: 'HKL_REPAIR_CHOICE' })
    const plan = await bench.repairs.plan(id, { choice: 'accept' })
    expect(plan).toMatchObject({
      order: { id: 'a1', from: 'pending', to: 'paid' },
      payments: [{ id: payment, amount: 4500n, known: true }],
      granted: ['email:a1@example.com pro'],
      operations: [{ destination: 'email' }],
    })
    await bench.repairs.apply(id, by, { choice: 'accept' })
    expect(await bench.order('a1')).toEqual({ state: 'paid', active: ['email:a1@example.com pro'] })
    expect(
      await bench.rows(`select applied from ledger_payments where payment_id = $1`, [payment]),
    ).toEqual([{ applied: true }])
    await expectAudited()
  })
})

describe('a kind that no repair ends', () => {
  it.each([
    ['operation_dead', 'outbox retry'],
    ['dead_event', 'replay'],
    ['source_silent', 'endpoint'],
  ])('says where to go instead (%s)', async (kind, hint) => {
    const id = await bench.find({ kind })
    await expect(bench.repairs.plan(id)).rejects.toMatchObject({
      code: 'HKL_REPAIR_IMPOSSIBLE',
      message: expect.stringContaining(hint) as string,
    })
  })
})

describe('a source that cannot be asked', () => {
  it('leaves the choices that need no asking, and says why', async () => {
    const payment = await bench.buy('x1')
    const mute = createHookledger({ ...shopOptions, database: bench.pool })
    const repairs = await partsOf(mute).repairs()
    const id = await bench.find({ kind: 'paid_here', order: 'x1', payment })
    await expect(repairs.plan(id)).rejects.toMatchObject({
      code: 'HKL_REPAIR_CHOICE',
      message: expect.stringMatching(/cannot be asked here .*; choose: --to STATE/) as string,
    })
    const report = await repairs.apply(id, by, { to: 'canceled' })
    expect(report).toMatchObject({ outcome: 'applied', finding: 'dismissed' })
    expect(await bench.order('x1')).toEqual({ state: 'canceled', active: [] })
    await expectAudited()
  })
})
