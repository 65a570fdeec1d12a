/**
 * A dispatcher in a process of its own, for proofs that kill it, stop it or set its clock wrong. It says
 * on its output what it is about to suffer, before it happens, and that it is ready.
 */
import './skewed-clock.ts'
import { writeSync } from 'node:fs'
import pg from 'pg'
import { createHookledger } from 'hookledger'
import { partsOf } from '../../src/hookledger.ts'
import { installFaultPlanOf } from '../../src/testing/fault-plan.ts'
import { declareAdversary, sendingWorkflow, type DeclaredAdversary } from './outbox-proof.ts'
import { probeOptions } from './probe.ts'

/** What the driver is told; sent as JSON. */
export interface OutboxDriverSettings {
  readonly databaseUrl: string
  readonly destinations: Readonly<Record<string, DeclaredAdversary>>
  /** How wrong its clock is. */
  readonly skewMs?: number
}

/** One line, written before anything else happens. */
function say(line: string): void {
  writeSync(1, `${line}\n`)
}

async function main(): Promise<void> {
  const settings = JSON.parse(process.argv[2] ?? '{}') as OutboxDriverSettings
  installFaultPlanOf(process.env, {
    databasePort: Number(new URL(settings.databaseUrl).port),
    told: ({ step, nth, action }) => say(`fault ${step} ${nth} ${action}`),
  })
  const pool = new pg.Pool({ connectionString: settings.databaseUrl, max: 8, query_timeout: 3000 })
  pool.on('error', () => {})
  const destinations = Object.entries(settings.destinations).map(
    ([name, declared]) => [name, declareAdversary(declared)] as const,
  )
  const hookledger = createHookledger(
    probeOptions([sendingWorkflow(Object.keys(settings.destinations))], {
      destinations: Object.fromEntries(destinations),
      database: pool,
    }),
  )
  const parts = partsOf(hookledger)
  parts.signals.on('worker.loop.failed', ({ loop, message }) => say(`failed ${loop}: ${message}`))
  await parts.register()
  const dispatcher = await parts.dispatcher()
  dispatcher.start()
  say(`clock ${new Date().toISOString()}`)
  say('ready 0')
}

main().catch((error: unknown) => {
  say(`broken ${error instanceof Error ? (error.stack ?? error.message) : 'no error'}`)
  process.exit(1)
})
