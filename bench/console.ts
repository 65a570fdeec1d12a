/**
 * `console`: how long an operator waits for the first page of each list, and for the overview, with a million
 * events and a hundred thousand orders behind them. The floor is the promise: a 95th percentile of 300 ms.
 */
import type pg from 'pg'
import { partsOf } from '../src/hookledger.ts'
import { mountConsole } from '../src/server/console/console.ts'
import { fillLedger } from './console-data.ts'
import { migrateInbox } from './contestants/inbox.ts'
import { poolSize } from './contest.ts'
import { median, percentile, rounded } from './figures.ts'
import type { BenchContext, Report } from './report.ts'
import { createBenchPool, dropSchemas, settle } from './server.ts'

/** What is promised, in milliseconds. */
const promisedMs = 300
const askedTimes = 30

/** What somebody looks at; lists with the filters that a person at night sets first. */
const paths = [
  '/overview',
  '/events',
  '/events?state=pending',
  '/events?state=processed',
  '/events?state=dead',
  '/events/counts',
  '/deliveries',
  '/deliveries?verdict=duplicate',
  '/rejections',
  '/orders',
  '/orders?state=paid',
  '/orders?text=order-77',
  '/decisions',
  '/decisions?kind=contradicted',
  '/effects',
  '/payments',
  '/entitlements',
  '/entitlements?in_force=true',
  '/operations',
  '/operations?state=unfinished',
  '/findings',
  '/findings?state=unfinished',
  '/runs',
  '/checkpoints',
  '/acts',
  '/bulk',
  '/search?q=order-77000',
  '/search?q=evt_77000',
  '/search?q=user:77000',
  '/orders/order-77000',
] as const

/** Fills a schema and asks for everything again and again. */
export async function benchConsole({ server, options, log }: BenchContext): Promise<Report> {
  const schema = `console_${process.pid}`
  const pool = createBenchPool(server.url, poolSize)
  try {
    const hookledger = await migrateInbox({ pool, schema })
    const events = options.backlog
    const began = performance.now()
    await fillLedger(pool, schema, { events, orders: Math.max(1, Math.round(events / 10)) })
    await settle(server.url)
    log(`filled in ${Math.round((performance.now() - began) / 1000)} s`)
    const console = mountConsole(partsOf(hookledger), {
      authorize: () => ({ actor: 'bench', roles: ['viewer'] }),
    })
    const results = []
    for (const path of paths) {
      const times: number[] = []
      let bytes = 0
      for (let round = 0; round < askedTimes; round++) {
        const started = performance.now()
        const response = await console.fetch(new Request(`http://bench.test/api${path}`))
        const text = await response.text()
        times.push(performance.now() - started)
        bytes = text.length
        if (response.status !== 200)
          throw new Error(`${path} was answered ${response.status}: ${text}`)
      }
      const [p50, p95] = [median(times), percentile(times, 0.95)]
      results.push({ path, p50_ms: rounded(p50), p95_ms: rounded(p95), bytes })
      log(`${path}: ${rounded(p50)} ms, p95 ${rounded(p95)} ms`)
    }
    await hookledger.stop()
    const worst = Math.max(...results.map((each) => each.p95_ms))
    return {
      bench: 'console',
      unit: 'ms',
      conditions: { events: String(events), ...(await sizes(pool, schema)) },
      results,
      ratios: { promised_vs_worst: rounded(promisedMs / worst) },
      floors: { promised_vs_worst: 1 },
    }
  } finally {
    await pool.end()
    await dropSchemas(server.url, [schema])
  }
}

async function sizes(pool: pg.Pool, schema: string): Promise<Record<string, string>> {
  const { rows } = await pool.query<{ orders: string; decisions: string; deliveries: string }>(
    `select (select count(*) from "${schema}".orders) as orders, (select count(*) from "${schema}".ledger_decisions) as decisions,
      (select count(*) from "${schema}".deliveries) as deliveries`,
  )
  return { ...rows[0] }
}
