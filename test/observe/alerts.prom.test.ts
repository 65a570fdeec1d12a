/**
 * The alerts against Prometheus's own `promtool` (Debian: `apt-get install prometheus`), on what `/metrics` really said: of
 * an installation in which all is well no alert fires, and of one in which everything goes wrong at once, each of them.
 */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { partsOf } from '../../src/hookledger.ts'
import { gauges } from '../../src/report/gauges.ts'
import { createMetrics, type Metrics } from '../../src/server/metrics.ts'
import { createProbe, probe, probeWorkflow, type Probe, type ProbeHooks } from '../support/probe.ts'
import { scripted } from '../support/scripted-destination.ts'

const rulesFile = join(process.cwd(), 'docs/observability/alerts.yml')
const hooks: ProbeHooks = {}

let directory: string
let bench: Probe
let metrics: Metrics
/** What `/metrics` said while all was well, and when everything was wrong. */
let well: string
let wrong: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'hookledger-alerts-'))
  bench = await createProbe({
    workflows: [probeWorkflow(hooks)],
    destinations: { crm: scripted() },
    log: 'silent',
  } as never)
  metrics = createMetrics(partsOf(bench.hookledger).signals, () => gauges(bench.db))
  well = await whileAllIsWell()
  wrong = await whenNothingIs()
}, 120_000)
afterAll(async () => {
  metrics.stop()
  await bench.close()
  await rm(directory, { recursive: true, force: true })
})

async function until(text: string, values: unknown[] = []): Promise<void> {
  for (let tries = 0; tries < 200; tries += 1) {
    if ((await bench.rows(text, values)).length > 0) return
    await sleep(50)
  }
  throw new Error(`never came true: ${text}`)
}

/** `/metrics` keeps what it read of the database for five seconds. */
async function scrape(): Promise<string> {
  await sleep(5100)
  return metrics.render()
}

async function whileAllIsWell(): Promise<string> {
  await bench.hookledger.start()
  await bench.deliver(probe('pay', { order: 'x' }), probe('refund', { order: 'x' }))
  await until(`select from processes where 'work' = any (roles)`)
  await until(`select from ledger_decisions having count(*) filter (where final) = 2`)
  return scrape()
}

/** What a worker runs into, and what it leaves when it is gone. */
async function whenNothingIs(): Promise<string> {
  await bench.deliver(probe('refund', { waits: 'n' }))
  await until(`select from inbox_deferred`)
  hooks.decide = ({ event }) => {
    if ((event as unknown as { type: string }).type === 'note')
      throw new Error('the price list is down')
    return undefined
  }
  await bench.deliver(probe('note', { order: 'x' }))
  await until(`select from inbox_delayed`)
  await bench.hookledger.stop()
  // a wake-up that no code of ours leaves out, and a table that somebody renamed
  await bench.rows(`update order_names set order_id = 'x' where name = 'n'`)
  await bench.rows(`update inbox_deferred set deferred_at = deferred_at - interval '1 minute'`)
  const second = bench.another({})
  const more = createMetrics(partsOf(second).signals)
  metrics = joined(metrics, more)
  await second.start()
  await sleep(1500)
  await bench.rows(`alter table inbox_delayed rename to away`)
  await sleep(3000)
  await bench.rows(`alter table away rename to inbox_delayed`)
  await second.stop()
  for (let times = 0; times < 3; times += 1)
    await bench.hookledger.ingest({
      source: 'probe',
      headers: { 'stripe-signature': 't=1,v1=00' },
      rawBody: Buffer.from('{}'),
    })
  await bench.deliver(probe('pay', { order: 'y' }))
  const client = await bench.pool.connect()
  try {
    // time passes, and things go wrong that only time or a provider can make
    await client.query('set session_replication_role = replica')
    for (const statement of afterwards) await client.query(statement)
  } finally {
    await client.query('set session_replication_role = origin')
    client.release()
  }
  return scrape()
}

const afterwards = [
  `update inbox_events set received_at = received_at - interval '10 minutes' where event_key in (select event_key from inbox_ready)`,
  `insert into inbox_dead (event_key, received_on, reason, attempts) values (900001, current_date, 'x', 3)`,
  `insert into inbox_deferred (event_key, received_on, attempts, deadline_at, waits_for, at_deadline, overdue)
   values (900002, current_date, 1, now() - interval '1 hour', 'ref m', 'finding', true)`,
  `insert into fetches (order_id, source_id, kind, object_id, workflow, event_type, event_key, wanted, asked_at)
   values ('x', 1, 'plan', 'p', 'probe', 'look', 1, 1, now() - interval '1 hour')`,
  `insert into outbox_operations (operation_id, destination, name, request_sha256, request_bytes, promise, window_ms, state, next_attempt_at, uncertain_since)
   values (gen_random_uuid(), 'crm', 'a', sha256(''), 0, 'once', 1000, 'pending', now() - interval '1 hour', null),
     (gen_random_uuid(), 'crm', 'b', sha256(''), 0, 'once', 1000, 'uncertain', null, now())`,
  `update outbox_destinations set closed_until = now() + interval '1 hour'`,
  `insert into reconciliation_runs (run_id, source, how, actor, state, started_at, finished_at)
   values (gen_random_uuid(), 'probe', 'scheduled', 'hookledger', 'complete', now() - interval '3 hours', now() - interval '3 hours')`,
  `insert into findings (finding_id, class, kind, severity, owner, evidence, due_at, first_seen_at)
   values ('00000000-0000-4000-8000-000000000001', 'contradiction', 'paid_twice', 'high', 'ops', '{}', now() - interval '1 day', now() - interval '5 days')`,
  `insert into repairs (repair_id, finding_id, plan, reason, actor, previous_state, new_state)
   values (gen_random_uuid(), '00000000-0000-4000-8000-000000000001', '{}', 'x', 'ops', '{}', '{}')`,
]

