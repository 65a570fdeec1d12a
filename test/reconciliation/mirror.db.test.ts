import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { followedPlans, recordOf, type FollowedPlans } from '../support/followed-plans.ts'

let plans: FollowedPlans
beforeAll(async () => {
  plans = await followedPlans()
})
afterAll(() => plans.close())
beforeEach(() => plans.reset())

const settled = { state: 'complete', error: null }
const order = async (id = 'o1'): Promise<unknown> =>
  (
    await plans.rows(
      `select state, (select string_agg(entitlement || ' ' || quantity, ',') from current_entitlements
        where subject = 'org:' || o.order_id) as has from orders o where order_id = $1`,
      [id],
    )
  )[0]
const looks = async (): Promise<string[]> =>
  (
    await plans.rows<{ event_id: string }>(
      `select event_id from inbox_events where event_id like 'object:%' order by event_key`,
    )
  ).map((row) => row.event_id)
const findings = (): Promise<unknown[]> =>
  plans.rows(`select kind, state, times_seen::int as seen from findings order by kind`)

/** The webhook of a plan's change, decided. */
async function told(id = 'p1', of = 'o1'): Promise<void> {
  await plans.tell(id, of)
  for (;;) {
    await plans.work()
    const [row] = await plans.rows<{ open: number }>(
      `select count(*)::int as open from webhook_inbox where state = 'pending'`,
    )
    if (row?.open === 0) return
  }
}

