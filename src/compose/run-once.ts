/** Work within a budget, for hosts with no long-lived worker: decides, sends, and looks after retention. */
import type { Limits } from '../core/limits.ts'
import type { Signals } from '../core/signals.ts'
import type { Gatherer } from '../inbox/gather/gatherer.ts'
import { runSuspect } from '../inbox/run-batch.ts'
import { createScan } from '../inbox/scan.ts'
import { sweepOnce, type SweepContext } from '../inbox/sweep.ts'
import type { WorkContext } from '../inbox/work-batch.ts'
import type { Dispatcher } from '../outbox/dispatcher.ts'
import type { Database } from '../postgres/executor.ts'
import { describeDatabaseError } from '../postgres/sqlstate.ts'
import { emitAsked, emitEntitled, emitOutcomes } from './outcome-signals.ts'
import { runUpkeep } from './upkeep.ts'

/** What `runOnce` came to. */
export interface RunOnceResult {
  /** Events that were decided. */
  readonly events: number
  /** Operations that ended. */
  readonly operations: number
  /** True when nothing was left to do, false when the budget ended first. */
  readonly idle: boolean
}

/** What it works with. */
export interface RunOnceParts {
  readonly db: Database
  readonly work: WorkContext
  readonly sweep: SweepContext
  readonly dispatcher: Dispatcher
  /** Null where no workflow asks a provider. */
  readonly gatherer: Gatherer | null
  readonly limits: Limits
  readonly signals: Signals
  /** Tells of changed entitlements; resolves with how many were told. */
  readonly tellChanges: () => Promise<number>
}

/** How often such a host looks after retention, in milliseconds. */
const upkeepEveryMs = 3_600_000

/** Work within a budget; remembers when it last looked after retention. */
export class RunOnce {
  #upkeptAt: number | undefined

  /** Works until nothing is due or `until` (by `performance.now()`) has come. */
  async run(parts: RunOnceParts, until: number): Promise<RunOnceResult> {
    await sweepOnce(parts.sweep)
    let events = 0
    let operations = 0
    // what was decided may have to be sent, and what was sent may let a waiting event be decided
    for (let more = true; more;) {
      const decided = await decideUntil(parts, until)
      events += decided.events
      if (!decided.idle) return { events, operations, idle: false }
      while ((await parts.tellChanges()) > 0)
        if (performance.now() >= until) return { events, operations, idle: false }
      const gathered = await parts.gatherer?.drain(until)
      if (gathered?.idle === false) return { events, operations, idle: false }
      // what was answered can be decided
      if (gathered !== undefined && gathered.requests > 0) continue
      const dispatched = await parts.dispatcher.drain(until)
      operations += dispatched.operations
      if (!dispatched.idle) return { events, operations, idle: false }
      more = dispatched.operations > 0
    }
    await this.#upkeep(parts)
    return { events, operations, idle: true }
  }

  /** A host without a long-lived worker still needs partitions ahead and retention, now and then. */
  async #upkeep({ db, limits, signals }: RunOnceParts): Promise<void> {
    const now = performance.now()
    if (this.#upkeptAt !== undefined && now - this.#upkeptAt < upkeepEveryMs) return
    this.#upkeptAt = now
    try {
      await runUpkeep(db, limits)
    } catch (error) {
      // the events are decided: somebody in the way of a partition must not look like a failure of theirs
      signals.emit('worker.loop.failed', { loop: 'upkeep', message: describeDatabaseError(error) })
    }
  }
}

/** Decides until nothing is ready or `until` (by `performance.now()`) has come. */
export async function decideUntil(
  { work, signals }: Pick<RunOnceParts, 'work' | 'signals'>,
  until: number,
): Promise<{ readonly events: number; readonly idle: boolean }> {
  const scan = createScan(work)
  let events = 0
  for (let more = true; more;) {
    if (performance.now() >= until) return { events, idle: false }
    const next = await scan.next()
    const suspect = next.more ? null : await runSuspect(work)
    const settled = [...next.report.settled, ...(suspect?.settled ?? [])]
    emitOutcomes(signals, settled)
    emitEntitled(signals, settled)
    emitAsked(signals, [...next.report.asked, ...(suspect?.asked ?? [])])
    events += settled.length
    more = next.more || (suspect !== null && suspect.settled.length > 0)
  }
  return { events, idle: true }
}

/** The same, and asks for what they wait for on the way. */
export async function decideGathering(
  parts: Pick<RunOnceParts, 'work' | 'signals' | 'gatherer'>,
  until: number,
): Promise<void> {
  for (let more = true; more;) {
    await decideUntil(parts, until)
    const gathered = await parts.gatherer?.drain(until)
    more = gathered !== undefined && gathered.requests > 0 && performance.now() < until
  }
}
