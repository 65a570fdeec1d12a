import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import { handle } from 'hookledger'
import {
  createProbe,
  probe,
  probeWorkflow,
  until,
  type Probe,
  type ProbeHooks,
} from '../support/probe.ts'

const closing: (() => Promise<unknown>)[] = []

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

async function create(...of: Parameters<typeof createProbe>): Promise<Probe> {
  const bench = await createProbe(...of)
  closing.push(bench.close)
  return bench
}

async function drained(bench: Probe): Promise<void> {
  await until(
    () =>
      bench.rows(
        `select (select count(*) from inbox_ready) + (select count(*) from inbox_delayed) + (select count(*) from inbox_suspects) as n`,
      ),
    ([row]) => row?.['n'] === '0',
    20_000,
  )
}

/** Deadlocks that the server had to break, once its statistics are flushed. */
async function deadlocks(bench: Probe): Promise<number> {
  await sleep(1100)
  const [row] = await bench.rows<{ n: string }>(
    `select deadlocks as n from pg_stat_database where datname = current_database()`,
  )
  return Number(row?.n)
}

function shuffled<T>(items: T[]): T[] {
  let seed = 7
  for (let at = items.length - 1; at > 0; at--) {
    seed = (seed * 48271) % 2147483647
    const other = seed % (at + 1)
    ;[items[at], items[other]] = [items[other] as T, items[at] as T]
  }
  return items
}

describe('many workers', () => {
  it('decide each of 100 events once that come 50 times, shuffled, and nobody deadlocks', async () => {
    const hooks: ProbeHooks = {}
    const inHand = new Map<string, number>()
    let twiceAtOnce = 0
    hooks.apply = async ({ db, order }) => {
      const now = (inHand.get(order.id) ?? 0) + 1
      inHand.set(order.id, now)
      if (now > 1) twiceAtOnce++
      await db.query(
        `insert into shop.accounts as a values ($1, 1) on conflict (account_id) do update set credits = a.credits + 1`,
        [order.id],
      )
      inHand.set(order.id, now - 1)
    }
    const plain = handle('probe', 'plain', async ({ event }) => {
      const now = (inHand.get(event.id ?? '') ?? 0) + 1
      inHand.set(event.id ?? '', now)
      if (now > 1) twiceAtOnce++
      await sleep(5)
      inHand.set(event.id ?? '', now - 1)
    })
    const bench = await create({
      workflows: [probeWorkflow(hooks)],
      handlers: [plain],
      limits: { workBatch: 7 },
    })
    const workers = [bench.hookledger, bench.another({}), bench.another({})]
    for (const worker of workers) await worker.start({ loops: 2 })
    // each event of an order also teaches a name and is waited for by a refund of another id
    const bodies = Array.from({ length: 50 }, (_, at) => [
      probe('pay', { id: `evt_pay_${at}`, order: `order-${at}`, learns: `ref-${at}` }),
      probe('refund', { id: `evt_refund_${at}`, waits: `ref-${at}`, payment: `pay_order-${at}` }),
    ]).flat()
    const events = Array.from({ length: 40 }, (_, at) => probe('plain', { id: `evt_plain_${at}` }))
    const copies = shuffled([
      ...Array.from({ length: 50 }, () => bodies).flat(),
      ...events,
      ...events,
    ])
    for (let from = 0; from < copies.length; from += 500)
      await bench.deliver(...copies.slice(from, from + 500))
    await until(
      () => bench.rows(`select 1 from ledger_decisions where final`),
      (rows) => rows.length === 140,
      20_000,
    )
    await drained(bench)
    for (const worker of workers) await worker.stop()
    expect(
      await bench.rows(
        `select count(*)::int as n, min(credits)::int as least, max(credits)::int as most from shop.accounts`,
      ),
    ).toEqual([{ n: 50, least: 2, most: 2 }])
    expect(
      await bench.rows(
        `select effect_type, count(*)::int as n from fulfillment_effects group by 1 order by 1`,
      ),
    ).toEqual([
      { effect_type: 'grant', n: 50 },
      { effect_type: 'refund', n: 50 },
    ])
    expect(
      await bench.rows(
        `select count(*)::int as events, sum(deliveries)::int as deliveries from webhook_inbox where state = 'processed'`,
      ),
    ).toEqual([{ events: 140, deliveries: 5080 }])
    expect(twiceAtOnce).toBe(0)
    expect(await bench.rows(`select 1 from inbox_batches`)).toEqual([])
    expect(await deadlocks(bench)).toBe(0)
  })

  it('share a pool that has fewer connections than they would like', async () => {
    const bench = await create({ workflows: [probeWorkflow()], limits: { workBatch: 5 } })
    const pool = bench.database.pool({ max: 3 })
    const hookledger = bench.another({}, pool)
    await bench.deliver(
      ...Array.from({ length: 200 }, (_, at) => probe('pay', { order: `order-${at}` })),
    )
    await hookledger.start({ loops: 8 })
    await drained(bench)
    expect(await bench.rows(`select 1 from orders where state = 'paid'`)).toHaveLength(200)
    await hookledger.stop()
  })

  it('work off what requests ask for side by side, over one small pool', async () => {
    const bench = await create({ workflows: [probeWorkflow()] })
    const pool = bench.database.pool({ max: 3 })
    const hookledger = bench.another({}, pool)
    await bench.deliver(
      ...Array.from({ length: 12 }, (_, at) => probe('pay', { order: `order-${at}` })),
    )
    await Promise.all(Array.from({ length: 12 }, () => hookledger.runOnce({ budgetMs: 10_000 })))
    expect(await bench.rows(`select 1 from orders where state = 'paid'`)).toHaveLength(12)
  })

  it('are refused a pool that cannot hold a claim and what goes beside it', async () => {
    const bench = await create({ workflows: [probeWorkflow()] })
    const hookledger = bench.another({}, bench.database.pool({ max: 1 }))
    await expect(hookledger.start()).rejects.toMatchObject({ code: 'HKL_CONFIG_INVALID' })
  })

  it('do not let a stopped one keep what it had claimed', async () => {
    const bench = await create({ workflows: [probeWorkflow()] })
    await bench.deliver(
      ...Array.from({ length: 50 }, (_, at) => probe('pay', { order: `order-${at}` })),
    )
    await bench.hookledger.start()
    await bench.hookledger.stop({ timeoutMs: 5000 })
    const next = bench.another({})
    await next.start()
    await drained(bench)
    expect(await bench.rows(`select 1 from orders where state = 'paid'`)).toHaveLength(50)
    expect(await bench.rows(`select 1 from inbox_batches`)).toEqual([])
  })
})
