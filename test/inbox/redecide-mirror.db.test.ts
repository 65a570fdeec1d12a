import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createRedecider, type Redecider } from '../../src/compose/redecide.ts'
import { partsOf } from '../../src/hookledger.ts'
import { audit } from '../../src/report/audit.ts'
import { contradict, skip } from '../../src/workflow/decision.ts'
import { followedPlans, type FollowedPlans } from '../support/followed-plans.ts'

const by = { reason: 'the status is known by now', actor: 'ada' }
let plans: FollowedPlans
let redecider: Redecider
beforeAll(async () => {
  plans = await followedPlans()
  const parts = partsOf(plans.hookledger)
  redecider = createRedecider((await parts.contexts()).work, parts.signals, (keys, ms) =>
    parts.gatherNow(keys, ms),
  )
})
afterAll(() => plans.close())
beforeEach(() => plans.reset())
afterEach(async () => {
  const broken = (await audit(plans.db)).checks.filter((each) => !each.holds)
  expect(broken.map((each) => each.check)).toEqual([])
})

const lists = async (): Promise<unknown> =>
  (
    await plans.rows(`select (select count(*)::int from inbox_ready) as ready,
      (select count(*)::int from inbox_gathers) as gathers, (select count(*)::int from fetches) as fetches`)
  )[0]
const clean = { ready: 0, gathers: 0, fetches: 0 }

async function plan(
  id: string,
): Promise<Extract<Awaited<ReturnType<Redecider['plan']>>, { kind: 'planned' }>> {
  const planned = await redecider.plan({ id }, by)
  if (planned.kind !== 'planned') throw new Error('it was decided anew already')
  return planned
}

/** A look that ended in nothing, by a mistake of the app's that is mended since. */
async function skipped(): Promise<void> {
  plans.set({ id: 'p1', order: 'o1', status: 'active', seats: 2 })
  plans.hooks.decide = () => skip('a mistake of the app')
  await plans.tell('p1', 'o1', 'evt_skipped')
  await plans.work()
  delete plans.hooks.decide
}

describe('deciding anew what a mirror skipped', () => {
  it('asks again: the plan says what the object is now, and applying it asks once more', async () => {
    await skipped()
    plans.set({ id: 'p1', order: 'o1', status: 'active', seats: 4 })
    const planned = await plan('evt_skipped')
    expect(planned.plan).toMatchObject({
      kind: 'moved',
      order: { id: 'o1', from: 'unseen', to: 'active' },
      granted: ['org:o1 team'],
    })
    expect(await lists()).toEqual(clean)
    expect(await plans.rows('select 1 from current_entitlements')).toEqual([])
    expect(await redecider.apply(planned, by)).toMatchObject({ kind: 'redecided' })
    expect(await plans.rows('select quantity::int from current_entitlements')).toEqual([
      { quantity: 4 },
    ])
    expect(await lists()).toEqual(clean)
    expect(plans.provider.asked).toBe(3)
    expect(
      await plans.rows(
        `select kind, evidence -> 'fetch' ->> 'number' as number from decisions order by decision_id`,
      ),
    ).toEqual([
      { kind: 'skipped', number: '1' },
      { kind: 'redecided', number: '3' },
    ])
    expect(
      await plans.rows('select sent::int, answered::int, applied::int from looked_at'),
    ).toEqual([{ sent: 3, answered: 3, applied: 3 }])
  })

  it('does nothing where the object is otherwise than the plan says', async () => {
    await skipped()
    const planned = await plan('evt_skipped')
    plans.set({ id: 'p1', order: 'o1', status: 'late' })
    await expect(redecider.apply(planned, by)).rejects.toMatchObject({ code: 'HKL_REPAIR_CHANGED' })
    expect(await plans.rows(`select state from orders`)).toEqual([{ state: 'unseen' }])
    expect(await lists()).toEqual(clean)
  })

  it('says that the provider did not answer, and leaves nothing behind', async () => {
    await skipped()
    plans.provider.before = () => {
      throw new Error('the provider is down')
    }
    await expect(plan('evt_skipped')).rejects.toMatchObject({ code: 'HKL_RECONCILE_UNAVAILABLE' })
    expect(await lists()).toEqual(clean)
  })

  it('is done once, whoever asks again', async () => {
    await skipped()
    const planned = await plan('evt_skipped')
    const both = await Promise.all([redecider.apply(planned, by), redecider.apply(planned, by)])
    expect(both.map(({ kind }) => kind).sort()).toEqual(['recorded', 'redecided'])
    expect(await redecider.plan({ id: 'evt_skipped' }, by)).toMatchObject({ kind: 'recorded' })
    expect(await lists()).toEqual(clean)
  })

  it('refuses what would do nothing', async () => {
    await skipped()
    await plans.tell('p1', 'o1')
    await plans.work()
    await expect(plan('evt_skipped')).rejects.toMatchObject({ code: 'HKL_REPAIR_IMPOSSIBLE' })
    expect(await lists()).toEqual(clean)
  })
})

describe('deciding anew what was decided from what was gathered', () => {
  it('gathers again, and looks at nothing for ever', async () => {
    plans.hooks.note = () => contradict('a mistake of the app')
    await plans.deliver({
      id: 'evt_note',
      type: 'note',
      plan: { id: 'p1', order: 'o1' },
      note: 'n1',
    })
    await plans.work()
    delete plans.hooks.note
    const planned = await plan('evt_note')
    expect(planned.plan).toMatchObject({
      kind: 'fulfilled',
      effects: [{ type: 'note', reference: 'n1' }],
    })
    expect(await redecider.apply(planned, by)).toMatchObject({ kind: 'redecided' })
    expect(await plans.rows(`select effect_reference as id from fulfillment_effects`)).toEqual([
      { id: 'n1' },
    ])
    expect(await lists()).toEqual(clean)
    expect(await plans.rows('select 1 from looked_at')).toEqual([])
    expect(await plans.rows('select number::int from evidence order by 1')).toEqual([
      { number: 1 },
      { number: 2 },
      { number: 3 },
    ])
  })
})
