/**
 * The gatherer: requests beside each other, their numbers taken before and their answers written after, in
 * transactions of their own. Nothing is locked while a provider is asked, and nothing is given up.
 */
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { reach } from '../../core/failpoints.ts'
import { describeDatabaseError } from '../../postgres/sqlstate.ts'
import { makeRequest, RequestsUnderWay } from './call.ts'
import type { GatherContext, LeasedFetch } from './gather-context.ts'
import { tellSettled } from './gather-signals.ts'
import { dueAccounts, leaseFetches } from './lease.ts'
import { Outcomes } from './outcomes.ts'
import { tellOverdue } from './overdue.ts'
import { settleFetches } from './settle.ts'

/** The gather role of one process. */
export interface Gatherer {
  start(): void
  /** Something may be due: it looks at once. */
  wake(): void
  /** Works until nothing is due or `until` (by `performance.now()`) has come. Requests in hand are finished. */
  drain(until: number): Promise<{ readonly requests: number; readonly idle: boolean }>
  /**
   * Asks at once for what these events wait for, whenever it is due, and waits for requests of others under way.
   * Resolves whether none of them waits any more.
   */
  gatherNow(keys: readonly bigint[], until: number): Promise<boolean>
  /**
   * Takes nothing more, and finishes the requests in hand; those that would take longer than `timeoutMs` are
   * ended a moment before. Resolves whether all was written.
   */
  stop(timeoutMs: number): Promise<boolean>
}

/** How an idle gatherer looks for work, in milliseconds. */
const minIdleMs = 10
const maxIdleMs = 1000
/** What may be asked within so many milliseconds is worth waiting for, for who works off what is due. */
const soonMs = 1000
/** How often overdue requests are looked for. */
const sweepEveryMs = 5000
/** Requests are ended so long before the bound of a stop that their outcomes can be written. */
const writingMs = 1500
/** How often somebody who waits for the request of another looks again. */
const lookEveryMs = 25

/** Creates a gatherer; nothing runs before `start`, `drain` or `gatherNow`. */
export function createGatherer(ctx: GatherContext): Gatherer {
  const rounds = new Rounds(ctx)
  return {
    start: () => rounds.start(),
    wake: () => rounds.wake(),
    drain: (until) => rounds.drain(until),
    gatherNow: (keys, until) => gatherNow(ctx, keys, until),
    stop: (timeoutMs) => rounds.stopWithin(timeoutMs),
  }
}

class Rounds {
  readonly #ctx: GatherContext
  readonly #requests = new RequestsUnderWay()
  readonly #outcomes = new Outcomes()
  #underWay = 0
  #after: number | undefined
  #sweptAt = performance.now()
  #stopping = false
  /** When a drain takes nothing more, by `performance.now()`. */
  #until = Number.POSITIVE_INFINITY
  #woken = true
  #interrupt: (() => void) | null = null
  #running: Promise<void> | null = null
  #failures = 0
  #ended = 0

  constructor(ctx: GatherContext) {
    this.#ctx = ctx
  }

  start(): void {
    this.#running ??= this.#run(() => false)
  }

  wake(): void {
    this.#woken = true
    this.#interrupt?.()
  }

