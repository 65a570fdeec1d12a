import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { runBatch, type RunReport } from '../../src/inbox/run-batch.ts'
import { promoteDelayed } from '../../src/inbox/sweep.ts'
import type { WorkContext } from '../../src/inbox/work-batch.ts'
import { partsOf } from '../../src/hookledger.ts'
import { mirroredSources, mirrorWorkflow, type MirrorHooks } from '../support/mirror-workflow.ts'
import { answerNow, sendRequest, storeAnswer } from '../support/played-gatherer.ts'
import { clearHooks, createProbe, probe, type Probe, type ProbeBody } from '../support/probe.ts'

const hooks: MirrorHooks = {}
let bench: Probe
let work: WorkContext
beforeAll(async () => {
  bench = await createProbe({ workflows: [mirrorWorkflow(hooks)], sources: mirroredSources })
  ;({ work } = await partsOf(bench.hookledger).contexts())
})
afterAll(() => bench.close())
beforeEach(async () => {
  clearHooks(hooks as never)
  await bench.reset()
})

const batch = (): Promise<RunReport> => runBatch(work, { kind: 'next', after: 0n, limit: 500 })
const look = (id: string, more: Partial<ProbeBody> = {}): ProbeBody =>
  probe('look', { id, order: 'o1', plan: 'p1', ...more })

async function deliver(...bodies: ProbeBody[]): Promise<RunReport> {
  await bench.deliver(...bodies)
  return batch()
}

const order = async (): Promise<unknown> =>
  (
    await bench.rows(`select state, (select string_agg(entitlement || ' ' || quantity, ',') from current_entitlements) as has
      from orders where order_id = 'o1'`)
  )[0]
const numbers = (): Promise<unknown[]> =>
  bench.rows(
    `select kind, sent::int, answered::int, applied::int from looked_at order by object_id`,
  )
const inbox = async (): Promise<unknown> =>
  Object.fromEntries(
    (
      await bench.rows<{ event_id: string; state: string }>(
        `select event_id, state from webhook_inbox order by event_key`,
      )
    ).map((row) => [row.event_id, row.state]),
  )
const decisions = (): Promise<unknown[]> =>
  bench.rows(
    `select kind, to_state, evidence -> 'fetch' ->> 'number' as from_answer from decisions order by decision_id`,
  )
const lists = async (): Promise<unknown> =>
  (
    await bench.rows(`select (select count(*)::int from inbox_ready) as ready,
      (select count(*)::int from inbox_gathers where waiting) as waiting,
      (select count(*)::int from inbox_gathers) as gathers, (select count(*)::int from fetches) as fetches`)
  )[0]