describe('a pass over objects that a mirror follows', () => {
  it('looks at what nothing told, and is decided from an answer and not from the list', async () => {
    plans.set({ id: 'p1', order: 'o1', status: 'active', seats: 2 })
    // the list is behind: it has the plan as it was
    plans.present.set('p1', { id: 'p1', order: 'o1', status: 'active', seats: 5 })
    const run = await plans.pass()
    expect(run).toMatchObject({ ...settled, injected: 1, opened: 1 })
    expect(await order()).toEqual({ state: 'active', has: 'team 5' })
    expect(await looks()).toEqual(['object:plan:p1:look-1:o1'])
    expect(
      await plans.rows(
        `select kind, evidence -> 'fetch' ->> 'about' as about, evidence -> 'fetch' ->> 'number' as number from decisions`,
      ),
    ).toEqual([{ kind: 'moved', about: 'plan p1', number: '1' }])
  })

  it('changes nothing the second time, nor the third', async () => {
    for (const n of [1, 2, 3]) plans.set({ id: `p${n}`, order: `o${n}`, status: 'active' })
    expect(await plans.pass()).toMatchObject({ ...settled, injected: 3, opened: 3, closed: 3 })
    const count = plans.provider.asked
    for (let again = 0; again < 2; again += 1)
      expect(await plans.pass()).toMatchObject({ ...settled, injected: 0, opened: 0, closed: 0 })
    expect(plans.provider.asked).toBe(count)
    expect(await findings()).toEqual(
      [1, 2, 3].map(() => ({ kind: 'mirror_differs', state: 'closed', seen: 1 })),
    )
  })

  it('asks nobody about what is as the order has it', async () => {
    plans.set({ id: 'p1', order: 'o1', status: 'active' })
    await told()
    const count = plans.provider.asked
    expect(await plans.pass()).toMatchObject({ ...settled, injected: 0, opened: 0 })
    expect(plans.provider.asked).toBe(count)
    expect(await looks()).toEqual([])
  })

  it('heals a change that was never told, and says so with a finding that is over', async () => {
    plans.set({ id: 'p1', order: 'o1', status: 'active' })
    await told()
    plans.set({ id: 'p1', order: 'o1', status: 'late' })
    expect(await plans.pass()).toMatchObject({ ...settled, injected: 1, opened: 1, closed: 1 })
    expect(await order()).toEqual({ state: 'late', has: null })
    expect(
      await plans.rows(
        `select kind, state, order_id, closed_because, evidence ->> 'here' as here, evidence ->> 'there' as there from findings`,
      ),
    ).toEqual([
      {
        kind: 'mirror_differs',
        state: 'closed',
        order_id: 'o1',
        closed_because: 'both sides say the same',
        here: 'active',
        there: 'late',
      },
    ])
  })

  it('looks again at a state that comes again, whatever was looked at before', async () => {
    plans.set({ id: 'p1', order: 'o1', status: 'active' })
    for (const status of ['active', 'late', 'active', 'late', 'active']) {
      plans.set({ id: 'p1', order: 'o1', status })
      expect(await plans.pass()).toMatchObject({ ...settled, injected: 1 })
      expect(await order()).toMatchObject({ state: status })
    }
    expect(await looks()).toEqual([1, 2, 3, 4, 5].map((n) => `object:plan:p1:look-${n}:o1`))
  })

  it('does not look again and again because of a list that stays behind', async () => {
    plans.set({ id: 'p1', order: 'o1', status: 'active' })
    await told()
    plans.present.set('p1', { id: 'p1', order: 'o1', status: 'late' })
    await told()
    // the list still says active
    expect(await plans.pass()).toMatchObject({ ...settled, injected: 1 })
    for (let again = 0; again < 3; again += 1)
      expect(await plans.pass()).toMatchObject({ ...settled, injected: 0, opened: 0 })
    expect(await order()).toMatchObject({ state: 'late' })
    expect(await findings()).toMatchObject([{ kind: 'mirror_differs', state: 'open' }])
    plans.set({ id: 'p1', order: 'o1', status: 'late' })
    expect(await plans.pass()).toMatchObject({ ...settled, injected: 0, closed: 1 })
  })

  it('makes one look of two passes at the same moment', async () => {
    plans.set({ id: 'p1', order: 'o1', status: 'active' })
    await Promise.all([plans.pass(), plans.pass()])
    expect(await looks()).toEqual(['object:plan:p1:look-1:o1'])
    expect(await order()).toMatchObject({ state: 'active' })
  })

  it('leaves alone what an event waits for an answer about', async () => {
    plans.set({ id: 'p1', order: 'o1', status: 'active' })
    plans.provider.before = () => {
      throw new Error('the provider is down')
    }
    await plans.tell('p1', 'o1')
    await plans.work()
    expect(await plans.pass()).toMatchObject({ ...settled, injected: 0, opened: 0 })
    expect(await looks()).toEqual([])
  })

  it('looks where a record only names what a mirror follows, if nobody ever looked', async () => {
    plans.present.set('p1', { id: 'p1', order: 'o1', status: 'active' })
    plans.records.held.push(
      recordOf('bill', { id: 'b1', plan: { id: 'p1', order: 'o1' } } as never, 1_800_000),
      recordOf('bill', { id: 'b2', plan: { id: 'p1', order: 'o1' } } as never, 1_700_000),
    )
    expect(await plans.pass()).toMatchObject({ ...settled, injected: 1 })
    expect(await order()).toMatchObject({ state: 'active' })
    expect(await plans.pass()).toMatchObject({ ...settled, injected: 0, opened: 0 })
  })

  it('puts in what waits for a customer once, and the link decides it', async () => {
    plans.set({ id: 'p1', order: 'o1', status: 'active', customer: 'cus_1' })
    expect(await plans.pass()).toMatchObject({ ...settled, injected: 1 })
    expect(await plans.rows(`select state from webhook_inbox`)).toEqual([{ state: 'deferred' }])
    expect(await plans.pass()).toMatchObject({ ...settled, injected: 0, opened: 0 })
    expect(await findings()).toMatchObject([{ kind: 'event_missing', state: 'closed' }])
  })

  it('makes a finding that a status flags, and ends it, though the order stays as it is', async () => {
    plans.set({ id: 'p1', order: 'o1', status: 'active' })
    await told()
    plans.set({ id: 'p1', order: 'o1', status: 'odd' })
    expect(await plans.pass()).toMatchObject({ ...settled, injected: 1 })
    expect(await findings()).toMatchObject([
      { kind: 'mirror_differs', state: 'closed' },
      { kind: 'unknown_status', state: 'open' },
    ])
    expect(await plans.pass()).toMatchObject({ ...settled, injected: 0, opened: 0 })
    plans.set({ id: 'p1', order: 'o1', status: 'active' })
    expect(await plans.pass()).toMatchObject({ ...settled, injected: 1 })
    expect(await findings()).toMatchObject([
      { kind: 'mirror_differs', state: 'closed' },
      { kind: 'unknown_status', state: 'closed' },
    ])
  })

  it('does not repeat a look that ended in a contradiction or in an error', async () => {
    plans.set({ id: 'p1', order: 'o1', status: 'broken' })
    expect(await plans.pass()).toMatchObject({ ...settled, injected: 1 })
    expect(await plans.pass()).toMatchObject({ ...settled, injected: 0, opened: 0 })
    expect(await findings()).toMatchObject([
      { kind: 'contradicted', state: 'open' },
      { kind: 'event_missing', state: 'closed' },
    ])
  })
})

