/**
 * Sends what was committed: one lane for each destination, in this process and beside any number of others.
 * The order in which they run, die or come back changes nothing about what is sent.
 */
import { randomBytes } from 'node:crypto'
import type { Signals } from '../core/signals.ts'
import type { Tracing } from '../core/tracing.ts'
import type { Database } from '../postgres/executor.ts'
import { describeDatabaseError } from '../postgres/sqlstate.ts'
import { Lane } from './lane.ts'
import type { Destinations } from './outbox-port.ts'
import type { FindingsPort, WakePort } from './ports.ts'
import { wakeOrders } from './wakes.ts'

/** What a dispatcher needs. */
export interface DispatcherOptions {
  readonly db: Database
  readonly destinations: Destinations
  readonly findings: FindingsPort
  readonly wakes: WakePort
  readonly signals: Signals
  /** How long a transaction waits for another dispatcher's, in milliseconds. */
  readonly lockTimeoutMs: number
  /** Operations leased or settled in one transaction at most. */
  readonly batch: number
  /** Absent or null: traces are off. */
  readonly tracing?: Tracing | null
}

/** The dispatch role of one process. */
export interface Dispatcher {
  start(): void
  /** Looks for work at once: at these destinations, or at all of them. */
  wake(destinations?: readonly string[]): void
  /** Works until nothing is due or `until` (by `performance.now()`) has come. Calls in hand are finished. */
  drain(until: number): Promise<{ readonly operations: number; readonly idle: boolean }>
  /**
   * Takes nothing more, and finishes the calls in hand; those that would take longer than `timeoutMs` are
   * ended a moment before, so that what is known of them is written. Resolves whether all of it was.
   */
  stop(timeoutMs: number): Promise<boolean>
}

/** Calls are ended so long before the bound of a stop that their results can be written, in milliseconds. */
const writingMs = 1500

/** Creates a dispatcher; nothing runs before `start` or `drain`. */
export function createDispatcher(options: DispatcherOptions): Dispatcher {
  const { signals } = options
  const dispatcher = `dispatcher:${process.pid}:${randomBytes(4).toString('hex')}`
  const waker = createWaker(options)
  const lanes = new Map(
    [...options.destinations].map(([name, destination]) => [
      name,
      new Lane(
        {
          db: options.db,
          name,
          destination,
          findings: options.findings,
          signals,
          dispatcher,
          batch: options.batch,
          lockTimeoutMs: options.lockTimeoutMs,
          tracing: options.tracing ?? null,
        },
        {
          ended: () => {
            waker.wake()
          },
          failed: (error) => {
            signals.emit('worker.loop.failed', {
              loop: `dispatch ${name}`,
              message: describeDatabaseError(error),
            })
          },
        },
      ),
    ]),
  )
  const all = [...lanes.values()]
  return {
    start() {
      for (const lane of all) lane.start()
      waker.start()
    },
    wake(names) {
      if (names === undefined) for (const lane of all) lane.wake()
      else for (const name of names) lanes.get(name)?.wake()
    },
    async drain(until) {
      const before = all.reduce((sum, lane) => sum + lane.ended, 0)
      const idle = await Promise.all(all.map((lane) => lane.drain(until)))
      await waker.once()
      const operations = all.reduce((sum, lane) => sum + lane.ended, 0) - before
      return { operations, idle: idle.every(Boolean) }
    },
    async stop(timeoutMs) {
      const ending = setTimeout(
        () => {
          for (const lane of all) lane.abort()
        },
        Math.max(timeoutMs / 2, timeoutMs - writingMs),
      )
      try {
        return await within(
          timeoutMs,
          Promise.all(all.map((lane) => lane.stop())).then(() => waker.stop()),
        )
      } finally {
        clearTimeout(ending)
      }
    },
  }
}

interface Waker {
  start(): void
  wake(): void
  once(): Promise<void>
  stop(): Promise<void>
}

/** Looks after wakes: at once when an operation ended here, and now and then for those of others. */
function createWaker({ db, wakes, lockTimeoutMs, signals }: DispatcherOptions): Waker {
  let stopped = false
  let woken = false
  let interrupt: (() => void) | null = null
  let running: Promise<void> | null = null

  const once = async (): Promise<boolean> => {
    let left = false
    for (let more = true; more;) {
      const report = await wakeOrders(db, wakes, lockTimeoutMs)
      more = report.more && report.done > 0
      left = report.more
    }
    return left
  }
  const run = async (): Promise<void> => {
    let waitMs = 20
    while (!stopped) {
      woken = false
      try {
        await once()
      } catch (error) {
        signals.emit('worker.loop.failed', {
          loop: 'outbox wakes',
          message: describeDatabaseError(error),
        })
        waitMs = 1000
      }
      if (woken || stopped) continue
      await new Promise<void>((resolve) => {
        const done = (): void => {
          clearTimeout(timer)
          interrupt = null
          resolve()
        }
        const timer = setTimeout(done, waitMs * (0.75 + Math.random() / 2))
        interrupt = done
      })
      waitMs = woken ? 20 : Math.min(1000, waitMs * 2)
    }
  }
  return {
    start() {
      stopped = false
      running ??= run()
    },
    wake() {
      woken = true
      interrupt?.()
    },
    async once() {
      await once()
    },
    async stop() {
      stopped = true
      interrupt?.()
      await running
      running = null
      // what ended while the lanes stopped: if it fails, the next dispatcher does it
      await once().catch(() => {})
    },
  }
}

/** Whether the work ended within a time. */
async function within(timeoutMs: number, work: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => {
      resolve(false)
    }, timeoutMs)
  })
  try {
    return await Promise.race([work.then(() => true), late])
  } finally {
    clearTimeout(timer)
  }
}
