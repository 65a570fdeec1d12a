import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { followedPlans, type FollowedPlans } from '../support/followed-plans.ts'

let plans: FollowedPlans
beforeAll(async () => {
  plans = await followedPlans()
})
afterAll(() => plans.close())
beforeEach(() => plans.reset())

const ask = (kind = 'plan', id = 'p1', timeoutMs = 3000): Promise<unknown> =>
  plans.hookledger.confirm({
    source: 'probe',
    reference: { kind, id },
    order: 'o1',
    subject: 'org:o1',
    timeoutMs,
  })
const ids = async (): Promise<unknown[]> =>
  plans.rows(`select event_id, via, state from webhook_inbox order by event_key`)
const team = (quantity: number): unknown => ({
  outcome: 'decided',
  state: 'active',
  entitlements: [{ entitlement: 'team', quantity, validUntil: null }],
})

describe('confirm of an object that a mirror follows', () => {
  it('asks, decides from the answer and answers at once, without a gatherer or a worker', async () => {
    plans.set({ id: 'p1', order: 'o1', status: 'active', seats: 2 })
    // what the record says is a hint: the answer of the fetch counts
    plans.present.set('p1', { id: 'p1', order: 'o1', status: 'active', seats: 3 })
    expect(await ask()).toEqual(team(3))
    expect(await ids()).toEqual([
      { event_id: 'object:plan:p1:look-1:o1', via: 'confirm', state: 'processed' },
    ])
  })

  it('asks for nothing more when the page is loaded again', async () => {
    plans.set({ id: 'p1', order: 'o1', status: 'active', seats: 2 })
    for (let load = 0; load < 3; load += 1) expect(await ask()).toEqual(team(2))
    expect(plans.provider.asked).toBe(1)
    expect(await ids()).toHaveLength(1)
  })

  it('looks again where the object has changed since', async () => {
    plans.set({ id: 'p1', order: 'o1', status: 'active', seats: 2 })
    await ask()
    plans.set({ id: 'p1', order: 'o1', status: 'active', seats: 7 })
    expect(await ask()).toEqual(team(7))
    plans.set({ id: 'p1', order: 'o1', status: 'active', seats: 2 })
    expect(await ask()).toEqual(team(2))
    expect(await ids()).toHaveLength(3)
  })

  it('answers pending while the provider does not, and what it stored is decided later', async () => {
    plans.set({ id: 'p1', order: 'o1', status: 'active' })
    let isDown = true
    plans.provider.before = () => {
      if (isDown) throw new Error('the provider is down')
    }
    expect(await ask('plan', 'p1', 300)).toEqual({ outcome: 'pending' })
    expect(await ids()).toMatchObject([{ state: 'pending' }])
    expect(await ask('plan', 'p1', 300)).toEqual({ outcome: 'pending' })
    expect(await ids()).toHaveLength(1)
    isDown = false
    await plans.rows(`update fetches set due_at = now()`)
    expect(await ask()).toEqual(team(1))
    expect(await ids()).toHaveLength(1)
  })

  it('says nothing about the order of somebody else', async () => {
    plans.set({ id: 'p1', order: 'o2', status: 'active' })
    expect(await ask()).toEqual({ outcome: 'unknown' })
    expect(await ids()).toEqual([])
    expect(plans.provider.asked).toBe(0)
  })

  it('finds the same as a pass that comes after it', async () => {
    plans.set({ id: 'p1', order: 'o1', status: 'active' })
    await ask()
    expect(await plans.pass()).toMatchObject({ state: 'complete', injected: 0, opened: 0 })
  })
})
