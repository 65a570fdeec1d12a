/**
 * A worker and a gatherer in a process of their own, for proofs that kill them. It says on its output what it is
 * about to suffer, before it happens, and that it is ready.
 */
import { writeSync } from 'node:fs'
import pg from 'pg'
import { createHookledger, stripe } from 'hookledger'
import { partsOf } from '../../src/hookledger.ts'
import { installFaultPlanOf } from '../../src/testing/fault-plan.ts'
import { AskedProvider } from './asked-provider.ts'
import { quickGathering, type GatherDriverSettings } from './gather-kills.ts'
import { probeOptions, probeSecret } from './probe.ts'

function say(line: string): void {
  writeSync(1, `${line}\n`)
}

async function main(): Promise<void> {
  const settings = JSON.parse(process.argv[2] ?? '{}') as GatherDriverSettings
  installFaultPlanOf(process.env, {
    databasePort: Number(new URL(settings.databaseUrl).port),
    told: ({ step, nth, action }) => say(`fault ${step} ${nth} ${action}`),
  })
  const pool = new pg.Pool({ connectionString: settings.databaseUrl, max: 8, query_timeout: 3000 })
  pool.on('error', () => {})
  const provider = new AskedProvider()
  provider.answer = async ({ id, signal }) => {
    const answer = await fetch(`${settings.providerUrl}/${id}`, { signal })
    return answer.status === 404 ? undefined : ((await answer.json()) as unknown)
  }
  const source = stripe({ environment: 'test', signingSecrets: [probeSecret] })
  const hookledger = createHookledger(
    probeOptions([provider.workflow()], {
      sources: { probe: { ...source, calls: provider.calls } },
      gather: quickGathering,
      database: pool,
    }),
  )
  const parts = partsOf(hookledger)
  parts.signals.on('worker.loop.failed', ({ loop, message }) => say(`failed ${loop}: ${message}`))
  await parts.register()
  const worker = await parts.worker({ loops: 1 })
  const gatherer = await parts.gatherer()
  await worker.start()
  gatherer.start()
  say('ready 0')
}

main().catch((error: unknown) => {
  say(`broken ${error instanceof Error ? (error.stack ?? error.message) : 'no error'}`)
  process.exit(1)
})
