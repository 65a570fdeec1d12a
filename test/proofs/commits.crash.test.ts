import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { afterEach, describe, expect, it } from 'vitest'
import { createHookledger, type Hookledger } from 'hookledger'
import { setupCredits } from '../../examples/shop/credit-entries.ts'
import { createDatabase } from '../../src/postgres/pool.ts'
import { migrate } from '../../src/postgres/migrate.ts'
import { partsOf } from '../../src/hookledger.ts'
import { signStripe } from '../../src/testing/sign.ts'
import { stripeBody } from '../../src/testing/stripe-events.ts'
import {
  createCommitProxy,
  type CommitFaultMode,
  type CommitProxy,
} from '../../src/drill/proxy/commit-proxy.ts'
import { startPostgresForCrashTest, type CrashPostgres } from '../support/crash-postgres.ts'
import { expectAllIsWell, workload, type Workload } from '../support/fault-cases.ts'
import { until } from '../support/probe.ts'
import { createShop, shopOptions, shopSecret, type Shop } from '../support/shop.ts'
import { sent } from '../support/shop-history.ts'

const closing: (() => Promise<unknown>)[] = []

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const limits = { workBatch: 4, firstRetryMs: 20, maxRetryMs: 100, statementTimeoutMs: 1000 }

async function drained(rows: Shop['rows']): Promise<boolean> {
  const [row] = await rows<{ n: string }>(
    `select (select count(*) from hookledger.inbox_ready) + (select count(*) from hookledger.inbox_delayed) + (select count(*) from hookledger.inbox_suspects) + (select count(*) from hookledger.inbox_batches) as n`,
  )
  return row?.n === '0'
}

/** A shop whose worker reaches the database only through a proxy. */
async function proxied(): Promise<{
  shop: Shop
  proxy: CommitProxy
  worker: Hookledger
  load: Workload
}> {
  const shop = await createShop()
  const proxy = await createCommitProxy({ target: shop.database.url })
  const pool = shop.database.pool({ connectionString: proxy.url, max: 6, query_timeout: 1500 })
  const worker = createHookledger({ ...shopOptions, limits, database: pool })
  closing.push(
    () => shop.close(),
    () => proxy.close(),
    () => worker.stop({ timeoutMs: 3000 }),
  )
  const load = workload(8)
  for (const event of load.sent) await shop.deliver(event)
  return { shop, proxy, worker, load }
}

describe('a commit of a worker', () => {
  it.each<CommitFaultMode>(['drop-before', 'drop-after', 'black-hole'])(
    'is resolved by the tables when its outcome is not known (%s)',
    async (mode) => {
      const { shop, proxy, worker, load } = await proxied()
      // decisions, and the batch row that goes before them
      const faults = [
        proxy.arm({ mode, match: /ledger_decisions/, nth: 2 }),
        proxy.arm({ mode, match: /^insert into "hookledger".inbox_batches/, nth: 4 }),
        proxy.arm({ mode, match: /shop\.accounts/, nth: 1 }),
      ]
      await worker.start()
      for (const { struck } of faults) expect((await struck).committed).toBe(mode !== 'drop-before')
      await until(
        () => drained(shop.rows),
        (done) => done,
        40_000,
      )
      await worker.stop()
      await expectAllIsWell(
        shop,
        load,
        load.sent.map((event) => sent(event)),
      )
    },
  )

  it('is resolved at every single one of them', async () => {
    const { shop, proxy, worker, load } = await proxied()
    let armed = true
    const modes: CommitFaultMode[] = ['drop-after', 'drop-before']
    const strike = async (): Promise<void> => {
      for (let n = 0; armed; n++)
        await proxy.arm({
          mode: modes[n % 2] as CommitFaultMode,
          match: /ledger_decisions/,
          nth: 2,
        }).struck
    }
    const striking = strike()
    await worker.start({ loops: 1 })
    await until(
      () => drained(shop.rows),
      (done) => done,
      60_000,
    )
    armed = false
    void striking
    await worker.stop()
    expect(proxy.commits.filter(({ action }) => action !== 'passed').length).toBeGreaterThan(2)
    await expectAllIsWell(
      shop,
      load,
      load.sent.map((event) => sent(event)),
    )
  })
})

