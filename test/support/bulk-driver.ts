/** A console that runs bulk acts, in a process of its own, for proofs that kill it on the way. */
import { writeSync } from 'node:fs'
import pg from 'pg'
import { createHookledger } from 'hookledger'
import { runBulk } from '../../src/compose/bulk/bulk-run.ts'
import { partsOf } from '../../src/hookledger.ts'
import { installFaultPlanOf } from '../../src/testing/fault-plan.ts'
import { probeOptions, probeWorkflow } from './probe.ts'

function say(line: string): void {
  writeSync(1, `${line}\n`)
}

async function main(): Promise<void> {
  const { databaseUrl } = JSON.parse(process.argv[2] ?? '{}') as { readonly databaseUrl: string }
  installFaultPlanOf(process.env, {
    databasePort: Number(new URL(databaseUrl).port),
    told: ({ step, nth, action }) => say(`fault ${step} ${nth} ${action}`),
  })
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 4, query_timeout: 3000 })
  pool.on('error', () => {})
  const parts = partsOf(createHookledger(probeOptions([probeWorkflow()], { database: pool })))
  say('ready 0')
  for (let turns = 1; turns <= 100; turns++) {
    try {
      if (!(await runBulk(parts))) break
    } catch (error) {
      say(`failed ${error instanceof Error ? error.message : ''}`)
    }
  }
  say('ended')
  await pool.end()
}

main().catch((error: unknown) => {
  say(`broken ${error instanceof Error ? (error.stack ?? error.message) : 'no error'}`)
  process.exit(1)
})
