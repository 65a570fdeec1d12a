/**
 * One pass of `reconcile` in a process of its own, so that its memory is its own: told the database and
 * the provider, it tells the records, the time, and how much was alive on its heap at the most.
 */
import { partsOf } from '../src/hookledger.ts'
import { reconcileHookledger } from './reconcile-license.ts'
import { createBenchPool } from './server.ts'

/** What a pass came to. */
export interface MeasuredPass {
  readonly complete: boolean
  readonly error: string | null
  readonly records: number
  readonly pages: number
  readonly injected: number
  readonly opened: number
  readonly seconds: number
  /** Alive after a collection, at the most, in MiB, beyond what was alive before the pass. */
  readonly heapMb: number
}

const [databaseUrl = '', schema = '', apiBase = ''] = process.argv.slice(2)
const mebibyte = 1024 * 1024

function alive(): number {
  globalThis.gc?.()
  return process.memoryUsage().heapUsed
}

async function measure(): Promise<MeasuredPass> {
  const pool = createBenchPool(databaseUrl, 8)
  const parts = partsOf(reconcileHookledger(pool, schema, apiBase))
  await parts.register()
  const reconciler = await parts.reconciler()
  const before = alive()
  let most = before
  const watch = setInterval(() => (most = Math.max(most, alive())), 250)
  const startedAt = performance.now()
  const report = await reconciler.pass({ how: 'manual', actor: 'bench' })
  const seconds = (performance.now() - startedAt) / 1000
  clearInterval(watch)
  await pool.end()
  const kinds = report.runs.flatMap(({ coverage }) => Object.values(coverage))
  const sum = (of: (kind: (typeof kinds)[number]) => number): number =>
    kinds.reduce((total, kind) => total + of(kind), 0)
  return {
    complete: report.complete,
    error: report.runs.map(({ error }) => error).find((error) => error !== null) ?? null,
    records: sum(({ records }) => records),
    pages: sum(({ pages }) => pages),
    injected: sum(({ injected }) => injected),
    opened: report.runs.reduce((total, { opened }) => total + opened, 0),
    seconds,
    heapMb: (most - before) / mebibyte,
  }
}

process.send?.(await measure())
process.disconnect()
