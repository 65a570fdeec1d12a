/**
 * `reconcile`: one pass over 100,000 payments and their events at the provider, against 100,000 orders,
 * and the same with a tenth of both: records a second, memory that must not grow with the count, and how
 * many rows of the big tables were read by going through all of them.
 */
import { fork, type ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { partsOf } from '../src/hookledger.ts'
import { migrate } from '../src/postgres/migrate.ts'
import { createDatabase } from '../src/postgres/pool.ts'
import { median, rounded } from './figures.ts'
import type { MeasuredPass } from './reconcile-child.ts'
import { reconcileHookledger } from './reconcile-license.ts'
import type { ProviderSettings } from './reconcile-provider.ts'
import type { BenchContext, Report } from './report.ts'
import { createBenchPool, dropSchemas, settle, withClient } from './server.ts'

/** One in so many was paid with another amount: what a pass must find. */
const oddEvery = 1000
/** A round takes minutes; what is compared within one is the same pass over more. */
const mostRounds = 2
/** Everything was paid between a day and an hour ago. */
const oldestHours = 24
const newestHours = 1

interface Measured extends MeasuredPass {
  readonly orders: number
  /** Rows of the big tables that were read by sequential scans. */
  readonly scanned: number
}

/** Runs the comparison. */
export async function benchReconcile({ server, options, log }: BenchContext): Promise<Report> {
  const many = options.records
  const few = Math.ceil(many / 10)
  const measured = new Map<number, Measured[]>([
    [few, []],
    [many, []],
  ])
  for (let round = 0; round < Math.min(options.rounds, mostRounds); round++) {
    for (const [orders, results] of measured) {
      const result = await measure(
        server.url,
        `reconcile_${process.pid}_${round}_${orders}`,
        orders,
      )
      results.push(result)
      log(
        `round ${round + 1}: ${result.records} records against ${orders} orders in ${result.seconds.toFixed(1)} s, ${Math.round(result.records / result.seconds)} records/s, ${result.heapMb.toFixed(1)} MiB, ${result.scanned} rows scanned`,
      )
    }
  }
  const of = (orders: number, figure: (each: Measured) => number): number =>
    median((measured.get(orders) ?? []).map(figure))
  const rate = (each: Measured): number => each.records / each.seconds
  const scanned = Math.max(...[...measured.values()].flat().map((each) => each.scanned))
  return {
    bench: 'reconcile',
    unit: 'records/s',
    conditions: { provider: 'its own process, pages of 100', odd: `one payment in ${oddEvery}` },
    results: [few, many].map((orders) => ({
      name: `${orders} orders`,
      median: Math.round(of(orders, rate)),
      records: of(orders, (each) => each.records),
      seconds: rounded(of(orders, (each) => each.seconds)),
      heapMb: rounded(of(orders, (each) => each.heapMb)),
      found: of(orders, (each) => each.opened),
      scanned,
    })),
    ratios: {
      many_vs_few: rounded(of(many, rate) / of(few, rate)),
      memory_flat: rounded(
        (base + of(few, (each) => each.heapMb)) / (base + of(many, (each) => each.heapMb)),
      ),
      no_table_scan: scanned === 0 ? 1 : 0,
    },
    floors: { many_vs_few: 0.4, memory_flat: 0.8, no_table_scan: 1 },
  }
}

/** What the process holds without any record, in MiB: growth is told against it, not against nothing. */
const base = 16

async function measure(url: string, schema: string, orders: number): Promise<Measured> {
  const now = Math.floor(Date.now() / 1000)
  const from = now - oldestHours * 3600
  const to = now - newestHours * 3600
  const provider = forked('reconcile-provider.js', [
    JSON.stringify({ records: orders, from, to, oddEvery } satisfies ProviderSettings),
  ])
  try {
    const { port } = await told<{ readonly port: number }>(provider)
    const apiBase = `http://127.0.0.1:${port}`
    await fill(url, schema, { orders, from, to, apiBase })
    await settle(url)
    const before = await scannedRows(url, schema)
    const child = forked('reconcile-child.js', [url, schema, apiBase], ['--expose-gc'])
    const result = await told<MeasuredPass>(child)
    const scanned = (await scannedRows(url, schema)) - before
    const must = Math.floor(orders / oddEvery)
    if (!result.complete) throw new Error(`the pass was not complete: ${result.error}`)
    if (result.records < 2 * orders) throw new Error(`only ${result.records} records were seen`)
    if (result.injected !== 0) throw new Error(`${result.injected} events were put in`)
    if (result.opened !== must) throw new Error(`${result.opened} findings, not ${must}`)
    return { ...result, orders, scanned }
  } finally {
    provider.kill('SIGKILL')
    await dropSchemas(url, [schema])
  }
}

function forked(
  script: string,
  args: readonly string[],
  execArgv: readonly string[] = [],
): ChildProcess {
  return fork(fileURLToPath(new URL(script, import.meta.url)), args, { execArgv: [...execArgv] })
}

function told<T>(child: ChildProcess): Promise<T> {
  return new Promise((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`a process ended with ${code} and said nothing`)))
    child.once('message', (message) => resolve(message as T))
  })
}