describe('a pass over records for whose events something is gathered', () => {
  const note = (id: string, order = 'o1'): void => {
    plans.records.held.push(recordOf('note', { id, plan: { id: 'p1', order } } as never, 1_800_000))
  }

  it('puts in what its order does not know, once, and it is decided from what is gathered', async () => {
    note('n1')
    note('n2', 'o2')
    expect(await plans.pass()).toMatchObject({ ...settled, injected: 2, opened: 2, closed: 2 })
    expect(
      await plans.rows(
        `select effect_reference as id from fulfillment_effects order by effect_reference`,
      ),
    ).toEqual([{ id: 'n1' }, { id: 'n2' }])
    expect(await plans.pass()).toMatchObject({ ...settled, injected: 0, opened: 0 })
    expect(plans.provider.asked).toBe(2)
  })

  it('leaves alone what its order knows by the id of the record', async () => {
    await plans.deliver({
      id: 'evt_note',
      type: 'note',
      plan: { id: 'p1', order: 'o1' },
      note: 'n1',
    })
    await plans.work()
    note('n1')
    expect(await plans.pass()).toMatchObject({ ...settled, injected: 0, opened: 0 })
  })
})

describe('what was not looked at for long', () => {
  const day = 86_400_000
  const age = (hours: number): Promise<unknown> =>
    plans.rows(
      `update looked_at set answered_at = now() - $1::integer * interval '1 hour', checked_at = null`,
      [hours],
    )

  it('is looked at again, although it is too old for any list, and only once', async () => {
    plans.set({ id: 'p1', order: 'o1', status: 'active' }, 30 * day)
    await told()
    plans.present.set('p1', { id: 'p1', order: 'o1', status: 'late' })
    expect((await plans.pass()).injected).toBe(0)
    expect(await order()).toMatchObject({ state: 'active' })
    await age(25)
    expect(await plans.pass()).toMatchObject({ ...settled, opened: 0 })
    expect(await looks()).toEqual(['object:plan:p1:look-2:o1'])
    expect(await order()).toMatchObject({ state: 'late' })
    await plans.pass()
    expect(await looks()).toHaveLength(1)
    expect(plans.records.fetched).toEqual([])
  })

  it('is looked at once by two passes at the same moment', async () => {
    plans.set({ id: 'p1', order: 'o1', status: 'active' }, 30 * day)
    await told()
    await age(25)
    await Promise.all([plans.pass(), plans.pass()])
    expect(await looks()).toEqual(['object:plan:p1:look-2:o1'])
    expect(plans.provider.asked).toBe(2)
  })

  it('is found gone, and is not looked at any more then', async () => {
    plans.set({ id: 'p1', order: 'o1', status: 'active' }, 30 * day)
    await told()
    plans.present.delete('p1')
    await age(25)
    await plans.pass()
    expect(await order()).toEqual({ state: 'ended', has: null })
    await age(25)
    await plans.pass()
    expect(await looks()).toHaveLength(1)
  })

  it('is asked for by its record where the last answer is no longer kept', async () => {
    plans.set({ id: 'p1', order: 'o1', status: 'active' }, 30 * day)
    await told()
    await plans.rows('update evidence set body = null')
    await age(25)
    await plans.pass()
    expect(plans.records.fetched).toEqual([{ kind: 'plan', id: 'p1', account: 'acct_1' }])
    expect(await looks()).toEqual(['object:plan:p1:look-2:o1'])
  })

  it('is passed over where nothing can follow', async () => {
    plans.set({ id: 'p1', order: 'o1', status: 'ended' }, 30 * day)
    await told()
    await age(25)
    await plans.pass()
    expect(await looks()).toEqual([])
    expect(
      await plans.rows("select checked_at > now() - interval '1 minute' as checked from looked_at"),
    ).toEqual([{ checked: true }])
  })

  it('is looked at by whole passes only, at most a hundred at a time, the oldest first', async () => {
    const ids = Array.from({ length: 130 }, (_, n) => n)
    for (const n of ids) plans.set({ id: `p${n}`, order: `o${n}`, status: 'active' }, 30 * day)
    await plans.deliver(
      ...ids.map((n) => ({
        id: `evt_${n}_many`,
        type: 'plan.changed',
        plan: { id: `p${n}`, order: `o${n}` },
      })),
    )
    await told('p0', 'o0')
    await plans.rows(
      `update looked_at set answered_at = now() - (100 - substr(object_id, 2)::int * 0.1) * interval '1 hour'`,
    )
    await plans.pass({ kinds: ['plan'] })
    expect(await looks()).toHaveLength(0)
    await plans.pass()
    expect(await looks()).toHaveLength(100)
    expect(await looks()).not.toContain('object:plan:p129:look-2:o129')
    await plans.pass()
    expect(await looks()).toHaveLength(130)
  })
})
