import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { afterEach, describe, expect, it } from 'vitest'
import {
  createProbe,
  probe,
  probeWorkflow,
  until,
  type Probe,
  type ProbeBody,
} from '../support/probe.ts'

const closing: (() => Promise<unknown>)[] = []

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

async function create(opens: 'app' | 'event'): Promise<Probe> {
  const bench = await createProbe({ workflows: [probeWorkflow({}, { opens })] })
  closing.push(bench.close)
  return bench
}

/** A transaction of the app's that stays open until it is let go. */
async function appTransaction(
  bench: Probe,
): Promise<{ tx: pg.PoolClient; end(how: 'commit' | 'rollback'): Promise<void> }> {
  const tx = await bench.pool.connect()
  await tx.query('begin')
  let open = true
  const end = async (how: 'commit' | 'rollback'): Promise<void> => {
    if (!open) return
    open = false
    await tx.query(how)
    tx.release()
  }
  closing.push(() => end('rollback'))
  return { tx, end }
}

const payments = (orders: readonly string[]): ProbeBody[] =>
  orders.map((order) => probe('pay', { order }))
const ids = (prefix: string, count: number): string[] =>
  Array.from({ length: count }, (_, at) => `${prefix}-${at}`)

async function paid(bench: Probe): Promise<number> {
  const [row] = await bench.rows<{ n: number }>(
    `select count(*)::int as n from orders where state = 'paid'`,
  )
  return row?.n ?? 0
}

/** What holds up nobody: all but the held order's events are done within these milliseconds. */
const soonMs = 5000

describe('an order that a transaction of the app holds', () => {
  it('holds up nobody else, and its own events run when it is let go', async () => {
    const bench = await create('event')
    await bench.deliver(probe('note', { order: 'held' }))
    await bench.work()
    const app = await appTransaction(bench)
    await app.tx.query(`select from orders where order_id = 'held' for update`)
    await bench.hookledger.start()
    for (let wave = 0; wave < 3; wave++) {
      const others = ids(`wave${wave}`, 100)
      // the held order's events come first, in the middle and last
      await bench.deliver(
        probe('pay', { order: 'held' }),
        ...payments(others),
        probe('note', { order: 'held' }),
      )
      await until(
        () => paid(bench),
        (n) => n === (wave + 1) * 100,
        soonMs,
      )
    }
    expect(await bench.rows(`select state from orders where order_id = 'held'`)).toEqual([
      { state: 'pending' },
    ])
    expect(await bench.rows(`select count(*)::int as n from inbox_ready`)).toEqual([{ n: 6 }])
    await app.end('commit')
    await until(
      () => bench.rows(`select state from orders where order_id = 'held'`),
      ([row]) => row?.['state'] === 'paid',
      soonMs,
    )
    await until(
      () => bench.rows(`select 1 from inbox_ready`),
      (rows) => rows.length === 0,
      soonMs,
    )
    expect(await bench.rows(`select 1 from inbox_batches`)).toEqual([])
  })

  it('does not keep those behind it from running when more events wait for it than fit a batch', async () => {
    const bench = await createProbe({ workflows: [probeWorkflow()], limits: { workBatch: 20 } })
    closing.push(bench.close)
    await bench.deliver(probe('note', { order: 'hot' }))
    await bench.work()
    const app = await appTransaction(bench)
    await app.tx.query(`select from orders where order_id = 'hot' for update`)
    await bench.deliver(...Array.from({ length: 100 }, () => probe('note', { order: 'hot' })))
    await bench.deliver(...payments(ids('other', 100)))
    await bench.hookledger.start()
    await until(
      () => paid(bench),
      (n) => n === 100,
      soonMs,
    )
    await app.end('rollback')
    await until(
      () => bench.rows(`select 1 from inbox_ready`),
      (rows) => rows.length === 0,
      soonMs,
    )
    expect(
      await bench.rows(`select 1 from fulfillment_effects where order_id = 'hot'`),
    ).toHaveLength(101)
  })
})

describe('an order that a transaction of the app is opening', () => {
  it.each(['event', 'app'] as const)(
    'holds up nobody else, and its own events run afterwards (opened by the %s)',
    async (opens) => {
      const bench = await create(opens)
      const open = async (db: pg.PoolClient | pg.Pool, id: string): Promise<unknown> =>
        bench.hookledger.openOrder(db, { id, workflow: 'probe', subject: `user:${id}` })
      const app = await appTransaction(bench)
      await open(app.tx, 'new')
      await bench.hookledger.start()
      for (let wave = 0; wave < 3; wave++) {
        const others = ids(`wave${wave}`, 60)
        if (opens === 'app') for (const id of others) await open(bench.pool, id)
        await bench.deliver(
          probe('note', { order: 'new' }),
          ...payments(others),
          probe('pay', { order: 'new' }),
        )
        await until(
          () => paid(bench),
          (n) => n === (wave + 1) * 60,
          soonMs,
        )
      }
      await sleep(600) // longer than a worker waits for a lock
      expect(await bench.rows(`select 1 from orders where order_id = 'new'`)).toEqual([])
      await app.end('commit')
      await until(
        () => bench.rows(`select state from orders where order_id = 'new'`),
        ([row]) => row?.['state'] === 'paid',
        10_000,
      )
      await until(
        () => bench.rows(`select 1 from inbox_ready union all select 1 from inbox_deferred`),
        (rows) => rows.length === 0,
        10_000,
      )
      expect(
        await bench.rows(
          `select 1 from fulfillment_effects where order_id = 'new' and effect_type = 'note'`,
        ),
      ).toHaveLength(3)
    },
  )

  it('is opened by its events when the app takes it back', async () => {
    const bench = await create('event')
    const app = await appTransaction(bench)
    await bench.hookledger.openOrder(app.tx, { id: 'new', workflow: 'probe' })
    await bench.hookledger.start()
    await bench.deliver(probe('pay', { order: 'new' }), ...payments(['a', 'b']))
    await until(
      () => paid(bench),
      (n) => n === 2,
      soonMs,
    )
    await app.end('rollback')
    await until(
      () => paid(bench),
      (n) => n === 3,
      10_000,
    )
  })

  it('may be opened with the only connection that is free', async () => {
    const bench = await create('event')
    const pool = bench.database.pool({ max: 3 })
    const hookledger = bench.another({}, pool)
    const clients = await Promise.all([pool.connect(), pool.connect(), pool.connect()])
    try {
      const [tx] = clients
      await tx.query('begin')
      expect(await hookledger.openOrder(tx, { id: 'only', workflow: 'probe' })).toBe('created')
      await tx.query('commit')
    } finally {
      for (const client of clients) client.release()
    }
  })

  it('may be opened before any worker has registered its workflow', async () => {
    const bench = await create('event')
    const hookledger = bench.another({ workflows: [probeWorkflow({}, { name: 'never-started' })] })
    expect(await hookledger.openOrder(bench.pool, { id: 'first', workflow: 'never-started' })).toBe(
      'created',
    )
    expect(
      await bench.rows(`select kind, to_state from decisions where order_id = 'first'`),
    ).toEqual([{ kind: 'opened', to_state: 'pending' }])
  })
})
