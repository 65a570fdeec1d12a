import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { installFailpoints } from '../../src/core/failpoints.ts'
import { audit } from '../../src/report/audit.ts'
import { createRepairBench, type RepairBench } from '../support/repair-bench.ts'

const by = { reason: 'seen in the morning', actor: 'ada' }

let bench: RepairBench
beforeAll(async () => {
  bench = await createRepairBench()
})
afterAll(() => bench.close())

async function refunded(order: string): Promise<{ id: string; payment: string }> {
  const payment = await bench.buy(order)
  bench.provider.refund(payment)
  return { id: await bench.find({ kind: 'refunded_there', order, payment }), payment }
}

async function expectOne(order: string, findingId: string): Promise<void> {
  expect(
    await bench.rows(
      `select count(*)::int as n from ledger_decisions where order_id = $1 and kind = 'repaired'`,
      [order],
    ),
  ).toEqual([{ n: 1 }])
  expect(await bench.finding(findingId)).toMatchObject({ repairs: 1 })
  expect(
    await bench.rows(`select count(*)::int as n from operator_acts where target = $1`, [
      `finding:${findingId}`,
    ]),
  ).toEqual([{ n: 1 }])
  const { checks } = await audit(bench.db)
  expect(checks.filter(({ holds }) => !holds)).toEqual([])
}

describe('a repair', () => {
  it('is applied once when somebody presses twice at once', async () => {
    const { id } = await refunded('d1')
    const reports = await Promise.all([
      bench.repairs.apply(id, by),
      bench.repairs.apply(id, { ...by, actor: 'bob' }),
      bench.repairs.apply(id, by),
    ])
    // whoever comes second is answered with what the first one did, and who that was
    expect(reports.map(({ outcome }) => outcome).sort()).toEqual([
      'applied',
      'recorded',
      'recorded',
    ])
    const repairs = reports.map(({ repair }) => repair)
    expect(new Set(repairs.map((each) => each?.repairId)).size).toBe(1)
    expect(new Set(repairs.map((each) => each?.actor)).size).toBe(1)
    await expectOne('d1', id)
  })

  it('is answered with what somebody else did while its own plan was made', async () => {
    const { id } = await refunded('d10')
    let others = 1
    installFailpoints(async (step) => {
      if (step === 'P1' && others-- > 0)
        await bench.repairs.apply(id, { reason: 'first', actor: 'bob' })
    })
    const report = await bench.repairs.apply(id, by)
    installFailpoints(null)
    expect(report).toMatchObject({ outcome: 'recorded', repair: { actor: 'bob', reason: 'first' } })
    await expectOne('d10', id)
  })

  it('says who ended the finding where something else was asked for', async () => {
    const { id } = await refunded('d11')
    await bench.repairs.apply(id, { reason: 'a gift', actor: 'bob' }, { choice: 'keep' })
    await expect(bench.repairs.apply(id, by)).rejects.toMatchObject({
      code: 'HKL_FINDING_NOT_OPEN',
      message: expect.stringContaining('repair apply by bob') as string,
    })
  })

  it('answers with the recorded one when the same plan is applied again', async () => {
    const { id } = await refunded('d2')
    const plan = await bench.repairs.plan(id)
    if (plan === null) throw new Error('no plan')
    const first = await bench.repairs.apply(id, by, { given: plan })
    const second = await bench.repairs.apply(id, { reason: 'again', actor: 'bob' }, { given: plan })
    expect([first.outcome, second.outcome]).toEqual(['applied', 'recorded'])
    expect(second.repair).toMatchObject({ actor: 'ada', reason: by.reason })
    await expectOne('d2', id)
  })

  it('is given the same id by two people who plan the same', async () => {
    const { id } = await refunded('d3')
    const plans = await Promise.all([bench.repairs.plan(id), bench.repairs.plan(id)])
    expect(plans[0]?.id).toBe(plans[1]?.id)
  })

  it('is refused when the order changed after its plan was read', async () => {
    const { id, payment } = await refunded('d4')
    const plan = await bench.repairs.plan(id)
    if (plan === null) throw new Error('no plan')
    await bench.rows(`update orders set version = version + 1 where order_id = 'd4'`)
    await expect(bench.repairs.apply(id, by, { given: plan })).rejects.toMatchObject({
      code: 'HKL_REPAIR_CHANGED',
      message: expect.stringContaining('version') as string,
    })
    expect(await bench.finding(id)).toMatchObject({ state: 'open', repairs: 0 })
    bench.provider.payments.get(payment)?.refunds.push({ id: 're_more', amount: 0 })
    await expect(bench.repairs.apply(id, by, { given: plan })).rejects.toMatchObject({
      code: 'HKL_REPAIR_CHANGED',
    })
  })

  it('is refused when the provider says something else than the plan', async () => {
    const payment = await bench.buy('d5')
    bench.provider.refund(payment, 1000)
    const id = await bench.find({ kind: 'refunded_there', order: 'd5', payment })
    const plan = await bench.repairs.plan(id)
    if (plan === null) throw new Error('no plan')
    bench.provider.refund(payment, 3900)
    await expect(bench.repairs.apply(id, by, { given: plan })).rejects.toMatchObject({
      code: 'HKL_REPAIR_CHANGED',
    })
    expect(await bench.order('d5')).toMatchObject({ state: 'paid' })
  })

  it('is refused when the order changes between its plan and its commit, and planned anew where nobody read one', async () => {
    const { id } = await refunded('d9')
    const plan = await bench.repairs.plan(id)
    if (plan === null) throw new Error('no plan')
    let changes = 1
    installFailpoints(async (step) => {
      if (step === 'P1' && changes-- > 0)
        await bench.rows(`update orders set version = version + 1 where order_id = 'd9'`)
    })
    await expect(bench.repairs.apply(id, by, { given: plan })).rejects.toMatchObject({
      code: 'HKL_REPAIR_CHANGED',
    })
    expect(await bench.finding(id)).toMatchObject({ state: 'open', repairs: 0 })
    changes = 1
    const report = await bench.repairs.apply(id, by)
    installFailpoints(null)
    expect(report.outcome).toBe('applied')
    expect(report.repair?.repairId).not.toBe(plan.id)
    await expectOne('d9', id)
  })

  it('waits for whoever holds the order, and leaves it where that takes too long', async () => {
    const { id } = await refunded('d6')
    const client = await bench.pool.connect()
    await client.query(`begin; select 1 from orders where order_id = 'd6' for update`)
    const applying = bench.repairs.apply(id, by)
    await client.query('select pg_sleep(0.3)')
    await client.query('commit')
    client.release()
    expect((await applying).outcome).toBe('applied')
    await expectOne('d6', id)
  })

  it('needs a reason and an actor', async () => {
    const { id } = await refunded('d7')
    await expect(bench.repairs.apply(id, { reason: ' ', actor: 'ada' })).rejects.toMatchObject({
      code: 'HKL_CLI_USAGE',
    })
  })

  it('is not applied to a finding that is closed, and says why that is', async () => {
    const { id } = await refunded('d8')
    await bench.repairs.apply(id, by)
    await bench.rows(
      `update findings set state = 'closed', closed_because = 'both sides agree' where finding_id = $1`,
      [id],
    )
    await expect(bench.repairs.apply(id, by)).rejects.toMatchObject({
      code: 'HKL_FINDING_NOT_OPEN',
      message: expect.stringContaining('both sides agree') as string,
    })
    await expect(bench.repairs.plan('00000000-0000-5000-8000-000000000000')).rejects.toMatchObject({
      code: 'HKL_FINDING_UNKNOWN',
    })
  })
})