const bigTables = [
  'orders',
  'order_names',
  'inbox_events',
  'ledger_decisions',
  'ledger_payments',
  'fulfillment_effects',
  'entitlements',
]

/** Statistics arrive when the connections that made them have ended. */
async function scannedRows(url: string, schema: string): Promise<number> {
  await new Promise((resolve) => setTimeout(resolve, 1500))
  return withClient(url, async (client) => {
    const { rows } = await client.query<{ scanned: string }>(
      `select coalesce(sum(seq_tup_read), 0) as scanned from pg_stat_user_tables where schemaname = $1 and relname = any ($2)`,
      [schema, bigTables],
    )
    return Number(rows[0]?.scanned)
  })
}

interface Filling {
  readonly orders: number
  readonly from: number
  readonly to: number
  readonly apiBase: string
}

/** So many orders, each paid by the payment of its number, as their events would have left them. */
async function fill(url: string, schema: string, filling: Filling): Promise<void> {
  const pool = createBenchPool(url, 4)
  try {
    await migrate(createDatabase(pool, schema), { environment: 'test' })
    await partsOf(reconcileHookledger(pool, schema, filling.apiBase)).register()
    await pool.query(`create view "${schema}".made as ${madeQuery(filling)}`)
    for (const statement of statements) await pool.query(statement.replaceAll('S.', `"${schema}".`))
    await pool.query(`drop view "${schema}".made`)
  } finally {
    await pool.end()
  }
}

function madeQuery({ orders, from, to }: Filling): string {
  return `select n, to_timestamp(${from} + (n - 1) * ${to - from}::bigint / ${orders}) + interval '1 second' as at from generate_series(1, ${orders}) n`
}

const statements = [
  `update S.installation set created_at = now() - interval '${oldestHours + 1} hours'`,
  `insert into S.sources (provider, provider_account, environment) values ('stripe', 'acct_bench', 'test') on conflict do nothing`,
  `insert into S.inbox_events (event_key, source_id, event_id, event_type, received_at, body_sha256, body_bytes) overriding system value
     select n, s.source_id, 'evt_' || n, 'payment_intent.succeeded', at, '\\x00', 1 from S.made, S.sources s where s.provider = 'stripe' order by n`,
  `insert into S.ledger_decisions (decision_id, event_key, order_id, workflow, kind, final, from_state, to_state, entitles, reason, evidence, actor, attempts, decided_at) overriding system value
     select n, n, 'order-' || n, 'license', 'fulfilled', true, 'pending', 'paid', true, 'paid', jsonb_build_object('granted', jsonb_build_array('user:' || n || ' pro')), 'worker:1', 1, at from S.made order by n`,
  `insert into S.orders (order_id, workflow, source_id, provider_account, state, subject, expected_amount, currency, version, opened_at, updated_at)
     select 'order-' || n, 'license', s.source_id, s.provider_account, 'paid', 'user:' || n, 4900, 'USD', 2, at, at from S.made, S.sources s where s.provider = 'stripe' order by n`,
  `insert into S.order_names (source_id, kind, name, order_id)
     select s.source_id, 'payment_intent', 'pi_' || n, 'order-' || n from S.made, S.sources s where s.provider = 'stripe'
     union all select 0, 'order', 'order-' || n, 'order-' || n from S.made`,
  `insert into S.ledger_payments (source_id, payment_id, order_id, amount, currency, applied, decision_id, recorded_at)
     select s.source_id, 'pi_' || n, 'order-' || n, 4900, 'USD', true, n, at from S.made, S.sources s where s.provider = 'stripe' order by n`,
  `insert into S.fulfillment_effects (order_id, effect_type, decision_id, recorded_at) select 'order-' || n, 'license', n, at from S.made order by n`,
  `insert into S.entitlements (order_id, subject, entitlement, active, granted_by, changed_by) select 'order-' || n, 'user:' || n, 'pro', true, n, n from S.made order by n`,
  `select setval(pg_get_serial_sequence('S.inbox_events', 'event_key'), (select max(event_key) from S.inbox_events))`,
  `select setval(pg_get_serial_sequence('S.ledger_decisions', 'decision_id'), (select max(decision_id) from S.ledger_decisions))`,
]
