/**
 * The process that proofs of reconciliation kill and stop: one pass over the demo shop, with a worker
 * beside it and the faults that HOOKLEDGER_FAULT_PLAN names. It says what it is about to suffer before it
 * happens, and what the pass came to.
 */
import { writeSync } from 'node:fs'
import pg from 'pg'
import { createHookledger } from 'hookledger'
import { partsOf } from '../../src/hookledger.ts'
import { outlast } from '../../src/reconciliation/outlast.ts'
import { installFaultPlanOf } from '../../src/testing/fault-plan.ts'
import { reconcileSource, type ReconcileDriverSettings } from './reconcile-kills.ts'
import { shopOptions } from './shop.ts'

const settings = JSON.parse(process.argv[2] ?? '{}') as ReconcileDriverSettings

/** One line, written before anything else happens. */
function say(line: string): void {
  writeSync(1, `${line}\n`)
}

async function main(): Promise<void> {
  installFaultPlanOf(process.env, {
    databasePort: Number(new URL(settings.url).port),
    told: ({ step, nth, action }) => say(`fault ${step} ${nth} ${action}`),
  })
  const pool = new pg.Pool({
    connectionString: settings.url,
    max: 8,
    application_name: 'driver',
    connectionTimeoutMillis: 3000,
    query_timeout: 1500,
  })
  pool.on('error', () => {})
  const hookledger = createHookledger({
    ...shopOptions,
    sources: { stripe: reconcileSource(settings.apiBase) },
    reconcile: settings.reconcile,
    database: pool,
  })
  const parts = partsOf(hookledger)
  // a process that stands still may have the lock of registering: the server takes it away after 20 s
  await outlast(() => parts.register())
  const worker = await parts.worker({ loops: 1 })
  await worker.start()
  const reconciler = await parts.reconciler()
  say('ready 0')
  try {
    const { runs } = await reconciler.pass({ how: 'manual', actor: 'driver' })
    say(`ended ${runs.map(({ state, error }) => `${state} ${error ?? ''}`).join(', ')}`)
  } catch (error) {
    say(`failed ${error instanceof Error ? error.message : 'no error'}`)
  }
  await worker.stop(2000)
  process.exit(0)
}

main().catch((error: unknown) => {
  say(`broken ${error instanceof Error ? (error.stack ?? error.message) : 'no error'}`)
  process.exit(1)
})
