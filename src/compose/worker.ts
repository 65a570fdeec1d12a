/**
 * The work role: claim loops over one scan, the sweeps of what is unfinished, and retention.
 */
import type { WorkContext } from '../inbox/work-batch.ts'
import { releaseUnasked, rescueGathers } from '../inbox/gather-net.ts'
import { createScan, type Scan } from '../inbox/scan.ts'
import { runSuspect, type RunReport } from '../inbox/run-batch.ts'
import {
  adoptDeadBatches,
  expireDeferrals,
  promoteDelayed,
  rearmRedelivered,
  rescueWaits,
  type SweepContext,
} from '../inbox/sweep.ts'
import { createGate, type Gate } from '../worker/gate.ts'
import { createLoop, type Loop } from '../worker/loop.ts'
import { emitAsked, emitEntitled, emitOutcomes } from './outcome-signals.ts'

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
  /** Tells of changed entitlements; resolves with how many were told. */
  readonly tellChanges: () => Promise<number>
}

/** Creates a worker; nothing runs before `start`. */
export function createWorker(parts: WorkerParts, options: WorkerOptions): Worker {
  // one idle loop is enough for what just came: more would only be in each other's way
  const wakeClaims = (): void => {
    const idle = claims.find((loop) => loop.isIdle())
    if (idle !== undefined) idle.wake()
    else for (const loop of claims) loop.wake()
  }
  const shared = new SharedWork(parts, options, () => {
    claims.find((loop) => loop.isIdle())?.wake()
  })
  const claims: readonly Loop[] = Array.from({ length: options.loops ?? 2 }, (_, index) =>
    claimLoop(shared, index + 1),
  )
  const suspects = suspectLoop(shared)
  const loops: readonly Loop[] = [
    sweepLoop(shared, suspects, wakeClaims),
    suspects,
    slowLoop(shared),
    tellingLoop(shared),
    ...claims,
  ]
  return {
    async start() {
      await adoptDeadBatches(parts.sweep) // before the first claim: what killed the last worker runs alone
      for (const loop of loops) loop.start()
    },
    wake: wakeClaims,
    stop: (timeoutMs) => within(timeoutMs, Promise.all(loops.map((loop) => loop.stop()))),
  }
}

/** What the loops of one worker have in common. */
class SharedWork {
  readonly parts: WorkerParts
  readonly gate: Gate = createGate()
  readonly scan: Scan
  readonly #watch: WorkerOptions['watch']

  /** `onFull` is told when a claim took as much as it may: there is more than one loop can take. */
  constructor(parts: WorkerParts, options: WorkerOptions, onFull: () => void) {
    this.parts = parts
    this.scan = createScan(parts.work, onFull)
    this.#watch = options.watch
  }

  /** Runs batches under the watchdog's eyes and tells what became of their events. */
  async batch<T extends { readonly report: RunReport }>(run: () => Promise<T>): Promise<T> {
    const { signals } = this.parts.work
    const startedAt = performance.now()
    this.#watch?.enter()
    try {
      const done = await run()
      const { settled, retried } = done.report
      if (retried.length > 0) signals.emit('inbox.events.retried', { events: retried.length })
      emitAsked(signals, done.report.asked)
      if (settled.length > 0) {
        signals.emit('inbox.batch.finished', {
          events: settled.length,
          durationMs: performance.now() - startedAt,
        })
        emitOutcomes(signals, settled)
        emitEntitled(signals, settled)
      }
      return done
    } finally {
      this.#watch?.leave()
    }
  }
}

function claimLoop(shared: SharedWork, number: number): Loop {
  const { parts, gate, scan } = shared
  return createLoop({
    name: `claim ${number}`,
    minIdleMs: 20,
    maxIdleMs: 1000,
    signals: parts.work.signals,
    turn: () => gate.shared(async () => (await shared.batch(() => scan.next())).more),
  })
}

function suspectLoop(shared: SharedWork): Loop {
  const { work } = shared.parts
  return createLoop({
    name: 'suspects',
    minIdleMs: 250,
    maxIdleMs: 2000,
    signals: work.signals,
    turn: async () => {
      if (!(await hasSuspects(work))) return false
      const { report } = await shared.gate.alone(() =>
        shared.batch(async () => ({ report: await runSuspect(work) })),
      )
      // one that asks its provider made room for the next, as one that was decided did
      return report.settled.length + report.asked.length > 0
    },
  })
}

function sweepLoop(shared: SharedWork, suspects: Loop, wakeClaims: () => void): Loop {
  const { sweep, work } = shared.parts
  return createLoop({
    name: 'sweep',
    minIdleMs: 200,
    maxIdleMs: 1000,
    signals: work.signals,
    turn: async () => {
      const ready = (await promoteDelayed(work.db)) + (await rearmRedelivered(work.db))
      const dead = await adoptDeadBatches(sweep)
      const expired = await expireDeferrals(sweep)
      if (dead > 0) suspects.wake()
      if (ready > 0) {
        shared.scan.rewind()
        wakeClaims()
      }
      return ready + expired >= 500
    },
  })
}

/** What ends by the clock is told within its longest wait. */
function tellingLoop({ parts }: SharedWork): Loop {
  return createLoop({
    name: 'entitlements',
    minIdleMs: 250,
    maxIdleMs: 1000,
    signals: parts.work.signals,
    turn: async () => (await parts.tellChanges()) > 0,
  })
}

function slowLoop({ parts }: SharedWork): Loop {
  const { db, signals } = parts.work
  return createLoop({
    name: 'upkeep',
    minIdleMs: 60_000,
    maxIdleMs: 60_000,
    signals,
    turn: async () => {
      const events = (await rescueWaits(db)) + (await rescueGathers(db))
      if (events > 0) signals.emit('inbox.wait.rescued', { events })
      await releaseUnasked(parts.work)
      await parts.upkeep()
      return false
    },
  })
}

/** Whether the work ended within a time. */
async function within(timeoutMs: number, work: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), timeoutMs)
  })
  try {
    return await Promise.race([work.then(() => true), late])
  } finally {
    clearTimeout(timer)
  }
}

async function hasSuspects(work: WorkContext): Promise<boolean> {
  const rows = await work.db.query({
    text: `select 1 from ${work.db.schema}inbox_suspects where due_at <= now() limit 1`,
  })
  return rows.length > 0
}
