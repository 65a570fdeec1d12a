/**
 * Somebody who repairs a finding, in a process of its own, for proofs that kill or stop it on the way. It
 * presses again until an answer comes, as a person does, and says each answer on its output.
 */
import { writeSync } from 'node:fs'
import pg from 'pg'
import { createHookledger } from 'hookledger'
import { partsOf } from '../../src/hookledger.ts'
import { installFaultPlanOf } from '../../src/testing/fault-plan.ts'
import { PaymentProvider, repairOptions, type HeldPayment } from './repair-bench.ts'

/** What the driver is told; sent as JSON. */
export interface RepairDriverSettings {
  readonly databaseUrl: string
  readonly findingId: string
  readonly payments: Readonly<Record<string, HeldPayment>>
  readonly choice?: string
}

/** One line, written before anything else happens. */
function say(line: string): void {
  writeSync(1, `${line}\n`)
}

async function main(): Promise<void> {
  const settings = JSON.parse(process.argv[2] ?? '{}') as RepairDriverSettings
  installFaultPlanOf(process.env, {
    databasePort: Number(new URL(settings.databaseUrl).port),
    told: ({ step, nth, action }) => say(`fault ${step} ${nth} ${action}`),
  })
  const provider = new PaymentProvider()
  for (const [id, payment] of Object.entries(settings.payments)) provider.payments.set(id, payment)
  const pool = new pg.Pool({ connectionString: settings.databaseUrl, max: 4, query_timeout: 1500 })
  pool.on('error', () => {})
  const parts = partsOf(createHookledger({ ...repairOptions(provider), database: pool }))
  const repairs = await parts.repairs()
  say('ready 0')
  const by = { reason: 'from another process', actor: 'driver' }
  for (let tries = 1; tries <= 20; tries++) {
    try {
      const options = settings.choice === undefined ? {} : { choice: settings.choice }
      const { outcome } = await repairs.apply(settings.findingId, by, options)
      say(`answered ${outcome}`)
      break
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? String(error.code) : ''
      say(`failed ${code} ${error instanceof Error ? error.message : ''}`)
      if (code === 'HKL_FINDING_NOT_OPEN') break
    }
  }
  await pool.end()
}

main().catch((error: unknown) => {
  say(`broken ${error instanceof Error ? (error.stack ?? error.message) : 'no error'}`)
  process.exit(1)
})
