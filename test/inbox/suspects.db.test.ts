import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { PermanentError } from 'hookledger'
import { runSuspect } from '../../src/inbox/run-batch.ts'
import { adoptDeadBatches, type SweepContext } from '../../src/inbox/sweep.ts'
import type { WorkContext } from '../../src/inbox/work-batch.ts'
import { partsOf } from '../../src/hookledger.ts'
import {
  clearHooks,
  createProbe,
  probe,
  probeWorkflow,
  type Probe,
  type ProbeHooks,
} from '../support/probe.ts'

const hooks: ProbeHooks = {}
let bench: Probe
let work: WorkContext
let sweep: SweepContext
beforeAll(async () => {
  bench = await createProbe({
    workflows: [probeWorkflow(hooks)],
    limits: { firstRetryMs: 600_000 },
  })
  ;({ work, sweep } = await partsOf(bench.hookledger).contexts())
})
afterAll(() => bench.close())
beforeEach(async () => {
  clearHooks(hooks)
  await bench.reset()
})

/** Leaves a batch row as a worker does that died with these events; it is old enough to be adopted. */
async function diedWith(alone = false): Promise<void> {
  await bench.rows(
    `insert into inbox_batches (batch_id, event_keys, alone, worker, started_at)
     select gen_random_uuid(), array_agg(event_key), $1, 'worker:dead', clock_timestamp() - interval '1 second'
     from (select event_key from inbox_ready where not $1 union all select event_key from inbox_suspects where $1) e`,
    [alone],
  )
}

async function suspect(...orders: string[]): Promise<void> {
  await bench.deliver(...orders.map((order) => probe('pay', { id: `evt_${order}`, order })))
  await diedWith()
  expect(await adoptDeadBatches(sweep)).toBe(1)
  expect(await bench.rows(`select 1 from inbox_suspects`)).toHaveLength(orders.length)
}

describe('adoptDeadBatches', () => {
  it('leaves a batch alone that its worker still holds', async () => {
    let adopted: number | undefined
    hooks.apply = async () => {
      await bench.rows(`select 1`)
      await new Promise((resolve) => setTimeout(resolve, 300))
      adopted = await adoptDeadBatches(sweep)
    }
    await bench.deliver(probe('pay', { order: '1' }))
    expect(await bench.work()).toBe(1)
    expect(adopted).toBe(0)
    expect(
      await bench.rows(`select 1 from inbox_suspects union all select 1 from inbox_batches`),
    ).toEqual([])
  })

  it('makes no suspect of an event that a live worker has in hand, though its batch row could be taken', async () => {
    // the row was committed, and a slow worker has not locked it yet: as the engine would find it
    hooks.apply = async () => {
      await bench.rows(
        `insert into inbox_batches (batch_id, event_keys, alone, worker, started_at) select gen_random_uuid(), array_agg(event_key), false, 'worker:slow', clock_timestamp() - interval '1 second' from inbox_ready`,
      )
      expect(await adoptDeadBatches(sweep)).toBe(1)
    }
    await bench.deliver(probe('pay', { order: '1' }), probe('pay', { order: '2' }))
    await bench.work()
    expect(await bench.rows(`select 1 from inbox_suspects`)).toEqual([])
    expect(await bench.rows(`select 1 from orders where state = 'paid'`)).toHaveLength(2)
  })

  it('counts a lone death, waits longer each time, and ends it at the third', async () => {
    await suspect('1')
    for (const [starts, waits] of [
      [1, 1],
      [2, 2],
    ] as const) {
      await diedWith(true)
      await adoptDeadBatches(sweep)
      expect(
        await bench.rows(
          `select starts::int, round(extract(epoch from due_at - now()))::int as waits from inbox_suspects`,
        ),
      ).toEqual([{ starts, waits }])
    }
    await diedWith(true)
    await adoptDeadBatches(sweep)
    expect(await bench.rows(`select state, last_error, attempts from webhook_inbox`)).toEqual([
      {
        state: 'dead',
        last_error: expect.stringContaining('ended its worker') as unknown,
        attempts: 3,
      },
    ])
    expect(await bench.rows(`select kind, final, attempts::int from ledger_decisions`)).toEqual([
      { kind: 'dead', final: false, attempts: 3 },
    ])
    expect(await bench.rows(`select rearmed_by from inbox_dead`)).toEqual([
      { rearmed_by: 'operator' },
    ])
  })
})

