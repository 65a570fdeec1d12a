/**
 * Replay of many: the number that matches comes first, then chunks, each a transaction of its own, so
 * that workers go on beside it and an interruption leaves nothing half done.
 */
import type { Database } from '../postgres/executor.ts'
import { countFinal, countIn, nextKeys, type ReplayFilter } from './replay-lookup.ts'
import { replayableTables, replayKeys, type ReplayableState, type ReplayReason } from './replay.ts'

/** How many events match, by where they are. */
export interface ReplayPlan {
  readonly states: readonly ReplayableState[]
  readonly matched: Readonly<Partial<Record<ReplayableState, number>>>
  /** Events that fit and have their final decision: nothing will be done about them. */
  readonly recorded: number
}

/** What a replay of many did; the keys are what `--json` prints. */
export interface ReplayReport {
  readonly replayed: number
  readonly recorded: number
  /** Without a body: `payload expired`. */
  readonly expired: number
  /** In a worker's hands, or finished meanwhile. */
  readonly busy: number
}

const chunk = 500

/** Counts what a replay would touch. */
export async function planReplay(
  db: Database,
  filter: ReplayFilter,
  states: readonly ReplayableState[],
): Promise<ReplayPlan> {
  const matched: Partial<Record<ReplayableState, number>> = {}
  for (const state of states) matched[state] = await countIn(db, replayableTables[state], filter)
  return { states, matched, recorded: await countFinal(db, filter) }
}

/** Replays what matches. `signal` stops it between two chunks; `onProgress` is told after each. */
export async function replayMany(
  db: Database,
  filter: ReplayFilter,
  plan: ReplayPlan,
  by: ReplayReason,
  control: {
    readonly signal?: AbortSignal
    readonly onProgress?: (report: ReplayReport) => void
  } = {},
): Promise<ReplayReport> {
  const report = { replayed: 0, recorded: plan.recorded, expired: 0, busy: 0 }
  for (const state of plan.states) {
    let after = '0'
    for (;;) {
      if (control.signal?.aborted === true) return report
      const keys = await nextKeys(db, replayableTables[state], filter, after, chunk)
      const last = keys.at(-1)
      if (last === undefined) break
      after = last
      const done = await replayKeys(db, state, keys, by)
      report.replayed += done.replayed.length
      report.expired += done.expired
      report.busy += done.busy
      control.onProgress?.(report)
    }
  }
  return report
}
