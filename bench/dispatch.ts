/**
 * `dispatch`: a queue of operations, each one call to a destination in a process of its own that takes
 * 5 ms, and a row of how it ended; by Hookledger's dispatcher and by job queues that make the same call.
 * `vs_best` is against those that record what Hookledger records: how a call ended and that it need not be
 * made again, when it has ended. Told beside them are two that end the jobs of a batch, or also write their
 * results, at the batch's end: whoever kills such a worker has every call of the batch made again.
 */
import { fork, type ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { pickBest, poolSize, ratioOf, runContest } from './contest.ts'
import type { BenchDestination } from './contestants/dispatch-call.ts'
import { dispatchGraphileWorker } from './contestants/dispatch-graphile-worker.ts'
import { dispatchHookledger } from './contestants/dispatch-hookledger.ts'
import type { Contestant } from './contestants/contestant.ts'
import { dispatchPgBoss, type DispatchPgBossOptions } from './contestants/dispatch-pg-boss.ts'
import type { BenchContext, Report } from './report.ts'

/** What the destination is declared to take at once; the others are tried with as much. */
const callsAtOnce = 100

const pgBossSettings: readonly Omit<DispatchPgBossOptions, 'records'>[] = [
  { loops: 2, batch: 50, width: 10 },
  { loops: 2, batch: 50, width: 50 },
  { loops: 2, batch: 200, width: 50 },
  { loops: 4, batch: 100, width: 25 },
]

/** Runs the comparison. */
export async function benchDispatch({ server, options, log }: BenchContext): Promise<Report> {
  const child = fork(fileURLToPath(new URL('dispatch-destination.js', import.meta.url)))
  try {
    const destination = await startedDestination(child)
    const trial = Math.ceil(options.events / 5)
    log('choosing the best settings of the others')
    const graphile = await pickBest(
      server,
      [10, 20, 50, 100].map((concurrency) => dispatchGraphileWorker(destination, concurrency)),
      trial,
    )
    const bossOf = (...ways: readonly DispatchPgBossOptions['records'][]): Promise<Contestant> =>
      pickBest(
        server,
        ways.flatMap((records) =>
          pgBossSettings.map((settings) => dispatchPgBoss(destination, { ...settings, records })),
        ),
        trial,
      )
    const boss = await bossOf('transaction', 'each')
    const ending = await bossOf('each_then_batch')
    const batched = await bossOf('batch')
    const results = await runContest(
      server,
      [dispatchHookledger(destination, callsAtOnce), graphile, boss, ending, batched].map(
        (contestant) => ({ contestant, events: options.events }),
      ),
      options.rounds,
      log,
    )
    const ratios = {
      vs_graphile_worker: ratioOf(results, 'hookledger', graphile.name),
      vs_pg_boss: ratioOf(results, 'hookledger', boss.name),
    }
    return {
      bench: 'dispatch',
      unit: 'operations/s',
      conditions: { pool: String(poolSize), destination: 'its own process, 5 ms a call' },
      results: [...results.values()].map((each) => ({ ...each, median: Math.round(each.median) })),
      ratios: {
        vs_best: Math.min(...Object.values(ratios)),
        ...ratios,
        vs_pg_boss_ends_by_batch: ratioOf(results, 'hookledger', ending.name),
        vs_pg_boss_batched: ratioOf(results, 'hookledger', batched.name),
      },
      floors: { vs_best: 2 },
    }
  } finally {
    await ended(child)
  }
}

function startedDestination(child: ChildProcess): Promise<BenchDestination> {
  return new Promise((resolve, reject) => {
    child.once('exit', () => reject(new Error('the destination ended before it listened')))
    child.once('message', (message) => {
      const { port } = message as { readonly port: number }
      resolve({ origin: `http://127.0.0.1:${port}`, counts: () => countsOf(child) })
    })
  })
}

function countsOf(child: ChildProcess): ReturnType<BenchDestination['counts']> {
  return new Promise((resolve) => {
    child.once('message', (message) =>
      resolve((message as { counts: { calls: number; operations: number } }).counts),
    )
    child.send({})
  })
}

async function ended(child: ChildProcess): Promise<void> {
  const exited = new Promise((resolve) => child.once('exit', resolve))
  if (!child.connected) return
  child.disconnect()
  await exited
}