/** Two processes of one installation, as one target: the counters of both, the gauges of the first. */
function joined(first: Metrics, second: Metrics): Metrics {
  return {
    add: () => {},
    stop: () => [first, second].forEach((each) => each.stop()),
    render: async () => {
      const counted = samples(await second.render())
      return (
        (await first.render()).replaceAll(
          /^([a-z_]+(?:\{[^}]*\})?) (\S+)$/gm,
          (_, series: string, value: string) => {
            const more = counted.get(series) ?? 0
            counted.delete(series)
            return `${series} ${Number(value) + (series.includes('_gauge') ? 0 : more)}`
          },
        ) + [...counted].map(([series, value]) => `${series} ${value}\n`).join('')
      )
    },
  }
}

/** Every sample of an exposition, by its series. */
function samples(text: string): Map<string, number> {
  return new Map(
    [...text.matchAll(/^([a-z_]+(?:\{[^}]*\})?) (\S+)$/gm)].map(([, series = '', value]) => [
      series,
      Number(value),
    ]),
  )
}

interface RuleFile {
  readonly groups: readonly { readonly rules: readonly { readonly alert: string }[] }[]
}

const alerts = async (): Promise<string[]> =>
  (parse(await readFile(rulesFile, 'utf8')) as RuleFile).groups
    .flatMap(({ rules }) => rules.map(({ alert }) => alert))
    .sort()

const minutesWell = 120
const minutesWrong = 240

/**
 * Both scrapes as one history: two hours of the first, then what the second said, for hours; what was counted between
 * them is counted each minute from then on. A moment in it becomes one of that history's clock.
 */
function history(first: string, then: string): { series: string; values: string }[] {
  const [before, after] = [samples(first), samples(then)]
  return [...new Set([...before.keys(), ...after.keys()])].map((series) => {
    const [start, end] = [before.get(series), after.get(series)]
    const isMoment = series.includes('timestamp_seconds')
    const at = (value: number, minutes: number): number =>
      isMoment ? minutes * 60 - (Date.now() / 1000 - value) : value
    const begin =
      start === undefined ? `_x${minutesWell}` : `${at(start, minutesWell)}+0x${minutesWell}`
    if (end === undefined) return { series, values: begin }
    const isCounter = /_(total|bucket|sum|count)(\{|$)/.test(series)
    const step = isCounter ? end - (start ?? 0) : 0
    return {
      series,
      values: `${begin} ${at(end, minutesWell)}+${Math.max(0, step)}x${minutesWrong}`,
    }
  })
}

/** Fails with what promtool says. */
async function promtool(args: readonly string[], input = ''): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = execFile('promtool', args, (error, out, err) =>
      error === null
        ? resolve(out)
        : reject(new Error(`promtool ${args[0]}: ${err || out || error.message}`)),
    )
    child.stdin?.end(input)
  })
}

/** Which alerts fire at these minutes of a history. */
async function expectFiring(
  name: string,
  series: readonly { series: string; values: string }[],
  expected: Readonly<Record<number, readonly string[]>>,
): Promise<void> {
  const file = join(directory, `${name}.json`)
  const tests = {
    rule_files: [rulesFile],
    evaluation_interval: '1m',
    tests: [
      {
        interval: '1m',
        input_series: series,
        promql_expr_test: Object.entries(expected).map(([minute, names]) => ({
          expr: 'group by (alertname) (ALERTS{alertstate="firing"})',
          eval_time: `${minute}m`,
          exp_samples: names.map((alert) => ({ labels: `{alertname="${alert}"}`, value: 1 })),
        })),
      },
    ],
  }
  // JSON is YAML
  await writeFile(file, JSON.stringify(tests))
  expect(await promtool(['test', 'rules', file])).toContain('SUCCESS')
}

describe('alerts.yml', () => {
  it('is what Prometheus takes for rules', async () => {
    expect(await promtool(['check', 'rules', rulesFile])).toContain('SUCCESS')
  })

  it('fires on what each alert is for, and is silent on what only looks alike', async () => {
    const file = join(process.cwd(), 'docs/observability/alerts.test.yml')
    expect(await promtool(['test', 'rules', file])).toContain('SUCCESS')
  })

  it('is silent while all is well, and every alert fires when everything is wrong at once, by the figures of a run', async () => {
    const all = (await alerts()).filter((name) => name !== 'HookledgerNothingToRead')
    expect(all.length).toBeGreaterThan(15)
    await expectFiring('run', history(well, wrong), {
      [minutesWell - 1]: [],
      [minutesWell + minutesWrong - 1]: all,
    })
  })

  it('says that nothing can be read where the database cannot be asked', async () => {
    const { pool, db } = bench
    const unread = createMetrics(partsOf(bench.hookledger).signals, async () => {
      await pool.query('select * from hookledger.no_such_table')
      return gauges(db)
    })
    const text = await unread.render()
    unread.stop()
    expect(samples(text).get('hookledger_gauges_up')).toBe(0)
    await expectFiring('unread', history(well, text), {
      [minutesWell - 1]: [],
      [minutesWell + minutesWrong - 1]: ['HookledgerNothingToRead'],
    })
  })
})

describe('what /metrics says', () => {
  it('is in the format of Prometheus, as its own checker reads it', async () => {
    for (const text of [well, wrong]) await promtool(['check', 'metrics'], text)
  })
})
