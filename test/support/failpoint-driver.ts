/**
 * The process that proofs kill, stop and starve: a receiver, a worker or both over a database, with the
 * faults that HOOKLEDGER_FAULT_PLAN names. It says on its output what it is about to suffer, before it
 * happens, and that it is ready.
 */
import { writeSync } from 'node:fs'
import pg from 'pg'
import { createHookledger, type Hookledger } from 'hookledger'
import { defaultLimits } from '../../src/core/limits.ts'
import { partsOf } from '../../src/hookledger.ts'
import { createHookledgerServer } from '../../src/server/server.ts'
import { installFaultPlanOf } from '../../src/testing/fault-plan.ts'
import { startWatchdog } from '../../src/worker/watchdog.ts'
import type { Decision } from '../../src/workflow/decision.ts'
import type { DecideInput } from '../../src/workflow/workflow.ts'
import type { DriverSettings } from './failpoint-process.ts'
import { probeOptions, probeWorkflow } from './probe.ts'
import { shopOptions } from './shop.ts'

const settings = JSON.parse(process.argv[2] ?? '{}') as DriverSettings
const limits = { ...defaultLimits, ...settings.limits }

/** One line, written before anything else happens. */
function say(line: string): void {
  writeSync(1, `${line}\n`)
}

/** Events that are the end of the process that decides them. */
function deadly({ event }: DecideInput): Decision | undefined {
  switch (event['deadly']) {
    case 'exit':
      process.exit(3)
      break
    case 'memory': {
      const hoard: number[][] = []
      for (;;) hoard.push(new Array<number>(100_000).fill(hoard.length))
    }
    case 'loop':
      for (;;) Math.random()
  }
  return undefined
}

function build(pool: pg.Pool): Hookledger {
  if (settings.app === 'shop') return createHookledger({ ...shopOptions, limits, database: pool })
  return createHookledger(
    probeOptions([probeWorkflow({ decide: deadly })], { limits, database: pool }),
  )
}

async function main(): Promise<void> {
  const databasePort = Number(new URL(settings.url).port)
  installFaultPlanOf(process.env, {
    databasePort,
    told: ({ step, nth, action }) => say(`fault ${step} ${nth} ${action}`),
  })
  const pool = new pg.Pool({
    connectionString: settings.url,
    max: 8,
    application_name: 'driver',
    connectionTimeoutMillis: 3000,
    query_timeout: settings.queryTimeoutMs ?? 1500,
  })
  pool.on('error', () => {})
  const hookledger = build(pool)
  const parts = partsOf(hookledger)
  parts.signals.on('worker.loop.failed', ({ loop, message }) => say(`failed ${loop}: ${message}`))
  let port = 0
  if (settings.receives) {
    const server = createHookledgerServer({
      ingest: (request) => hookledger.ingest(request),
      limits,
      ready: () => Promise.resolve({ ready: true }) as never,
    })
    port = (await server.listen(0, '127.0.0.1')).port
  }
  if (settings.works) {
    await parts.register()
    const watchdog = startWatchdog(settings.watchdogMs ?? 60_000)
    const worker = await parts.worker({ loops: settings.loops ?? 2, watch: watchdog })
    await worker.start()
  }
  say(`ready ${port}`)
}

main().catch((error: unknown) => {
  say(`broken ${error instanceof Error ? (error.stack ?? error.message) : 'no error'}`)
  process.exit(1)
})
