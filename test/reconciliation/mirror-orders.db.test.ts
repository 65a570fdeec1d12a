import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { Adoption } from '../../src/compose/adopt.ts'
import { partsOf } from '../../src/hookledger.ts'
import { audit } from '../../src/report/audit.ts'
import { followedPlans, type FollowedPlans, type Plan } from '../support/followed-plans.ts'

const by = { reason: 'somebody changed it', actor: 'ada' }
const directory = mkdtempSync(join(tmpdir(), 'adopt-plans-'))
let plans: FollowedPlans
beforeAll(async () => {
  plans = await followedPlans()
})
afterAll(async () => {
  rmSync(directory, { recursive: true, force: true })
  await plans.close()
})
beforeEach(() => plans.reset())
afterEach(async () => {
  const broken = (await audit(plans.db)).checks.filter((each) => !each.holds)
  expect(broken.map(({ check }) => check)).toEqual([])
})

const day = 86_400_000
/** A plan that is on no list of a pass any more. */
async function becomes(plan: Partial<Plan>): Promise<void> {
  plans.set({ id: 'p1', order: 'o1', status: 'active', ...plan }, 30 * day)
  await plans.tell('p1', 'o1')
  await plans.work()
}
const order = async (): Promise<unknown> =>
  (
    await plans.rows(
      `select state, (select string_agg(entitlement || ' ' || quantity, ',') from current_entitlements) as has from orders`,
    )
  )[0]
const open = (): Promise<{ readonly id: string; readonly kind: string }[]> =>
  plans.rows(
    `select finding_id::text as id, kind from findings where state in ('open', 'repairing') order by kind`,
  )

describe('an order that a mirror decided', () => {
  it('is what its decisions say, whichever way it went and however often', async () => {
    for (const plan of [
      { seats: 2 },
      { seats: 5 },
      { status: 'late' },
      { seats: 5 },
      { status: 'paused' },
      { status: 'late' },
      { seats: 1 },
      { status: 'odd' },
      { seats: 3 },
    ])
      await becomes(plan)
    expect(await plans.pass()).toMatchObject({ state: 'complete', opened: 0 })
    expect(await open()).toMatchObject([])
    plans.present.delete('p1')
    await plans.tell('p1', 'o1')
    await plans.work()
    expect(await plans.pass()).toMatchObject({ state: 'complete', opened: 0 })
    expect(await order()).toEqual({ state: 'ended', has: null })
  })

  it('needs no payment to entitle: the provider has said so', async () => {
    await becomes({ seats: 2 })
    expect(await plans.pass()).toMatchObject({ state: 'complete', opened: 0 })
    expect(plans.records.fetched).toEqual([])
  })

  it('is found tampered with, and is restored to what was decided', async () => {
    await becomes({ seats: 2 })
    await plans.rows(`update orders set state = 'late'`)
    await plans.pass()
    const found = (await open()).find(({ kind }) => kind === 'tampered')
    const repairs = await partsOf(plans.hookledger).repairs()
    expect(await repairs.plan(found?.id ?? '')).toMatchObject({
      order: { from: 'late', to: 'active' },
    })
    await repairs.apply(found?.id ?? '', by)
    expect(await order()).toEqual({ state: 'active', has: 'team 2' })
    await plans.pass()
    expect(await open()).toEqual([])
  })

  it('is made right by a look where the provider lists it still, without a person', async () => {
    plans.set({ id: 'p1', order: 'o1', status: 'active', seats: 2 })
    await plans.tell('p1', 'o1')
    await plans.work()
    await plans.rows(`update entitlements set active = false`)
    await plans.pass()
    expect(await order()).toEqual({ state: 'active', has: 'team 2' })
  })

  it('is not repaired from a record that somebody read: a look ends it, and the message says so', async () => {
    plans.set({ id: 'p1', order: 'o1', status: 'active' })
    await plans.tell('p1', 'o1')
    await plans.work()
    // the list and the record are behind what the provider answers
    plans.present.set('p1', { id: 'p1', order: 'o1', status: 'late' })
    await plans.tell('p1', 'o1')
    await plans.work()
    await plans.pass()
    const [found] = await open()
    expect(found?.kind).toBe('mirror_differs')
    const repairs = await partsOf(plans.hookledger).repairs()
    await expect(repairs.plan(found?.id ?? '')).rejects.toMatchObject({
      code: 'HKL_REPAIR_IMPOSSIBLE',
      message: expect.stringContaining('hookledger reconcile') as string,
    })
  })
})

describe('an adopted order that a mirror follows', () => {
  it('stays as it was adopted until its first event, which looks', async () => {
    const file = join(directory, 'plans.jsonl')
    const line = {
      order: 'o1',
      workflow: 'plans',
      source: 'probe',
      state: 'active',
      subject: 'org:o1',
      entitlements: [{ subject: 'org:o1', entitlement: 'team', quantity: 2 }],
    }
    writeFileSync(file, `${JSON.stringify(line)}\n`)
    const { config } = partsOf(plans.hookledger)
    const adoption = new Adoption(plans.db, config, file)
    const checked = await adoption.check()
    expect(checked.problems).toEqual([])
    await adoption.write(checked, by)
    expect(await plans.pass()).toMatchObject({ state: 'complete', injected: 0, opened: 0 })
    expect(await order()).toEqual({ state: 'active', has: 'team 2' })
    // a range as far back as the plan was made looks, where the two differ
    plans.set({ id: 'p1', order: 'o1', status: 'active', seats: 3 }, 30 * day)
    const from = new Date(Date.now() - 40 * day)
    expect(await plans.pass({ how: 'range', from, kinds: ['plan'] })).toMatchObject({ injected: 1 })
    expect(await order()).toEqual({ state: 'active', has: 'team 3' })
    await becomes({ seats: 7 })
    expect(await order()).toEqual({ state: 'active', has: 'team 7' })
    await becomes({ status: 'late' })
    expect(await order()).toEqual({ state: 'late', has: null })
    expect(await plans.pass()).toMatchObject({ state: 'complete', opened: 0 })
  })
})
