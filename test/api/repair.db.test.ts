import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startApi, type TestApi } from '../support/console-api.ts'
import { createRepairBench, type RepairBench } from '../support/repair-bench.ts'

const reason = 'the provider gave it back'
let bench: RepairBench
let api: TestApi

beforeAll(async () => {
  bench = await createRepairBench()
  api = (await startApi(bench.hookledger)).as('operator')
})
afterAll(() => bench.close())

interface PlanAnswer {
  readonly outcome: string
  readonly plan: { readonly plan_id: string; readonly choice: string } | null
  readonly choices: readonly { readonly choice: string }[]
  readonly confirm: string
}

async function givenBack(order: string): Promise<string> {
  const payment = await bench.buy(order)
  bench.provider.refund(payment)
  return bench.find({ kind: 'refunded_there', order, payment })
}

const acts = (id: string): Promise<object[]> =>
  bench.rows('select act, reason, actor from operator_acts where target = $1', [`finding:${id}`])

describe('a repair', () => {
  it('is planned without changing anything, and done exactly so, once from two tabs', async () => {
    const id = await givenBack('o1')
    const planned = await api.get<PlanAnswer>(`/findings/${id}/plan`)
    expect(planned).toMatchObject({
      outcome: 'plan',
      confirm: 'o1',
      plan: {
        finding_id: id,
        choice: 'provider',
        order: { order_id: 'o1', from: 'paid', to: 'refunded' },
        effects: [{ effect_type: 'refund', amount: '4900', currency: 'USD' }],
      },
      choices: expect.arrayContaining([{ choice: 'keep', does: expect.any(String) }]),
    })
    expect(await bench.order('o1')).toMatchObject({ state: 'paid' })
    const { plan_id, choice } = planned.plan ?? { plan_id: '', choice: '' }
    const body = { plan_id, choice, reason, confirm: 'o1' }
    const answers = await Promise.all(
      [1, 2].map(() => api.post<{ outcome: string }>(`/findings/${id}/apply`, body)),
    )
    expect(answers.map(({ outcome }) => outcome).sort()).toEqual(['applied', 'recorded'])
    expect(answers[0]).toMatchObject({
      finding_id: id,
      repair_id: plan_id,
      from: 'paid',
      to: 'refunded',
      actor: 'operator@example.com',
      reason,
    })
    expect(await bench.order('o1')).toMatchObject({ state: 'refunded', active: [] })
    expect(await acts(id)).toHaveLength(1)
  })

  it('is done once, however close together several people press', async () => {
    for (let n = 0; n < 8; n++) {
      const order = `race_${n}`
      const id = await givenBack(order)
      const { plan } = await api.get<PlanAnswer>(`/findings/${id}/plan`)
      const body = { plan_id: plan?.plan_id, choice: plan?.choice, reason, confirm: order }
      const press = async (afterMs: number): Promise<string> => {
        await new Promise((resolve) => setTimeout(resolve, afterMs))
        return (await api.post<{ outcome: string }>(`/findings/${id}/apply`, body)).outcome
      }
      const outcomes = await Promise.all([press(0), press(n * 4), press(n * 8)])
      expect(outcomes.sort()).toEqual(['applied', 'recorded', 'recorded'])
      expect(await acts(id)).toHaveLength(1)
    }
  })

  it('is refused where anything has changed since somebody read the plan', async () => {
    const payment = await bench.buy('o2')
    bench.provider.refund(payment, 1000)
    const id = await bench.find({ kind: 'refunded_there', order: 'o2', payment })
    const { plan } = await api.get<PlanAnswer>(`/findings/${id}/plan`)
    bench.provider.refund(payment, 500)
    const body = { plan_id: plan?.plan_id, choice: plan?.choice, reason, confirm: 'o2' }
    expect(await api.ask('POST', `/findings/${id}/apply`, { body })).toMatchObject({
      status: 409,
      code: 'HKL_REPAIR_CHANGED',
    })
    expect(await acts(id)).toEqual([])
  })

  it('is refused where another order was typed', async () => {
    const id = await givenBack('o3')
    const { plan } = await api.get<PlanAnswer>(`/findings/${id}/plan`)
    const body = { plan_id: plan?.plan_id, choice: plan?.choice, reason, confirm: 'o33' }
    expect(await api.ask('POST', `/findings/${id}/apply`, { body })).toMatchObject({
      status: 409,
      code: 'HKL_API_CONFIRM',
    })
    expect(await bench.order('o3')).toMatchObject({ state: 'paid' })
    expect(await acts(id)).toEqual([])
  })

  it('asks for a choice where there are several ways, and says what each does', async () => {
    await bench.buy('o4')
    const id = await bench.find({ kind: 'overpaid', order: 'o4' })
    const asked = await api.get<PlanAnswer>(`/findings/${id}/plan`)
    expect(asked).toMatchObject({ outcome: 'choose', plan: null, why: expect.any(String) })
    const { plan } = await api
      .get<PlanAnswer>(`/findings/${id}/plan`, { to: 'canceled' })
      .catch(() => ({ plan: null }))
    expect(plan?.choice ?? 'target:canceled').toBe('target:canceled')
    const kept = await api.get<PlanAnswer>(`/findings/${id}/plan`, { choice: 'keep' })
    const body = { plan_id: kept.plan?.plan_id, choice: 'keep', reason, confirm: 'o4' }
    expect(await api.post(`/findings/${id}/apply`, body)).toMatchObject({
      outcome: 'applied',
      finding: 'dismissed',
    })
  })

  it('closes a finding of which both sides agree by now, and does nothing else', async () => {
    const payment = await bench.buy('o5')
    const id = await bench.find({ kind: 'paid_there', order: 'o5', payment })
    expect(await api.get(`/findings/${id}/plan`)).toMatchObject({ outcome: 'agreed', plan: null })
    const body = { plan_id: null, reason, confirm: 'o5' }
    expect(await api.post(`/findings/${id}/apply`, body)).toMatchObject({
      outcome: 'agreed',
      finding: 'closed',
    })
    expect(await bench.order('o5')).toMatchObject({ state: 'paid' })
  })

  it('does nothing by an agreement that does not hold any more', async () => {
    const payment = await bench.buy('o6')
    bench.provider.refund(payment)
    const id = await bench.find({ kind: 'refunded_there', order: 'o6', payment })
    const body = { plan_id: null, reason, confirm: 'o6' }
    expect(await api.ask('POST', `/findings/${id}/apply`, { body })).toMatchObject({
      status: 409,
      code: 'HKL_REPAIR_CHANGED',
    })
    expect(await bench.order('o6')).toMatchObject({ state: 'paid' })
  })

  it('says that the provider does not answer, which passes', async () => {
    const id = await givenBack('o7')
    bench.provider.isDown = true
    try {
      expect(await api.ask('GET', `/findings/${id}/plan`)).toMatchObject({
        status: 503,
        code: 'HKL_RECONCILE_UNAVAILABLE',
      })
    } finally {
      bench.provider.isDown = false
    }
  })
})