describe('an event that says "look again"', () => {
  it('asks, is on no other list meanwhile and writes no decision; the answer decides it', async () => {
    const report = await deliver(look('evt_1'))
    expect(report.asked).toHaveLength(1)
    expect(report.settled).toEqual([])
    expect(await lists()).toEqual({ ready: 0, waiting: 1, gathers: 1, fetches: 1 })
    expect(await decisions()).toEqual([])
    expect(await bench.rows('select 1 from orders')).toEqual([])
    expect(await inbox()).toEqual({ evt_1: 'pending' })
    await answerNow(bench, 'plan', 'p1', { status: 'active', seats: 3 })
    expect((await batch()).settled).toHaveLength(1)
    expect(await order()).toEqual({ state: 'active', has: 'team 3' })
    expect(await decisions()).toEqual([{ kind: 'moved', to_state: 'active', from_answer: '1' }])
    expect(await lists()).toEqual({ ready: 0, waiting: 0, gathers: 0, fetches: 0 })
    expect(await numbers()).toEqual([{ kind: 'plan', sent: 1, answered: 1, applied: 1 }])
    expect(
      await bench.rows(
        `select object_id, decision_id is not null as decided from mirrored_objects`,
      ),
    ).toEqual([{ object_id: 'p1', decided: true }])
  })

  it('joins the request of a hundred others, and is decided by the same answer', async () => {
    await deliver(...Array.from({ length: 100 }, (_, n) => look(`evt_${n}`)))
    expect(await lists()).toEqual({ ready: 0, waiting: 100, gathers: 100, fetches: 1 })
    await answerNow(bench, 'plan', 'p1', { status: 'active' })
    expect((await batch()).settled).toHaveLength(100)
    expect(
      await bench.rows(`select kind, count(*)::int from decisions group by kind order by kind`),
    ).toEqual([
      { kind: 'absorbed', count: 99 },
      { kind: 'moved', count: 1 },
    ])
    expect(await numbers()).toEqual([{ kind: 'plan', sent: 1, answered: 1, applied: 1 }])
  })

  it('does not take the answer to a request that was under way before it came', async () => {
    await deliver(look('evt_1'))
    const first = await sendRequest(bench, 'plan', 'p1')
    await deliver(look('evt_2'))
    await storeAnswer(bench, first, { status: 'active' })
    await batch()
    expect(await inbox()).toEqual({ evt_1: 'processed', evt_2: 'pending' })
    await answerNow(bench, 'plan', 'p1', { status: 'late' })
    await batch()
    expect(await inbox()).toEqual({ evt_1: 'processed', evt_2: 'processed' })
    expect(await order()).toEqual({ state: 'late', has: null })
  })

  it('is not undone by the answer to an older request that comes later', async () => {
    await deliver(look('evt_1'))
    const first = await sendRequest(bench, 'plan', 'p1')
    await deliver(look('evt_2'))
    const second = await sendRequest(bench, 'plan', 'p1')
    await storeAnswer(bench, second, { status: 'ended' })
    await batch()
    await storeAnswer(bench, first, { status: 'active' })
    await batch()
    await deliver(look('evt_3'))
    expect(await order()).toEqual({ state: 'ended', has: null })
    expect(await decisions()).toEqual([
      { kind: 'moved', to_state: 'ended', from_answer: '2' },
      { kind: 'absorbed', to_state: 'ended', from_answer: '2' },
    ])
    expect(await numbers()).toEqual([{ kind: 'plan', sent: 2, answered: 2, applied: 2 }])
  })

  it('asks anew where its answer grew old, and takes an older one after three times', async () => {
    await deliver(look('evt_1'))
    for (let tries = 0; tries < 4; tries += 1) {
      expect(await bench.rows('select tries, waiting from inbox_gathers')).toEqual([
        { tries, waiting: true },
      ])
      await answerNow(bench, 'plan', 'p1', { status: 'active', seats: tries })
      const aged = { ...work, limits: { ...work.limits, evidenceMs: 0 } }
      const report = await runBatch(aged, { kind: 'next', after: 0n, limit: 500 })
      expect(report.asked).toHaveLength(tries < 3 ? 1 : 0)
    }
    expect(await inbox()).toEqual({ evt_1: 'processed' })
    expect(await numbers()).toEqual([{ kind: 'plan', sent: 4, answered: 4, applied: 4 }])
  })

  it('asks anew where the answer that it waited for is no longer kept', async () => {
    await deliver(look('evt_1'))
    await answerNow(bench, 'plan', 'p1', { status: 'active' })
    await bench.rows('update evidence set body = null')
    expect((await batch()).asked).toHaveLength(1)
    expect(await inbox()).toEqual({ evt_1: 'pending' })
  })

  it('decides about an object that is gone as about a state of its own', async () => {
    await deliver(look('evt_1'))
    await answerNow(bench, 'plan', 'p1', { status: 'active' })
    await batch()
    await deliver(look('evt_2'))
    await answerNow(bench, 'plan', 'p1', null)
    await batch()
    expect(await order()).toEqual({ state: 'ended', has: null })
  })

  it('keeps its place and its answer while somebody else holds the order', async () => {
    await deliver(look('evt_1'))
    await answerNow(bench, 'plan', 'p1', { status: 'active' })
    await batch()
    await deliver(look('evt_2'))
    await answerNow(bench, 'plan', 'p1', { status: 'late' })
    const client = await bench.pool.connect()
    try {
      await client.query(`begin; select 1 from orders where order_id = 'o1' for update`)
      expect((await batch()).left).toHaveLength(1)
      await client.query('rollback')
    } finally {
      client.release()
    }
    expect((await batch()).settled).toHaveLength(1)
    expect(await order()).toEqual({ state: 'late', has: null })
    expect(await lists()).toEqual({ ready: 0, waiting: 0, gathers: 0, fetches: 0 })
  })

  it('stays with its answer when deciding throws, and is dead when its object cannot be a name', async () => {
    await deliver(look('evt_1'))
    await answerNow(bench, 'plan', 'p1', { status: 'active' })
    hooks.decide = () => {
      throw new Error('a fault of the app')
    }
    await batch()
    expect(await bench.rows('select attempts::int from inbox_delayed')).toEqual([{ attempts: 1 }])
    clearHooks(hooks as never)
    await bench.rows(`update inbox_delayed set due_at = now()`)
    await promoteDelayed(bench.db)
    await batch()
    expect(await inbox()).toEqual({ evt_1: 'processed' })
    await deliver(look('evt_2', { plan: '' }))
    expect(await inbox()).toEqual({ evt_1: 'processed', evt_2: 'dead' })
    expect(await lists()).toEqual({ ready: 0, waiting: 0, gathers: 0, fetches: 0 })
  })

  it('closes the finding that a state flagged once a look finds a good one, and flags it once', async () => {
    const flagged = (): Promise<unknown[]> =>
      bench.rows(`select kind, state, times_seen::int from findings`)
    for (const id of ['evt_1', 'evt_2']) {
      await deliver(look(id))
      await answerNow(bench, 'plan', 'p1', { status: 'odd' })
      await batch()
    }
    expect(await flagged()).toEqual([{ kind: 'unknown_status', state: 'open', times_seen: 2 }])
    await deliver(look('evt_3'))
    await answerNow(bench, 'plan', 'p1', { status: 'active' })
    await batch()
    expect(await flagged()).toEqual([{ kind: 'unknown_status', state: 'closed', times_seen: 2 }])
  })

  it('waits for a customer without its answer, and looks again when it is woken', async () => {
    await deliver(look('evt_1'))
    await answerNow(bench, 'plan', 'p1', { status: 'active', customer: 'cus_1' })
    await batch()
    expect(await inbox()).toEqual({ evt_1: 'deferred' })
    expect(await lists()).toEqual({ ready: 0, waiting: 0, gathers: 0, fetches: 0 })
    expect(await bench.rows(`select kind, name from inbox_waits order by kind`)).toEqual([
      { kind: 'customer', name: 'cus_1' },
      { kind: 'order', name: 'o1' },
    ])
    expect(await numbers()).toEqual([{ kind: 'plan', sent: 1, answered: 1, applied: 0 }])
  })

  it('leaves facts that count once to their own handlers, whatever was looked at', async () => {
    await deliver(probe('paid', { id: 'evt_p', order: 'o1' }), look('evt_1'))
    expect(await inbox()).toEqual({ evt_p: 'processed', evt_1: 'pending' })
    await answerNow(bench, 'plan', 'p1', { status: 'active' })
    await batch()
    expect(
      await bench.rows(`select effect_type from fulfillment_effects order by effect_type`),
    ).toEqual([{ effect_type: 'credits' }, { effect_type: 'welcome' }])
  })
})

