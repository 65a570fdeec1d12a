/**
 * A drill: the user's own workflows, played as their provider would play them, with everything that can go wrong going
 * wrong on purpose; and every promise asked by an oracle that shares no code with the engine. What was never exercised is
 * no pass.
 */
import type { ResolvedConfig } from '../compose/options.ts'
import { HookledgerError } from '../core/errors.ts'
import type { ChildProgram } from './child-process.ts'
import { ChildPool } from './child-process.ts'
import { caseOf, type CaseKind } from './drill-case.ts'
import { DrillFindings } from './drill-findings.ts'
import type { DrillReport } from './drill-report.ts'
import { DrillRun } from './drill-run.ts'
import type { DrillWorld } from './messages.ts'
import { planDrill, type PlannedCase } from './plan.ts'
import { historiesOf } from './played-history.ts'
import { createCommitProxy } from './proxy/commit-proxy.ts'
import { startDestinationDouble } from './world/destination-double.ts'
import { startProviderDouble } from './world/provider-double.ts'
import { openScratch } from './world/scratch.ts'

/** What is drilled, and how. */
export interface DrillOptions {
  readonly config: ResolvedConfig
  /** Milliseconds after which no new case begins; null: every case. */
  readonly budgetMs: number | null
  readonly seed: number
  /** Only these kinds of case; `pure` is what is played in memory. Null: all. */
  readonly only: readonly (CaseKind | 'pure')[] | null
  /** Only these cases, by their names. Null: all. */
  readonly named: readonly string[] | null
  readonly databaseUrl: string | undefined
  /** Migrates the database of this url and makes the app's tables. */
  readonly prepare: (url: string) => Promise<void>
  /** The program that children run, in the world that is given. */
  readonly program: (world: DrillWorld) => ChildProgram
  /** The command that plays a case again; null: what is played in memory. */
  readonly replay: (name: string | null) => string
  readonly progress: (text: string) => void
  readonly note: (text: string) => void
  readonly signal: AbortSignal
}

/** How many orders of a longer history are played in memory. */
const samples = { budgeted: 60, whole: 500 } as const

/**
 * Runs a drill.
 *
 * @throws HookledgerError HKL_CONFIG_INVALID for a workflow without histories, HKL_CLI_USAGE for a case that there is not
 */
export async function runDrill(options: DrillOptions): Promise<DrillReport> {
  const { config, seed, signal } = options
  const from = performance.now()
  requireHistories(config)
  const isPureOnly = options.only?.every((kind) => kind === 'pure') === true
  const isTimeLeft = (neededMs: number): boolean =>
    !signal.aborted &&
    (options.budgetMs === null || performance.now() - from + neededMs < options.budgetMs)
  return withWorld(options, isPureOnly, async (run) => {
    const most = options.budgetMs === null ? samples.whole : samples.budgeted
    const inMemory = await run.checkInMemory(seed, most)
    const histories = historiesOf(config, inMemory.outlooks)
    const planned = planDrill(histories, seed)
    const cases = isPureOnly ? [] : chosen(options, planned, histories)
    const findings = new DrillFindings({ ...options, histories })
    if (options.named === null && (options.only === null || options.only.includes('pure')))
      findings.addInMemory(inMemory)
    await run.cases(cases, findings, isTimeLeft)
    await run.shrink(findings, isTimeLeft)
    return findings.report(Math.round(performance.now() - from), cases)
  })
}

function requireHistories({ workflows }: ResolvedConfig): void {
  if (workflows.length === 0)
    throw invalid('there is no workflow: a drill plays the histories of workflows')
  const without = workflows.filter(({ histories }) => (histories ?? []).length === 0)
  if (without.length > 0)
    throw invalid(
      `workflow ${without.map(({ name }) => `"${name}"`).join(', ')} has no histories: add some that its provider can produce (histories: [{ name, events }]); nothing can be said of what is not played`,
    )
}

function invalid(message: string): HookledgerError {
  return new HookledgerError('HKL_CONFIG_INVALID', message)
}

function chosen(
  { only, named }: DrillOptions,
  all: readonly PlannedCase[],
  histories: ReturnType<typeof historiesOf>,
): readonly PlannedCase[] {
  if (named === null)
    return all.filter(({ drillCase }) => only === null || only.includes(drillCase.kind))
  return named.map((name) => {
    const drillCase = caseOf(name)
    const played = histories.find(
      ({ workflow, slug }) => workflow.name === drillCase?.workflow && slug === drillCase.history,
    )
    if (drillCase === null || played === undefined)
      throw new HookledgerError(
        'HKL_CLI_USAGE',
        `--case: there is no case "${name}"; a name is KIND/DETAIL/WORKFLOW/HISTORY/STEPS, as a report gives it`,
      )
    return { played, drillCase }
  })
}

/** Opens everything that cases need, and closes it whatever happens. */
async function withWorld(
  options: DrillOptions,
  isPureOnly: boolean,
  work: (run: DrillRun) => Promise<DrillReport>,
): Promise<DrillReport> {
  const closing: (() => Promise<void>)[] = []
  try {
    const provider = await startProviderDouble()
    closing.push(() => provider.close())
    const destination = await startDestinationDouble()
    closing.push(() => destination.close())
    const scratch = isPureOnly ? null : await openScratch(options)
    if (scratch !== null) closing.push(() => scratch.close())
    const proxy = scratch === null ? null : await createCommitProxy({ target: scratch.url })
    if (proxy !== null) closing.push(() => proxy.close())
    const world: DrillWorld = {
      databaseUrl: proxy?.url ?? 'postgresql://127.0.0.1:1/none',
      mark: scratch?.mark ?? '',
      providerUrl: provider.url,
      destinationUrl: destination.url,
      stripeSecret: 'whsec_drill_only_0123456789abcdef',
      standardSecret: `whsec_${Buffer.from('drill only, 0123456789 abcdef').toString('base64')}`,
    }
    const pool = new ChildPool(options.program(world), 1)
    closing.push(() => pool.end())
    pool.warm()
    const shared =
      scratch === null || proxy === null
        ? null
        : { config: options.config, world, scratch, proxy, provider, destination, pool }
    return await work(new DrillRun(options, pool, shared))
  } finally {
    for (const close of closing.reverse()) await close().catch(() => {})
  }
}
