/**
 * The way one process goes round the ready list. A scan starts after the last key it looked at and
 * wraps at the end, at least once a second: events left behind are looked at again soon, and never
 * stand in the way of those after them. The position doubles as a low-water hint, so that a pinned
 * horizon's dead rows are not read again and again.
 */
import type { WorkContext } from './work-batch.ts'
import { runBatch, runCooled, type RunReport } from './run-batch.ts'

/** How long an event that had to wait for somebody is not tried again, in milliseconds: at first, and at most. */
const firstCoolingMs = 250
const maxCoolingMs = 4000
const wrapMs = 1000

interface Cooling {
  readonly delayMs: number
  untilMs: number
}

/** A scan over the ready list, shared by the claim loops of a process. */
export interface Scan {
  /** Claims and runs the next batch. `more` says whether to go on at once. */
  next(): Promise<{ readonly more: boolean; readonly report: RunReport }>
  /** Starts over at the oldest event: something older may have become ready. */
  rewind(): void
}

/**
 * Creates a scan at the beginning of the list. `onFull` is told while a batch runs that took as many
 * events as it may: there may be work for another loop.
 */
export function createScan(ctx: WorkContext, onFull: () => void = () => {}): Scan {
  let after = -1n
  let wrappedAt = performance.now()
  const cooling = new Map<bigint, Cooling>()

  const cool = (key: bigint, delayMs: number): void => {
    cooling.set(key, { delayMs, untilMs: performance.now() + delayMs * (1 + Math.random() / 2) })
  }

  /** One event that had to wait is tried alone: in a batch it would make all of it wait. */
  const retryCooled = async (): Promise<RunReport | null> => {
    const now = performance.now()
    const [key, state] = [...cooling].find(([, each]) => each.untilMs <= now) ?? []
    if (key === undefined || state === undefined) return null
    state.untilMs = Number.POSITIVE_INFINITY // no other loop takes it meanwhile
    try {
      const report = await runCooled(ctx, key)
      if (report.cooling.length > 0) cool(key, Math.min(maxCoolingMs, state.delayMs * 2))
      else cooling.clear() // somebody let go: whatever else waited for him may go
      return report
    } catch (error) {
      cool(key, state.delayMs)
      throw error
    }
  }

  return {
    rewind() {
      after = -1n
    },
    async next() {
      const cooled = await retryCooled()
      const now = performance.now()
      if (now - wrappedAt > wrapMs) {
        after = -1n
        wrappedAt = now
      }
      const from = after
      const report = await runBatch(
        ctx,
        { kind: 'next', after: from, limit: ctx.limits.workBatch, except: [...cooling.keys()] },
        (keys) => {
          // other loops of this process go on after what this one has claimed
          const last = keys.at(-1)
          if (last !== undefined && last > after) after = last
          if (keys.length >= ctx.limits.workBatch) onFull()
        },
      )
      for (const key of report.cooling) cool(key, firstCoolingMs)
      if (cooled !== null) {
        report.settled.push(...cooled.settled)
        report.retried.push(...cooled.retried)
        report.asked.push(...cooled.asked)
      }
      const full = report.claimed.length >= ctx.limits.workBatch
      if (!full && after !== -1n) {
        after = -1n
        wrappedAt = now
        // the part before the start of this claim has not been looked at in this round
        if (from !== -1n) return { more: true, report }
      }
      return { more: full || report.settled.length > 0, report }
    },
  }
}