describe('a suspect', () => {
  it('that cannot run now makes room for the next', async () => {
    await bench.deliver(probe('note', { order: 'a-held' }))
    await bench.work()
    await suspect('a-held', 'b-free')
    const app = await bench.pool.connect()
    try {
      await app.query(`begin; select from orders where order_id = 'a-held' for update`)
      expect((await runSuspect(work)).settled).toHaveLength(0)
      expect((await runSuspect(work)).settled).toHaveLength(1)
      expect(await bench.rows(`select order_id, state from orders order by 1`)).toEqual([
        { order_id: 'a-held', state: 'pending' },
        { order_id: 'b-free', state: 'paid' },
      ])
    } finally {
      await app.query('rollback')
      app.release()
    }
    await bench.rows(`update inbox_suspects set due_at = now()`)
    expect((await runSuspect(work)).settled).toHaveLength(1)
  })

  it('that waits for an order which the app is opening makes room for the next', async () => {
    await suspect('opening', 'free')
    const app = await bench.pool.connect()
    try {
      await app.query('begin')
      await bench.hookledger.openOrder(app, { id: 'opening', workflow: 'probe' })
      const settled = [...(await runSuspect(work)).settled, ...(await runSuspect(work)).settled]
      expect(settled.map((each) => each.outcome.orderId)).toEqual(['free'])
    } finally {
      await app.query('rollback')
      app.release()
    }
    await bench.rows(`update inbox_suspects set due_at = now()`)
    expect((await runSuspect(work)).settled).toHaveLength(1)
  })

  it('that fails is not confused with another one that somebody else runs meanwhile', async () => {
    await suspect('bad', 'good')
    const other = await bench.pool.connect()
    let begun = false
    hooks.apply = async ({ order }) => {
      if (order.id !== 'bad') return
      // another worker takes the failing one as soon as it is free
      setTimeout(() => {
        begun = true
        void other.query(
          `begin; select from inbox_suspects where event_key = (select event_key from inbox_events where event_id = 'evt_bad') for update`,
        )
      }, 0)
      await new Promise((resolve) => setTimeout(resolve, 60))
      throw new PermanentError('only this one is bad')
    }
    try {
      await runSuspect(work)
      expect(begun).toBe(true)
      // whichever of the two got it: the other suspect has nothing to do with it
      expect(
        await bench.rows(
          `select event_id from webhook_inbox where state = 'dead' and event_id <> 'evt_bad'`,
        ),
      ).toEqual([])
    } finally {
      await other.query('rollback')
      other.release()
    }
    await bench.rows(`update inbox_suspects set due_at = now()`)
    await bench.work()
    expect(await bench.rows(`select event_id, state from webhook_inbox order by 1`)).toEqual([
      { event_id: 'evt_bad', state: 'dead' },
      { event_id: 'evt_good', state: 'processed' },
    ])
  })

  it('that fails like any event backs off and rejoins the others', async () => {
    await suspect('1')
    hooks.apply = () => Promise.reject(new Error('not today'))
    await runSuspect(work)
    expect(await bench.rows(`select state, attempts, last_error from webhook_inbox`)).toEqual([
      { state: 'pending', attempts: 1, last_error: 'not today' },
    ])
    delete hooks.apply
    await bench.rows(`update inbox_delayed set due_at = now()`)
    await bench.work()
    expect(await bench.rows(`select state from webhook_inbox`)).toEqual([{ state: 'processed' }])
  })
})