describe('a backend', () => {
  it('may be terminated at every statement of a batch, and the batch comes to its end', async () => {
    const shop = await createShop({ limits })
    closing.push(() => shop.close())
    const load = workload(6)
    for (const event of load.sent) await shop.deliver(event)
    const admin = shop.database.pool({ max: 1 })
    // the nth statement of the worker is the last that its session asks for
    let asked = 0
    let strikeAt = 1
    let struck = 0
    const pool = shop.database.pool({ max: 6, application_name: 'victim' })
    const connect = pool.connect.bind(pool)
    const stepped = {
      options: pool.options,
      on: pool.on.bind(pool),
      connect: async () => {
        const client = await connect()
        return new Proxy(client, {
          get(target, property) {
            if (property !== 'query') {
              const value: unknown = Reflect.get(target, property, target)
              return typeof value === 'function' ? (value as () => unknown).bind(target) : value
            }
            return async (...of: [string]) => {
              asked++
              if (asked === strikeAt) {
                asked = 0
                strikeAt++
                struck++
                const { processID } = target as unknown as { processID: number }
                await admin.query('select pg_terminate_backend($1, 1000)', [processID])
              }
              return target.query(...of)
            }
          },
        })
      },
    }
    const worker = createHookledger({
      ...shopOptions,
      limits,
      database: stepped as unknown as pg.Pool,
    })
    closing.push(() => worker.stop({ timeoutMs: 3000 }))
    await partsOf(worker)
      .register()
      .catch(() => {})
    while (!(await drained(shop.rows))) await worker.runOnce({ budgetMs: 5000 }).catch(() => {})
    expect(struck).toBeGreaterThan(15)
    await expectAllIsWell(
      shop,
      load,
      load.sent.map((event) => sent(event)),
    )
  })
})

describe('PostgreSQL', () => {
  async function server(): Promise<{
    postgres: CrashPostgres
    hookledger: Hookledger
    rows: Shop['rows']
    pool: pg.Pool
  }> {
    const postgres = await startPostgresForCrashTest()
    closing.push(() => postgres.remove())
    const pool = new pg.Pool({
      connectionString: postgres.url,
      max: 10,
      connectionTimeoutMillis: 2000,
      query_timeout: 3000,
      options: '-c search_path=hookledger,public',
    })
    pool.on('error', () => {})
    closing.push(() => pool.end())
    await migrate(createDatabase(pool, 'hookledger'), {
      environment: 'test',
      partitionsAheadDays: 2,
    })
    await pool.query('create schema shop')
    await setupCredits(pool)
    await pool.query(
      'create table shop.customers (customer_id text primary key, email text, name text, changed_at timestamptz not null)',
    )
    const hookledger = createHookledger({ ...shopOptions, limits, database: pool })
    closing.push(() => hookledger.stop({ timeoutMs: 3000 }))
    const rows: Shop['rows'] = async <R extends object>(text: string, values: unknown[] = []) =>
      (await pool.query<R & pg.QueryResultRow>({ text, values })).rows
    return { postgres, hookledger, rows, pool }
  }

  /** Posts a workload as a provider does: again until it is acknowledged. Says how far it is before each event. */
  async function deliverAll(
    hookledger: Hookledger,
    load: Workload,
    seen: ReturnType<typeof sent>[],
    before: (share: number) => void,
  ): Promise<void> {
    for (const [index, event] of load.sent.entries()) {
      before(index / load.sent.length)
      for (;;) {
        const body = Buffer.from(stripeBody(event))
        const { status } = await hookledger.ingest({
          source: 'stripe',
          headers: signStripe(body, shopSecret),
          rawBody: body,
        })
        seen.push(sent(event, status === 200 ? 'ok' : 'info'))
        if (status === 200) break
        await sleep(50)
      }
    }
  }

  it.each(['the whole server', 'one backend'] as const)(
    'may be killed again and again (%s): what was acknowledged is decided once',
    async (what) => {
      const { postgres, hookledger, rows, pool } = await server()
      await hookledger.start()
      const load = workload(40)
      const seen: ReturnType<typeof sent>[] = []
      const strike = async (): Promise<void> => {
        if (what === 'the whole server') {
          await postgres.kill()
          return postgres.restart()
        }
        for (;;) {
          const victims = await rows<{ pid: number }>(
            `select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend' order by (state = 'idle'), random() limit 1`,
          ).catch(() => [])
          if (victims[0] !== undefined) return postgres.killBackend(victims[0].pid)
          await sleep(10)
        }
      }
      // Strikes follow the deliveries, not the clock, and go on beside them: however fast the
      // machine is, each falls in the middle of work.
      const strikes: Promise<void>[] = []
      await deliverAll(hookledger, load, seen, (share) => {
        if (share < (strikes.length + 1) / 4) return
        const earlier = strikes.at(-1) ?? Promise.resolve()
        strikes.push(earlier.then(strike))
      })
      await Promise.all(strikes)
      expect(strikes).toHaveLength(3)
      await until(
        () => drained(rows).catch(() => false),
        (done) => done,
        60_000,
      )
      await hookledger.stop()
      await expectAllIsWell({ pool, rows } as Shop, load, seen)
    },
  )
})
