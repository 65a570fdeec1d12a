/** Runs one benchmark and prints its report. */
import { parseArgs } from 'node:util'
import { cpus } from 'node:os'
import { benchAccept } from './accept.ts'
import { benchBacklog } from './backlog.ts'
import { benchConsole } from './console.ts'
import { benchDispatch } from './dispatch.ts'
import { benchHotOrder } from './hot-order.ts'
import { benchLatency } from './latency.ts'
import { benchProcess } from './process.ts'
import { benchReconcile } from './reconcile.ts'
import { belowFloor, type BenchContext, type BenchOptions, type Report } from './report.ts'
import { startBenchServer } from './server.ts'

const benches: Readonly<Record<string, (context: BenchContext) => Promise<Report>>> = {
  accept: benchAccept,
  process: benchProcess,
  latency: benchLatency,
  backlog: benchBacklog,
  'hot-order': benchHotOrder,
  dispatch: benchDispatch,
  reconcile: benchReconcile,
  console: benchConsole,
}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      json: { type: 'boolean', default: false },
      prepared: { type: 'boolean', default: false },
      events: { type: 'string', default: '20000' },
      rounds: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '8' },
      backlog: { type: 'string', default: '1000000' },
      records: { type: 'string', default: '100000' },
    },
  })
  const run = benches[positionals[0] ?? '']
  if (run === undefined) {
    process.stderr.write(
      `usage: npm run bench -- ${Object.keys(benches).join('|')} [--json] [--rounds N] [--events N]\n`,
    )
    return 2
  }
  const options: BenchOptions = {
    json: values.json,
    prepared: values.prepared,
    events: positive(values.events),
    rounds: positive(values.rounds),
    seconds: positive(values.seconds),
    backlog: positive(values.backlog),
    records: positive(values.records),
  }
  const server = await startBenchServer()
  try {
    const report = await run({ server, options, log: (line) => process.stderr.write(`${line}\n`) })
    await print(report, await server.conditions(), options)
    const below = belowFloor(report)
    for (const line of below) process.stderr.write(`${line}\n`)
    return below.length === 0 ? 0 : 3
  } finally {
    await server.stop()
  }
}

async function print(
  report: Report,
  database: Readonly<Record<string, string>>,
  options: BenchOptions,
): Promise<void> {
  const conditions = {
    ...report.conditions,
    date: new Date().toISOString().slice(0, 10),
    node: process.version,
    cpus: `${cpus().length} × ${cpus()[0]?.model ?? 'unknown'}`,
    rounds: String(options.rounds),
    ...database,
  }
  const whole = { ...report, conditions }
  if (options.json) return void process.stdout.write(`${JSON.stringify(whole, null, 2)}\n`)
  process.stdout.write(`${report.bench}, ${report.unit}\n`)
  for (const result of report.results) process.stdout.write(`  ${JSON.stringify(result)}\n`)
  for (const [name, ratio] of Object.entries(report.ratios)) {
    const floor = report.floors[name]
    process.stdout.write(`  ${name} ${ratio}${floor === undefined ? '' : ` (floor ${floor})`}\n`)
  }
  for (const [name, value] of Object.entries(conditions))
    process.stdout.write(`  ${name}: ${value}\n`)
}

function positive(text: string): number {
  const value = Number(text)
  if (Number.isSafeInteger(value) && value > 0) return value
  throw new Error(`"${text}" must be a positive integer`)
}

process.exitCode = await main()