describe('a name that only a look brings', () => {
  it('settles nobody before the look is decided, and then wakes who waited for it', async () => {
    const named = probe('named', { id: 'evt_n', plan: 'p1' })
    await deliver(look('evt_1'), named)
    expect(await inbox()).toEqual({ evt_1: 'pending', evt_n: 'deferred' })
    expect(await bench.rows('select 1 from orders')).toEqual([])
    await answerNow(bench, 'plan', 'p1', { status: 'active' })
    await batch()
    await batch()
    expect(await inbox()).toEqual({ evt_1: 'processed', evt_n: 'processed' })
    // beside a look that has its answer, it is decided with it or right after
    await deliver(look('evt_2', { order: 'o2', plan: 'p2' }))
    await answerNow(bench, 'plan', 'p2', { status: 'active' })
    await deliver(probe('named', { id: 'evt_m', plan: 'p2' }))
    await batch()
    expect(await inbox()).toMatchObject({ evt_2: 'processed', evt_m: 'processed' })
    expect(
      await bench.rows(
        `select order_id, effect_reference from fulfillment_effects where effect_type = 'note' order by 1`,
      ),
    ).toEqual([
      { order_id: 'o1', effect_reference: 'evt_n' },
      { order_id: 'o2', effect_reference: 'evt_m' },
    ])
  })
})

