/**
 * `backlog`: the rate at which a worker goes through the first events while a great many wait, and while
 * another transaction holds the horizon so that dead rows stay; against a short queue. The plan of the
 * claim and the worker's memory are told with it.
 */
import type pg from 'pg'
import { partsOf, type Hookledger } from '../src/hookledger.ts'
import { claimStatement } from '../src/inbox/claim.ts'
import { migrateInbox } from './contestants/inbox.ts'
import { poolSize } from './contest.ts'
import { median, rounded } from './figures.ts'
import type { BenchContext, Report } from './report.ts'
import { createBenchPool, dropSchemas, settle, withClient } from './server.ts'

/** Events that are waiting in the short queue, and that are worked off in each measurement. */
const short = 10_000

interface Measured {
  readonly rate: number
  readonly plan: readonly string[]
  readonly memoryGrowth: number
}

/** Runs the comparison. */
export async function benchBacklog({ server, options, log }: BenchContext): Promise<Report> {
  const few: number[] = []
  const many: number[] = []
  const held: number[] = []
  const plans = new Set<string>()
  let growth = 0
  for (let round = 0; round < options.rounds; round++) {
    const schema = `backlog_${process.pid}_${round}`
    few.push((await measure(server.url, `${schema}_few`, short, false)).rate)
    for (const pinned of [false, true]) {
      const done = await measure(
        server.url,
        `${schema}_${pinned ? 'held' : 'many'}`,
        options.backlog,
        pinned,
      )
      ;(pinned ? held : many).push(done.rate)
      for (const node of done.plan) plans.add(node)
      growth = Math.max(growth, done.memoryGrowth)
    }
    log(
      `round ${round + 1}: ${short} waiting ${Math.round(few.at(-1) ?? 0)}, ${options.backlog} waiting ${Math.round(many.at(-1) ?? 0)}, horizon held ${Math.round(held.at(-1) ?? 0)} events/s`,
    )
  }
  const ratio = (rates: readonly number[]): number =>
    rounded(median(rates.map((rate, round) => rate / (few[round] ?? Number.NaN))))
  return {
    bench: 'backlog',
    unit: 'events/s',
    conditions: { claim: [...plans].join(', '), memory_growth_mb: String(Math.round(growth)) },
    results: [
      { name: `${short} waiting`, median: Math.round(median(few)) },
      { name: `${options.backlog} waiting`, median: Math.round(median(many)) },
      { name: `${options.backlog} waiting, horizon held`, median: Math.round(median(held)) },
    ],
    ratios: { many_vs_few: ratio(many), held_vs_few: ratio(held) },
    floors: { many_vs_few: 0.9, held_vs_few: 0.9 },
  }
}

async function measure(
  url: string,
  schema: string,
  waiting: number,
  pinned: boolean,
): Promise<Measured> {
  const pool = createBenchPool(url, poolSize)
  try {
    const hookledger = await migrateInbox({ pool, schema })
    await fill(pool, schema, waiting)
    await settle(url)
    return pinned
      ? await withClient(url, (holder) =>
          holding(holder, () => workOffFirst(pool, schema, hookledger)),
        )
      : await workOffFirst(pool, schema, hookledger)
  } finally {
    await pool.end()
    await dropSchemas(url, [schema])
  }
}

/** Runs work while a transaction with a snapshot stays open. */
async function holding<T>(holder: pg.Client, work: () => Promise<T>): Promise<T> {
  await holder.query('begin isolation level repeatable read')
  await holder.query('select count(*) from pg_class')
  try {
    return await work()
  } finally {
    await holder.query('rollback')
  }
}

async function workOffFirst(
  pool: pg.Pool,
  schema: string,
  hookledger: Hookledger,
): Promise<Measured> {
  const { signals } = partsOf(hookledger)
  let settled = 0
  const finished = new Promise<void>((resolve) => {
    signals.on('inbox.batch.finished', ({ events }) => {
      settled += events
      if (settled >= short) resolve()
    })
  })
  const before = process.memoryUsage().rss
  const startedAt = performance.now()
  await hookledger.start()
  await finished
  const rate = settled / ((performance.now() - startedAt) / 1000)
  const memoryGrowth = (process.memoryUsage().rss - before) / 1024 / 1024
  const plan = await planOfClaim(pool, schema)
  await hookledger.stop()
  return { rate, plan, memoryGrowth }
}

interface JsonPlan {
  readonly 'Node Type': string
  readonly Plans?: readonly JsonPlan[]
}

async function planOfClaim(pool: pg.Pool, schema: string): Promise<string[]> {
  const { rows } = await pool.query<{ 'QUERY PLAN': readonly { readonly Plan: JsonPlan }[] }>(
    `explain (format json) ${claimStatement(`"${schema}".`, 'next')}`,
    ['-1', 500, []],
  )
  const types = (plan: JsonPlan): string[] => [
    plan['Node Type'],
    ...(plan.Plans ?? []).flatMap(types),
  ]
  return (rows[0]?.['QUERY PLAN'] ?? []).flatMap(({ Plan }) => types(Plan))
}

/** So many paid orders whose events wait, made by SQL: a body of each, as small as the workflow needs. */
async function fill(pool: pg.Pool, schema: string, waiting: number): Promise<void> {
  const statements = [
    `insert into "${schema}".sources (provider, provider_account, environment) values ('stripe', 'acct_bench', 'test') on conflict do nothing`,
    `insert into "${schema}".inbox_events (source_id, event_id, event_type, body_sha256, body_bytes)
       select s.source_id, 'evt_' || n, 'checkout.session.completed', '\\x00', 1
       from "${schema}".sources s, generate_series(1, ${waiting}) n order by n`,
    `insert into "${schema}".orders (order_id, workflow, state, subject, expected_amount, currency)
       select 'order-' || event_key, 'license', 'pending', 'user:' || event_key, 4900, 'USD' from "${schema}".inbox_events`,
    `insert into "${schema}".payloads (event_key, received_on, body)
       select event_key, (received_at at time zone 'UTC')::date, convert_to(format(
         '{"id":"evt_%1$s","type":"checkout.session.completed","created":1767225600,"livemode":false,"data":{"object":{"id":"cs_%1$s","object":"checkout.session","client_reference_id":"order-%1$s","payment_intent":"pi_%1$s","amount_total":4900,"currency":"usd"}}}',
         event_key), 'UTF8') from "${schema}".inbox_events`,
    `insert into "${schema}".inbox_ready (event_key, received_on)
       select event_key, (received_at at time zone 'UTC')::date from "${schema}".inbox_events order by event_key`,
  ]
  for (const statement of statements) await pool.query(statement)
}
