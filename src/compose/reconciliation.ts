/**
 * Wires reconciliation to its siblings: it puts into the inbox, reads the ledger, and asks each source that
 * can be asked. Any number of processes may do it beside one another.
 */
import type { Signals } from '../core/signals.ts'
import type { AskedSource, PassContext } from '../reconciliation/pass-context.ts'
import type { PassOptions, PassReport } from '../reconciliation/pass-report.ts'
import { runPass } from '../reconciliation/pass.ts'
import { runDuePasses } from '../reconciliation/schedule.ts'
import { createLoop } from '../worker/loop.ts'
import { comparisonOf, type ComparisonParts } from './comparison.ts'
import type { Workflow } from '../workflow/workflow.ts'
import { contentOf } from './content.ts'
import type { ConfiguredSource } from './options.ts'

/** The reconcile role of a process, and passes by hand. */
export interface Reconciler {
  /** Runs passes on the configured schedule; does nothing where there is none or no source can be asked. */
  start(): void
  /** Ends the pass in hand; resolves whether it ended within `timeoutMs`. */
  stop(timeoutMs: number): Promise<boolean>
  /**
   * One pass now. Resolves for whatever it found; a pass that could not go through everything is not
   * `complete`, and says why.
   *
   * @throws HookledgerError HKL_RECONCILE_NO_RECORDS when no source (of those named) can be asked
   */
  pass(options: PassOptions): Promise<PassReport>
}

/** How a reconciler is made. */
export interface ReconcilerOptions {
  /** Decides what it puts into the inbox in this process, while it waits. Default: workers do. */
  readonly decides?: boolean | undefined
}

/** What it is made of. */
export interface ReconcilerParts extends ComparisonParts {
  /** Decides what is ready in this process while a pass waits; undefined: workers do. */
  readonly decide?: (() => Promise<unknown>) | undefined
  /** Repairs what the configuration says repairs itself, and verifies what was repaired. */
  readonly autoRepair?: ((signal: AbortSignal) => Promise<number>) | undefined
}

/** How often it is looked whether a pass is due, in milliseconds: between these. */
const soonestLookMs = 100
const latestLookMs = 10_000

/** The reconciler of one configuration. */
export function createReconciler(parts: ReconcilerParts): Reconciler {
  const { config, signals } = parts
  const context = passContext(parts)
  let stopping = new AbortController()
  const schedule = config.reconcile
  const lookMs = Math.min(latestLookMs, Math.max(soonestLookMs, (schedule?.everyMs ?? 0) / 20))
  const loop = createLoop({
    name: 'reconcile',
    minIdleMs: lookMs,
    maxIdleMs: lookMs,
    signals,
    turn: async () => {
      const actor = `reconciler:${process.pid}`
      const report = await runDuePasses(context, { actor, signal: stopping.signal })
      if (report !== null) tell(signals, report)
      return false
    },
  })
  return {
    start() {
      if (schedule === null || context.sources.length === 0) return
      stopping = new AbortController()
      loop.start()
    },
    async stop(timeoutMs) {
      stopping.abort()
      return within(timeoutMs, loop.stop())
    },
    async pass(options) {
      const report = await runPass(context, options)
      tell(signals, report)
      return report
    },
  }
}

function passContext(parts: ReconcilerParts): PassContext {
  const { db, config, signals } = parts
  const { comparison, findings, preview } = comparisonOf(parts)
  return {
    db,
    settings: config.reconcileByHand,
    sources: [...config.sources.values()].filter(isAsked),
    comparison,
    findings,
    preview,
    endings: endingsOf(config.workflows),
    parse: (bytes) => contentOf(bytes, config.limits),
    handles: (source, eventType) => config.registry.candidates(source, eventType) !== null,
    injected: (source, events) => {
      signals.emit('reconcile.events.injected', { source, events })
    },
    decide: parts.decide,
    autoRepair: parts.autoRepair,
    lockTimeoutMs: config.limits.lockTimeoutMs,
  }
}

/** A workflow that describes no transition at all says nothing of what follows. */
function endingsOf(workflows: readonly Workflow[]): PassContext['endings'] {
  return workflows.flatMap(({ name, states, transitions }) =>
    [...transitions.values()].every((next) => next.length === 0)
      ? []
      : [...states.keys()]
          .filter((state) => (transitions.get(state) ?? []).length === 0)
          .map((state) => ({ workflow: name, state })),
  )
}

function isAsked(source: ConfiguredSource): source is ConfiguredSource & AskedSource {
  return source.source.records !== undefined && source.source.problem === undefined
}

function tell(signals: Signals, { runs }: PassReport): void {
  for (const { coverage, startedAt, finishedAt, ...run } of runs) {
    const records = Object.values(coverage).reduce((sum, each) => sum + each.records, 0)
    const durationMs = finishedAt.getTime() - startedAt.getTime()
    signals.emit('reconcile.run.ended', { ...run, records, durationMs })
  }
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