describe('a provider that does not answer', () => {
  it('lets nothing be planned or applied', async () => {
    const { id } = await refunded('u1')
    bench.provider.isDown = true
    await expect(bench.repairs.apply(id, by)).rejects.toMatchObject({
      code: 'HKL_RECONCILE_UNAVAILABLE',
    })
    bench.provider.isDown = false
    expect(await bench.finding(id)).toMatchObject({ state: 'open', repairs: 0 })
  })

  it('leaves what was applied as it is, to be verified when it answers again', async () => {
    const { id } = await refunded('u2')
    bench.provider.answersLeft = 1
    const report = await bench.repairs.apply(id, by)
    expect(report).toMatchObject({ outcome: 'applied', finding: 'waiting' })
    expect(report.problem).toContain('no answer in time')
    expect(await bench.order('u2')).toEqual({ state: 'refunded', active: [] })
    expect(await bench.finding(id)).toMatchObject({ state: 'repairing', verified: 0 })
    expect(await bench.repairs.verify()).toMatchObject({ verified: 0 })
    bench.provider.answersLeft = null
    bench.provider.isDown = false
    await bench.repairs.verify()
    expect(await bench.finding(id)).toMatchObject({ state: 'closed', verified: 1 })
    await expectOne('u2', id)
  })
})

describe('repairs by rule', () => {
  it('give up where the provider does not answer, instead of waiting for each', async () => {
    for (const order of ['w1', 'w2', 'w3', 'w4', 'w5']) await refunded(order)
    bench.provider.answersLeft = 0
    expect(await bench.repairs.automatic(['refunded_there'])).toBe(0)
    expect(bench.provider.answersLeft).toBeGreaterThan(-6)
    bench.provider.answersLeft = null
    bench.provider.isDown = false
    expect(await bench.repairs.automatic(['refunded_there'])).toBeGreaterThanOrEqual(5)
  })

  it('repair what the configuration names, with the rule as actor, and leave the rest', async () => {
    const { id } = await refunded('v1')
    const other = await bench.find({ kind: 'paid_here', order: 'v1' })
    const undecidable = await bench.find({ kind: 'refunded_there', order: 'nowhere' })
    expect(await bench.repairs.automatic(['refunded_there'])).toBeGreaterThanOrEqual(1)
    expect(await bench.rows(`select actor from repairs where finding_id = $1`, [id])).toEqual([
      { actor: 'rule:refunded_there' },
    ])
    expect(await bench.finding(other)).toMatchObject({ state: 'open' })
    expect(await bench.finding(undecidable)).toMatchObject({ state: 'open', repairs: 0 })
    expect(await bench.order('v1')).toEqual({ state: 'refunded', active: [] })
    expect(await bench.repairs.automatic(['refunded_there'])).toBe(0)
  })
})
