/**
 * `console`: how long an operator waits for the first page of each list, for each of its filters, for the
 * overview and for single pages, with a million events and a hundred thousand orders behind them, a tenth of the
 * events waiting. The floor is the promise: a 95th percentile of 300 ms.
 */
import { setTimeout as sleep } from 'node:timers/promises'
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

/** The overview is kept for a second for whoever asks for it: it is asked for after that. */
const keptMs = 1050

const order = 'order-77001'

/**
 * What somebody looks at: each list, each filter that a person at night sets, and each of them once more with a value
 * that nothing has, since that is what looks through most.
 */
const paths = [
  '/overview',
  '/overview/series?window=1h',
  '/overview/series?window=7d',
  ...[
    '',
    '?state=pending',
    '?state=processed',
    '?state=dead',
    '?state=ignored',
    '?type=no.such',
  ].map((query) => `/events${query}`),
  '/events?state=pending&type=no.such',
  '/events?text=evt_77001',
  '/events?text=evt_',
  `/events?order_id=${order}`,
  '/events?from=2020-01-01T00:00:00Z&to=2020-01-02T00:00:00Z',
  '/events/counts',
  ...['', '?verdict=duplicate', '?source=none'].map((query) => `/deliveries${query}`),
  ...['', '?reason=none'].map((query) => `/rejections${query}`),
  ...['', '?state=paid', '?state=lost', '?workflow=none', '?text=order-77', '?text=order'].map(
    (query) => `/orders${query}`,
  ),
  '/orders?subject=user:77001',
  ...['', '?kind=contradicted', '?kind=dead', `?order_id=${order}`].map(
    (query) => `/decisions${query}`,
  ),
  ...['', '?type=none', '?reference=none', `?order_id=${order}`].map((query) => `/effects${query}`),
  ...['', '?applied=false', `?order_id=${order}`].map((query) => `/payments${query}`),
  ...['', '?in_force=true', '?entitlement=none', '?subject=user:77'].map(
    (query) => `/entitlements${query}`,
  ),
  ...['', '?state=unfinished', '?state=discarded', '?destination=none', `?order_id=${order}`].map(
    (query) => `/operations${query}`,
  ),
  ...['', '?state=unfinished', '?state=dismissed', '?kind=none', '?overdue=true'].map(
    (query) => `/findings${query}`,
  ),
  '/runs',
  '/checkpoints',
  ...['', '?actor=nobody', '?act=none', '?target=order:none'].map((query) => `/acts${query}`),
  '/bulk',
  ...[order, 'evt_77001', 'user:77001', 'pi_77001', 'nothing-of-that-name'].map(
    (text) => `/search?q=${text}`,
  ),
  `/orders/${order}`,
  `/orders/${order}/graph`,
  '/subjects/user:77001',
  `/events/${encodeURIComponent('stripe:acct_bench:test')}/evt_77001`,
]

/** Fills a schema and asks for everything again and again. */
export async function benchConsole({ server, options, log }: BenchContext): Promise<Report> {
  const schema = `console_${process.pid}`
  const pool = createBenchPool(server.url, poolSize)
  try {
    const hookledger = await migrateInbox({ pool, schema })
    const events = options.backlog
    const began = performance.now()
    const tenth = Math.max(1, Math.round(events / 10))
    await fillLedger(pool, schema, { events, orders: tenth, waiting: tenth })
    await settle(server.url)
    log(`filled in ${Math.round((performance.now() - began) / 1000)} s`)
    const console = mountConsole(partsOf(hookledger), {
      authorize: () => ({ actor: 'bench', roles: ['viewer'] }),
    })
    const ask = async (path: string): Promise<string> => {
      const response = await console.fetch(new Request(`http://bench.test/api${path}`))
      const text = await response.text()
      if (response.status !== 200)
        throw new Error(`${path} was answered ${response.status}: ${text}`)
      return text
    }
    const results = []
    for (const path of paths) {
      const times: number[] = []
      let bytes = 0
      for (let round = 0; round < askedTimes; round++) {
        if (path === '/overview') await sleep(keptMs)
        const started = performance.now()
        bytes = (await ask(path)).length
        times.push(performance.now() - started)
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
      conditions: {
        events: String(events),
        waiting: String(tenth),
        ...(await sizes(pool, schema)),
      },
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
