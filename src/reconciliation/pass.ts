/**
 * A pass: every source that can be asked, beside one another, then what only this database can tell, then
 * what repairs itself. It can be repeated at any moment and by anybody: a second one finds nothing new.
 */
import { reach } from '../core/failpoints.ts'
import { HookledgerError } from '../core/errors.ts'
import { nearest } from '../core/nearest.ts'
import { describeDatabaseError, sqlstateOf } from '../postgres/sqlstate.ts'
import { createAsker } from './asker.ts'
import { Coverage } from './coverage.ts'
import { outlast } from './outlast.ts'
import type { AskedSource, Asker, PassContext, SourceRun } from './pass-context.ts'
import type { PassHow, PassOptions, PassReport, RunReport } from './pass-report.ts'
import { closeRun, heartbeatMs, openRun, touchRun, type OpenedRun, type RunCounts } from './runs.ts'
import { SourcePass } from './source-pass.ts'
import { databaseNow } from './sources.ts'

/** A run of a pass that was begun already: a schedule's. */
export interface BegunRun extends OpenedRun {
  readonly source: string
  readonly how: PassHow
}

/**
 * One pass. Resolves for whatever it found; a run that could not go through everything is not `complete`.
 *
 * @throws HookledgerError HKL_RECONCILE_NO_RECORDS when no source of those named can be asked,
 * HKL_CONFIG_UNKNOWN_NAME for a source or a kind that there is not
 */
export async function runPass(
  context: PassContext,
  options: PassOptions,
  begun: readonly BegunRun[] = [],
): Promise<PassReport> {
  const sources = chosenSources(context, options)
  const aborting = new AbortController()
  const signal =
    options.signal === undefined
      ? aborting.signal
      : AbortSignal.any([options.signal, aborting.signal])
  const runs: PassRun[] = []
  try {
    for (const source of sources) {
      const own = begun.find((run) => run.source === source.name)
      runs.push(await PassRun.begin(context, source, { ...options, ...own, signal }, own))
    }
    await Promise.all(runs.map((run) => run.goThrough()))
    await compareLocally(context, runs, signal)
  } finally {
    aborting.abort()
    for (const run of runs) run.endHeartbeat()
  }
  const reports: RunReport[] = []
  for (const run of runs) reports.push(await run.close())
  await reach('C7')
  return { complete: reports.every(({ state }) => state === 'complete'), runs: reports }
}

function chosenSources(
  { sources }: PassContext,
  { sources: names, kinds }: PassOptions,
): readonly AskedSource[] {
  requireKnown(
    'source',
    names ?? [],
    sources.map(({ name }) => name),
  )
  const chosen = sources.filter(({ name }) => names === undefined || names.includes(name))
  if (chosen.length === 0) {
    throw new HookledgerError(
      'HKL_RECONCILE_NO_RECORDS',
      'no source can be asked for its records: give stripe() an apiKey, or a source of your own `records`',
    )
  }
  const known = chosen.flatMap(({ source }) => source.records.kinds.map(({ kind }) => kind))
  requireKnown('kind of record', kinds ?? [], known)
  return chosen
}

function requireKnown(what: string, asked: readonly string[], known: readonly string[]): void {
  for (const name of asked) {
    if (known.includes(name)) continue
    const near = nearest(name, known)
    throw new HookledgerError(
      'HKL_CONFIG_UNKNOWN_NAME',
      `unknown ${what} "${name.slice(0, 80)}" for reconciliation${near === null ? '' : `, did you mean "${near}"?`}; known are ${[...new Set(known)].join(', ') || 'none'}`,
    )
  }
}

/** Once a pass, whatever its sources are: counted with the first of them. */
async function compareLocally(
  context: PassContext,
  runs: readonly PassRun[],
  signal: AbortSignal,
): Promise<void> {
  const [first] = runs
  if (first === undefined || signal.aborted) return
  const from = new Date(Math.min(...runs.map((run) => run.newFrom.getTime())))
  await first.guard(async () => {
    const local = await context.comparison.checkLocally({ from, to: first.now, signal })
    first.counts.opened += local.opened
    first.counts.closed += local.closed
    first.repaired += (await context.autoRepair?.(signal)) ?? 0
    await context.comparison.escalate()
  })
}