  async drain(until: number): Promise<{ readonly requests: number; readonly idle: boolean }> {
    const before = this.#ended
    let idle = false
    this.#woken = true
    this.#until = until
    await this.#run((isIdle) => {
      idle = isIdle
      if (performance.now() >= until) this.#stopping = true
      return isIdle
    })
    this.#stopping = false
    this.#until = Number.POSITIVE_INFINITY
    return { requests: this.#ended - before, idle }
  }

  async stopWithin(timeoutMs: number): Promise<boolean> {
    const ending = setTimeout(
      () => {
        this.#requests.stop()
      },
      Math.max(timeoutMs / 2, timeoutMs - writingMs),
    )
    this.#stopping = true
    this.#interrupt?.()
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<boolean>((resolve) => {
      timer = setTimeout(() => {
        resolve(false)
      }, timeoutMs)
    })
    try {
      const running = this.#running ?? Promise.resolve()
      return await Promise.race([running.then(() => true), late])
    } finally {
      clearTimeout(ending)
      clearTimeout(timer)
      this.#running = null
    }
  }

  /** Turns, until it is stopped and empty, or `isOver` says so of one that has (or has not) nothing to do. */
  async #run(isOver: (isIdle: boolean) => boolean): Promise<void> {
    let idleMs = minIdleMs
    for (;;) {
      if (this.#stopping && this.#isEmpty()) return
      this.#woken = false
      let waitMs: number | null
      try {
        waitMs = await this.#turn()
        this.#failures = 0
      } catch (error) {
        this.#failures++
        const message = describeDatabaseError(error)
        this.#ctx.signals.emit('worker.loop.failed', { loop: 'gather', message })
        if (this.#stopping && this.#failures > 3) return
        await sleep(
          Math.min(1000, 25 * 2 ** Math.min(this.#failures, 10)) * (0.5 + Math.random() / 2),
        )
        continue
      }
      const nowEmpty = this.#isEmpty()
      const isIdle = waitMs === null || waitMs > soonMs
      if (isOver(isIdle && nowEmpty && !this.#woken)) return
      if (waitMs === 0 || this.#woken || !this.#outcomes.isEmpty || (this.#stopping && nowEmpty)) {
        idleMs = minIdleMs
        continue
      }
      const pauseMs = Math.min(waitMs ?? idleMs, maxIdleMs) * (0.75 + Math.random() / 2)
      const leftMs = this.#until - performance.now()
      await this.#idle(leftMs > 0 ? Math.min(pauseMs, leftMs) : pauseMs)
      if (this.#woken || !this.#outcomes.isEmpty) idleMs = minIdleMs
      else idleMs = Math.min(maxIdleMs, idleMs * 2)
    }
  }

  /** One look: answers 0 for more at once, null for the usual pause, else milliseconds. */
  async #turn(): Promise<number | null> {
    // answers of the same turn of the loop come together
    await nextTurn()
    await this.#settle()
    await this.#sweep()
    const most = this.#stopping ? 0 : this.#ctx.settings.concurrency - this.#underWay
    if (most <= 0) return this.#outcomes.isEmpty ? maxIdleMs : 0
    const due = await dueAccounts(this.#ctx)
    if (!due.some(({ dueInMs }) => dueInMs <= 0)) {
      const waits = due.map(({ dueInMs }) => dueInMs)
      return waits.length === 0 ? null : Math.max(1, Math.min(...waits))
    }
    const lease = await leaseFetches(this.#ctx, { most, after: this.#after })
    this.#after = lease.leased.at(-1)?.sourceId ?? this.#after
    await this.#begin(lease.leased)
    if (lease.leased.length === 0) return lease.waitMs === 0 ? null : lease.waitMs
    return lease.leased.length < most ? lease.waitMs : maxIdleMs
  }

  async #settle(): Promise<void> {
    const written = await this.#outcomes.write(this.#ctx)
    if (written === null) return
    this.#ended += written.requests
    tellSettled(this.#ctx.signals, written.report)
  }

  #isEmpty(): boolean {
    return this.#underWay === 0 && this.#outcomes.isEmpty
  }

  async #sweep(): Promise<void> {
    const now = performance.now()
    if (this.#stopping || now - this.#sweptAt < sweepEveryMs) return
    this.#sweptAt = now
    await tellOverdue(this.#ctx)
  }

  async #begin(leased: readonly LeasedFetch[]): Promise<void> {
    if (leased.length === 0) return
    this.#underWay += leased.length
    await atStep('G2')
    for (const fetch of leased) {
      void makeRequest(this.#ctx, fetch, this.#requests).then(async (outcome) => {
        await atStep('G3')
        this.#underWay--
        this.#outcomes.add({ fetch, outcome })
        this.#interrupt?.()
      })
    }
  }

  #idle(ms: number): Promise<void> {
    if (!this.#outcomes.isEmpty || this.#woken) return Promise.resolve()
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer)
        this.#interrupt = null
        resolve()
      }
      const timer = setTimeout(done, ms)
      this.#interrupt = done
    })
  }
}

/** A step between two transactions: what is thrown there is the planner's own business. */
async function atStep(step: 'G2' | 'G3'): Promise<void> {
  try {
    await reach(step)
  } catch {
    // there is no transaction to be rolled back: the request goes its way
  }
}

async function gatherNow(
  ctx: GatherContext,
  keys: readonly bigint[],
  until: number,
): Promise<boolean> {
  const requests = new RequestsUnderWay()
  const stop = setTimeout(
    () => {
      requests.stop()
    },
    Math.max(1, until - performance.now()),
  )
  try {
    for (;;) {
      if (!(await isWaiting(ctx, keys))) return true
      if (performance.now() >= until) return false
      const { leased, waitMs } = await leaseFetches(ctx, {
        most: ctx.settings.concurrency,
        only: keys,
      })
      if (leased.length === 0) {
        const left = until - performance.now()
        await sleep(Math.max(1, Math.min(left, Math.max(lookEveryMs, waitMs ?? 0), 250)))
        continue
      }
      await atStep('G2')
      const finished = await Promise.all(
        leased.map(async (fetch) => ({ fetch, outcome: await makeRequest(ctx, fetch, requests) })),
      )
      await atStep('G3')
      tellSettled(ctx.signals, await settleFetches(ctx, finished))
      // a provider that does not answer now is the usual gatherer's to ask again
      if (finished.some(({ outcome }) => outcome.kind === 'failed'))
        return !(await isWaiting(ctx, keys))
    }
  } finally {
    clearTimeout(stop)
  }
}

async function isWaiting({ db }: GatherContext, keys: readonly bigint[]): Promise<boolean> {
  const rows = await db.query({
    text: `select 1 from ${db.schema}inbox_gathers where event_key = any ($1::bigint[]) and waiting limit 1`,
    values: [keys.map(String)],
  })
  return rows.length > 0
}
