/**
 * A worker in a process of its own that kills itself at one statement of telling what ended: for proofs that what
 * it had in its hands is told by another, once. It says on its output that it is ready, and what it is about to
 * suffer.
 */
import { writeSync } from 'node:fs'
import pg from 'pg'
import { createHookledger } from 'hookledger'
import { partsOf } from '../../src/hookledger.ts'
import { probeOptions } from './probe.ts'
import { scripted } from './scripted-destination.ts'
import { subjectWorkflow } from './subject-workflow.ts'
import { stepOf, type TellingDriverSettings } from './telling-kills.ts'

function say(line: string): void {
  writeSync(1, `${line}\n`)
}

/** The same pool in a process that dies before a step's statement is sent, or after its answer came. */
function fatalPool(pool: pg.Pool, { dies }: TellingDriverSettings): pg.Pool {
  if (dies === undefined) return pool
  const die = (): void => {
    say(`fault ${dies.step} 1 ${dies.when}`)
    process.kill(process.pid, 'SIGKILL')
  }
  const wrap = (client: pg.PoolClient): pg.PoolClient => {
    let seen: string[] = []
    const query = async (...of: [string | { readonly text: string }]): Promise<unknown> => {
      const text = typeof of[0] === 'string' ? of[0] : of[0].text
      const step = stepOf(text, seen)
      seen = text.startsWith('begin') ? [] : [...seen, ...(step === null ? [] : [step])]
      const isFatal = step === dies.step
      if (isFatal && dies.when === 'before') die()
      const answer = await client.query(...(of as [string]))
      if (isFatal) die()
      return answer
    }
    return new Proxy(client, {
      get(target, property) {
        if (property === 'query') return query
        const value: unknown = Reflect.get(target, property, target)
        return typeof value === 'function' ? (value as () => unknown).bind(target) : value
      },
    })
  }
  return new Proxy(pool, {
    get(target, property) {
      if (property === 'connect') return async () => wrap(await target.connect())
      const value: unknown = Reflect.get(target, property, target)
      return typeof value === 'function' ? (value as () => unknown).bind(target) : value
    },
  })
}

async function main(): Promise<void> {
  const settings = JSON.parse(process.argv[2] ?? '{}') as TellingDriverSettings
  const pool = new pg.Pool({ connectionString: settings.databaseUrl, max: 8, query_timeout: 5000 })
  pool.on('error', () => {})
  const hookledger = createHookledger(
    probeOptions([subjectWorkflow()], {
      destinations: { crm: scripted() },
      entitlementChanges: { to: 'crm' },
      database: fatalPool(pool, settings),
    }),
  )
  const parts = partsOf(hookledger)
  parts.signals.on('worker.loop.failed', ({ loop, message }) => say(`failed ${loop}: ${message}`))
  await parts.register()
  const worker = await parts.worker({ loops: 1 })
  await worker.start()
  say('ready 0')
}

main().catch((error: unknown) => {
  say(`broken ${error instanceof Error ? (error.stack ?? error.message) : 'no error'}`)
  process.exit(1)
})