/** One source in a pass, with its row. */
class PassRun {
  readonly now: Date
  repaired = 0
  readonly #context: PassContext
  readonly #opened: OpenedRun
  readonly #how: PassHow
  readonly #source: AskedSource
  readonly #coverage = new Coverage()
  readonly #asker: Asker
  readonly #pass: SourcePass
  readonly #signal: AbortSignal
  readonly #heart: NodeJS.Timeout
  #failure: string | null = null

  private constructor(
    context: PassContext,
    source: AskedSource,
    options: PassOptions & { readonly signal: AbortSignal },
    begun: { readonly opened: OpenedRun; readonly now: Date },
  ) {
    const { signal } = options
    this.now = begun.now
    this.#signal = signal
    this.#context = context
    this.#source = source
    this.#opened = begun.opened
    this.#how = options.how
    const { callsPerSecond, callsPerPass: budget } = context.settings
    this.#asker = createAsker(source, { callsPerSecond, budget, signal })
    const run: SourceRun = {
      runId: begun.opened.runId,
      how: options.how,
      source,
      asker: this.#asker,
      signal,
      now: begun.now,
      progress: (progress) =>
        options.onProgress?.({
          ...progress,
          source: source.name,
          records: this.#coverage.records,
          injected: this.#coverage.injected,
        }),
    }
    this.#pass = new SourcePass(context, run, options, this.#coverage)
    this.#heart = setInterval(() => this.#beat(), heartbeatMs)
    this.#heart.unref()
  }

  static async begin(
    context: PassContext,
    source: AskedSource,
    options: PassOptions & { readonly signal: AbortSignal },
    begun: OpenedRun | undefined,
  ): Promise<PassRun> {
    const { how, actor } = options
    const opened =
      begun ?? (await outlast(() => openRun(context.db, { source: source.name, how, actor })))
    const now = await outlast(() => databaseNow(context.db))
    return new PassRun(context, source, options, { opened, now })
  }

  get newFrom(): Date {
    return this.#pass.newFrom
  }

  get counts(): SourcePass['counts'] {
    return this.#pass.counts
  }

  goThrough(): Promise<void> {
    return this.guard(() => this.#pass.run())
  }

  /** A run that failed says why; the others go on. */
  async guard(step: () => Promise<void>): Promise<void> {
    try {
      await step()
    } catch (error) {
      if (this.#signal.aborted) this.#pass.stop()
      else this.#failure ??= textOf(error)
    }
  }

  endHeartbeat(): void {
    clearInterval(this.#heart)
  }

  async close(): Promise<RunReport> {
    const problems = this.#failure === null ? this.#pass.problems : [this.#failure]
    const error = problems.length === 0 ? null : problems.join('; ').slice(0, 1000)
    const state =
      this.#failure !== null ? 'failed' : problems.length === 0 ? 'complete' : 'incomplete'
    const { runId, startedAt } = this.#opened
    const { db } = this.#context
    const finishedAt = await outlast(() => closeRun(db, runId, { state, error }, this.#counts()))
    return {
      runId,
      source: this.#source.name,
      how: this.#how,
      state,
      error,
      coverage: this.#coverage.toJSON(),
      calls: this.#asker.calls,
      injected: this.#coverage.injected,
      opened: this.counts.opened,
      closed: this.counts.closed,
      repaired: this.repaired,
      startedAt,
      finishedAt,
    }
  }

  #counts(): RunCounts {
    const { opened, closed } = this.counts
    return {
      coverage: this.#coverage,
      calls: this.#asker.calls,
      opened,
      closed,
      repaired: this.repaired,
    }
  }

  /** A heart that cannot be heard is no failure of the run: it ends by what its own steps meet. */
  #beat(): void {
    touchRun(this.#context.db, this.#opened.runId, this.#counts()).catch(() => {})
  }
}

/** What may be stored and shown of an error: of the database's nothing that quotes a value. */
function textOf(error: unknown): string {
  if (sqlstateOf(error) !== undefined) return describeDatabaseError(error)
  return error instanceof Error ? error.message.slice(0, 500) : 'it failed without an error'
}