describe('an event for which something is gathered', () => {
  const ask = (id: string): ProbeBody => probe('ask', { id, order: 'o1' })
  const keyOf = async (id: string): Promise<string> =>
    (
      await bench.rows<{ event_key: string }>(
        'select event_key from inbox_events where event_id = $1',
        [id],
      )
    )[0]?.event_key ?? ''

  it('is decided from what was gathered, and looks at nothing for ever', async () => {
    await deliver(ask('evt_a'))
    await answerNow(bench, 'event', await keyOf('evt_a'), { invoice: 'in_1' })
    await batch()
    expect(await inbox()).toEqual({ evt_a: 'processed' })
    expect(await bench.rows(`select data ->> 'found' as found from fulfillment_effects`)).toEqual([
      { found: '{"invoice":"in_1"}' },
    ])
    expect(await numbers()).toEqual([])
    expect(await lists()).toEqual({ ready: 0, waiting: 0, gathers: 0, fetches: 0 })
  })

  it('asks again where the order moved meanwhile, and backs off where it always does', async () => {
    await deliver(ask('evt_a'))
    const key = await keyOf('evt_a')
    for (let tries = 0; tries < 4; tries += 1) {
      const sent = await sendRequest(bench, 'event', key)
      await deliver(probe('paid', { order: 'o1' }))
      await storeAnswer(bench, sent, { tries })
      expect((await batch()).asked).toHaveLength(tries < 3 ? 1 : 0)
    }
    expect(await inbox()).toEqual(expect.objectContaining({ evt_a: 'pending' }))
    expect(
      await bench.rows(`select last_error like '%changes faster%' as says from inbox_delayed`),
    ).toEqual([{ says: true }])
    expect(await lists()).toEqual({ ready: 0, waiting: 0, gathers: 0, fetches: 0 })
    await bench.rows(`update inbox_delayed set due_at = now()`)
    await promoteDelayed(bench.db)
    await batch()
    await answerNow(bench, 'event', key, { calm: true })
    await batch()
    expect(await inbox()).toEqual(expect.objectContaining({ evt_a: 'processed' }))
  })
})

describe('a gathering that is done anew after it was forgotten', () => {
  it('goes on with the numbers of the one before it', async () => {
    await deliver(probe('ask', { id: 'evt_a', order: 'o1' }))
    const [row] = await bench.rows<{ object_id: string }>('select object_id from looked_at')
    const object = row?.object_id ?? ''
    await answerNow(bench, 'event', object, { first: true })
    await bench.rows('delete from looked_at')
    await bench.rows(`delete from inbox_gathers`)
    expect((await batch()).asked).toHaveLength(1)
    expect(await bench.rows('select wanted::int from inbox_gathers')).toEqual([{ wanted: 2 }])
    expect(await bench.rows('select wanted::int from fetches')).toEqual([{ wanted: 2 }])
    await answerNow(bench, 'event', object, { second: true })
    await batch()
    expect(await bench.rows(`select data ->> 'found' as found from fulfillment_effects`)).toEqual([
      { found: '{"second":true}' },
    ])
  })
})

describe('two workers', () => {
  it('decide one object once, whoever has the answer first', async () => {
    await bench.deliver(...Array.from({ length: 20 }, (_, n) => look(`evt_${n}`)))
    const both = (): Promise<RunReport[]> => Promise.all([batch(), batch(), batch()])
    await both()
    await both()
    await answerNow(bench, 'plan', 'p1', { status: 'active' })
    for (let rounds = 0; rounds < 10; rounds += 1) await both()
    expect(
      await bench.rows(`select kind, count(*)::int from decisions where kind = 'moved' group by 1`),
    ).toEqual([{ kind: 'moved', count: 1 }])
    expect(await lists()).toEqual({ ready: 0, waiting: 0, gathers: 0, fetches: 0 })
  })
})
