/**
 * The work role: claim loops over one scan, the sweeps of what is unfinished, and retention.
 */
import type { WorkContext } from '../inbox/work-batch.ts'
import { createScan } from '../inbox/scan.ts'
import { runSuspect } from '../inbox/run-batch.ts'
import type { Settled } from '../inbox/outcome-parts.ts'
import {
  adoptDeadBatches,
  expireDeferrals,
  promoteDelayed,
  rearmRedelivered,
  rescueWaits,
  type SweepContext,
} from '../inbox/sweep.ts'
import { createGate } from '../worker/gate.ts'
import { createLoop, type Loop } from '../worker/loop.ts'
import { emitOutcomes } from './outcome-signals.ts'

/** How a worker runs. */
export interface WorkerOptions {
  /** Claim loops side by side. Default 2. */
  readonly loops?: number
  /** Told when a batch begins and ends: a watchdog's view of the event loop. */
  readonly watch?: { enter(): void; leave(): void }
}

/** The background work of one process. */
export interface Worker {
  start(): Promise<void>
  /** Wakes the claim loops: something became ready in this process. */
  wake(): void
  /** Finishes what is in hand within `timeoutMs`; resolves whether it did. */
  stop(timeoutMs: number): Promise<boolean>
}

/** What the worker needs of the composition root. */
export interface WorkerParts {
  readonly work: WorkContext
  readonly sweep: SweepContext
  /** Partitions, retention: run now and then. */
  readonly upkeep: () => Promise<void>
  /** Re-reads whether this worker is the newest. */
  readonly refreshNewest: () => Promise<void>
}

/** Creates a worker; nothing runs before `start`. */
export function createWorker(parts: WorkerParts, options: WorkerOptions): Worker {
  const { work, sweep } = parts
  const { db, signals } = work
  const gate = createGate()
  const scan = createScan(work)
  const watched = async <T>(run: () => Promise<T>): Promise<T> => {
    options.watch?.enter()
    try {
      return await run()
    } finally {
      options.watch?.leave()
    }
  }
  const finished = (settled: readonly Settled[], startedAt: number): void => {
    if (settled.length === 0) return
    signals.emit('inbox.batch.finished', { events: settled.length, durationMs: performance.now() - startedAt })
    emitOutcomes(signals, settled)
  }
  const claims = Array.from({ length: options.loops ?? 2 }, (_, index) =>
    createLoop({
      name: `claim ${index + 1}`,
      minIdleMs: 20,
      maxIdleMs: 1000,
      signals,
      turn: () =>
        gate.shared(() =>
          watched(async () => {
            const startedAt = performance.now()
            const { more, report } = await scan.next()
            finished(report.settled, startedAt)
            return more
          }),
        ),
    }),
  )
  const wakeClaims = (): void => {
    for (const loop of claims) loop.wake()
  }
  const suspects = createLoop({
    name: 'suspects',
    minIdleMs: 250,
    maxIdleMs: 2000,
    signals,
    turn: async () => {
      if (!(await hasSuspects(work))) return false
      return gate.alone(() =>
        watched(async () => {
          const startedAt = performance.now()
          const report = await runSuspect(work)
          finished(report.settled, startedAt)
          return report.settled.length > 0
        }),
      )
    },
  })
  const sweeps = createLoop({
    name: 'sweep',
    minIdleMs: 200,
    maxIdleMs: 1000,
    signals,
    turn: async () => {
      const ready = (await promoteDelayed(db)) + (await rearmRedelivered(db))
      const dead = await adoptDeadBatches(sweep)
      const expired = await expireDeferrals(sweep)
      if (dead > 0) suspects.wake()
      if (ready > 0) {
        scan.rewind()
        wakeClaims()
      }
      return ready + expired >= 500
    },
  })
  const slow = createLoop({
    name: 'upkeep',
    minIdleMs: 60_000,
    maxIdleMs: 60_000,
    signals,
    turn: async () => {
      await parts.refreshNewest()
      const events = await rescueWaits(db)
      if (events > 0) signals.emit('inbox.wait.rescued', { events })
      await parts.upkeep()
      return false
    },
  })
  const loops: readonly Loop[] = [sweeps, suspects, slow, ...claims]
  return {
    async start() {
      await adoptDeadBatches(sweep) // before the first claim: what killed the last worker runs alone
      for (const loop of loops) loop.start()
    },
    wake: wakeClaims,
    async stop(timeoutMs) {
      const stopped = Promise.all(loops.map((loop) => loop.stop())).then(() => true)
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<boolean>((resolve) => {
        timer = setTimeout(() => resolve(false), timeoutMs)
      })
      try {
        return await Promise.race([stopped, late])
      } finally {
        clearTimeout(timer)
      }
    },
  }
}

async function hasSuspects(work: WorkContext): Promise<boolean> {
  const rows = await work.db.query({ text: `select 1 from ${work.db.schema}inbox_suspects where due_at <= now() limit 1` })
  return rows.length > 0
}
