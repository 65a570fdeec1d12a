/**
 * The dispatcher of one destination: rounds one after the other, calls beside each other. Results gather
 * while a round is under way and go into the next one; there is no timer between a result and its round. A
 * slow destination fills its own lane and no other.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { reach } from '../core/failpoints.ts'
import { callDestination, CallsUnderWay, notCalled } from './call.ts'
import type { DispatchContext, FinishedAttempt, LeasedOperation } from './dispatch-context.ts'
import type { AttemptOutcome } from './next-step.ts'
import { tellRound } from './outbox-signals.ts'
import { isAnythingDue, runRound } from './round.ts'
import type { RoundReport } from './round-report.ts'
import { tracedCalls } from './traced-calls.ts'

/** How an idle lane looks for work, in milliseconds. */
const minIdleMs = 10
const maxIdleMs = 1000
/** How often leases that ran out are looked for, and everything that is due instead of what is next. */
const sweepEveryMs = 1000
/** Rounds that take the longer way after one that found nothing new among what is due. */
const longerRounds = 20

/** What a lane tells its dispatcher. */
export interface LaneEvents {
  /** Operations with an order ended. */
  readonly ended: () => void
  readonly failed: (error: unknown) => void
}

/** A destination at work. */
export class Lane {
  readonly #ctx: DispatchContext
  readonly #events: LaneEvents
  readonly #calls = new CallsUnderWay()
  #finished: FinishedAttempt[] = []
  #underWay = 0
  #from = '-infinity'
  /** Rounds that take the longer way, since what is due is not new. */
  #longer = 0
  #sweptAt = Number.NEGATIVE_INFINITY
  #stopping = false
  #woken = true
  #interrupt: (() => void) | null = null
  #running: Promise<void> | null = null
  #failures = 0
  #ended = 0

  constructor(ctx: DispatchContext, events: LaneEvents) {
    this.#ctx = ctx
    this.#events = events
  }

  /** Operations that ended here so far. */
  get ended(): number {
    return this.#ended
  }

  start(): void {
    this.#running ??= this.#run(() => false)
  }

  /** Something may be due: it looks at once. */
  wake(): void {
    this.#woken = true
    this.#interrupt?.()
  }

  /** Works until nothing is due, or the time has come; what is in hand is finished. Resolves whether nothing was due. */
  async drain(until: number): Promise<boolean> {
    let idle = false
    this.#woken = true
    await this.#run((isIdle) => {
      idle = isIdle
      if (performance.now() >= until) this.#stopping = true
      return isIdle
    })
    this.#stopping = false
    return idle
  }

  /** Takes nothing more; resolves when what is in hand is finished and written. */
  async stop(): Promise<void> {
    this.#stopping = true
    this.#interrupt?.()
    await this.#running
    this.#running = null
  }

  /** Ends the calls that are under way: nobody knows then what came of them. */
  abort(): void {
    this.#calls.stop()
  }

  /** Rounds, until it is stopped and empty, or `isOver` says so of a lane that has (or has not) nothing to do. */
  async #run(isOver: (isIdle: boolean) => boolean): Promise<void> {
    let idleMs = minIdleMs
    for (;;) {
      const isEmpty = this.#underWay === 0 && this.#finished.length === 0
      if (this.#stopping && isEmpty) return
      const isAwake = this.#woken
      this.#woken = false
      let waitMs: number | null
      try {
        waitMs = await this.#turn(isAwake)
        this.#failures = 0
      } catch (error) {
        this.#failures++
        this.#events.failed(error)
        const pauseMs = Math.min(1000, 25 * 2 ** Math.min(this.#failures, 10))
        await pause(pauseMs * (0.5 + Math.random() / 2))
        continue
      }
      const nowEmpty = this.#underWay === 0 && this.#finished.length === 0
      if (isOver(waitMs !== 0 && nowEmpty && !this.#woken)) return
      if (waitMs === 0 || this.#woken || this.#finished.length > 0) {
        idleMs = minIdleMs
        continue
      }
      await this.#idle(Math.min(waitMs ?? idleMs, maxIdleMs) * (0.75 + Math.random() / 2))
      if (this.#woken || this.#finished.length > 0) idleMs = minIdleMs
      else idleMs = Math.min(maxIdleMs, idleMs * 2)
    }
  }

  /** One look: answers 0 for more at once, null for the usual pause, else milliseconds. */
  async #turn(isAwake: boolean): Promise<number | null> {
    // results of the same turn of the loop come together
    await nextTurn()
    const finished = this.#finished
    this.#finished = []
    const wanted = this.#stopping
      ? 0
      : Math.max(0, this.#ctx.destination.contract.concurrency - this.#underWay)
    if (finished.length === 0) {
      if (wanted === 0) return null
      if (!isAwake && !(await isAnythingDue(this.#ctx))) return null
    }
    const now = performance.now()
    const sweeps = now - this.#sweptAt >= sweepEveryMs
    if (sweeps) this.#from = '-infinity'
    let report: RoundReport
    try {
      const others = this.#longer > 0
      report = await runRound(this.#ctx, { finished, wanted, sweeps, from: this.#from, others })
    } catch (error) {
      this.#finished = [...finished, ...this.#finished]
      throw error
    }
    if (sweeps) this.#sweptAt = now
    // where new ones are rare among what is due, looking for them first is in vain
    if (report.others) this.#longer = report.leased.length === 0 ? longerRounds : 1
    else if (this.#longer > 0) this.#longer--
    this.#take(report)
    await this.#begin(report.leased)
    if (report.more || report.others) return 0
    if (this.#from !== '-infinity' && report.leased.length === 0) {
      this.#from = '-infinity' // what became due meanwhile may stand before where it looked
      return 0
    }
    return report.waitMs
  }

  #take(report: RoundReport): void {
    if (report.until !== null) this.#from = report.until
    const told = tellRound(this.#ctx, report)
    this.#ended += told.ended
    if (told.withOrder > 0) this.#events.ended()
  }

  async #begin(leased: readonly LeasedOperation[]): Promise<void> {
    if (leased.length === 0) return
    this.#underWay += leased.length
    try {
      await reach('D0')
    } catch (error) {
      const text = error instanceof Error ? error.message : 'a step failed'
      for (const operation of leased) this.#end(operation, notCalled(operation.kind, text))
      return
    }
    const { tracing } = this.#ctx
    const call = tracing == null ? null : await tracedCalls(tracing, this.#ctx, leased)
    for (const operation of leased) {
      const calling = (): Promise<AttemptOutcome> =>
        callDestination(this.#ctx.destination, operation, this.#calls)
      void (call === null ? calling() : call(operation, calling)).then((outcome) => {
        this.#end(operation, outcome)
      })
    }
  }

  #end(operation: LeasedOperation, outcome: FinishedAttempt['outcome']): void {
    this.#underWay--
    this.#finished.push({ operation, outcome, finishedAt: performance.now() })
    this.#interrupt?.()
  }

  #idle(ms: number): Promise<void> {
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

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms)
  })
}
