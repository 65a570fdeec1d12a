/** What a pass did, for a person: what it went through, and what a person is asked to look at. Pure. */
import type { Parts } from './project.ts'
import type { Style } from './output.ts'
import { columns, duration, moment, plural } from './table.ts'

type Reconciler = Awaited<ReturnType<Parts['reconciler']>>
type PassReport = Awaited<ReturnType<Reconciler['pass']>>
type RunReport = PassReport['runs'][number]
type PassProgress = Parameters<NonNullable<Parameters<Reconciler['pass']>[0]['onProgress']>>[0]

/** One source of a pass; the keys are what `--json` prints. */
export interface RunView {
  readonly run_id: string
  readonly source: string
  readonly how: string
  readonly state: string
  readonly error: string | null
  /** By kind of record. */
  readonly coverage: RunReport['coverage']
  readonly calls: number
  readonly injected: number
  readonly opened: number
  readonly closed: number
  readonly repaired: number
  readonly started_at: string
  readonly finished_at: string
}

/** A pass; the keys are what `--json` prints. */
export interface PassView {
  readonly complete: boolean
  readonly runs: readonly RunView[]
}

/** What `--json` prints. */
export function reportView({ complete, runs }: PassReport): PassView {
  return {
    complete,
    runs: runs.map(({ runId, startedAt, finishedAt, ...run }) => ({
      run_id: runId,
      ...run,
      started_at: startedAt.toISOString(),
      finished_at: finishedAt.toISOString(),
    })),
  }
}

/** A pass in words. */
export function reportText({ runs }: PassView, style: Style): string {
  return runs.map((run) => runText(run, style)).join('\n\n')
}

function runText(run: RunView, style: Style): string {
  const tookMs = Date.parse(run.finished_at) - Date.parse(run.started_at)
  const state = run.state === 'complete' ? style.good(run.state) : style.bad(run.state)
  return [
    `${style.strong(run.source)}: ${state}, ${plural(run.calls, 'call')} in ${duration(tookMs)}`,
    ...coverageLines(run.coverage),
    `  ${plural(run.injected, 'event')} put into the inbox; findings: ${run.opened} opened, ${run.closed} closed${run.repaired === 0 ? '' : `; ${run.repaired} repaired by rule`}`,
    ...(run.error === null ? [] : [`  ${style.warning('not complete:')} ${run.error}`]),
    ...(run.opened === 0 ? [] : ['  try: hookledger findings list']),
  ].join('\n')
}

function coverageLines(coverage: RunReport['coverage']): string[] {
  const kinds = Object.entries(coverage)
  if (kinds.length === 0) return ['  nothing to look at: everything is too recent, or looked at']
  const rows = kinds.map(([kind, each]) => [
    `  ${kind}`,
    `${moment(each.from)} to ${moment(each.to)}`,
    plural(each.records, 'record'),
    plural(each.pages, 'page'),
    plural(each.slices, 'slice'),
    ...(each.accounts > 1 ? [plural(each.accounts, 'account')] : []),
  ])
  return columns(rows, [2, 3, 4]).split('\n')
}

/** Where a pass is, in one line. */
export function progressText(progress: PassProgress): string {
  const { source, account, step, kind, reached, to, records, injected } = progress
  const who = account === '' || account === source ? source : `${source} ${account}`
  const counts = `${plural(records, 'record')}, ${plural(injected, 'event')} put in`
  if (step === 'settling') return `${who}: waiting until what was put in is decided (${counts})`
  if (step === 'comparing') return `${who}: comparing (${counts})`
  const at = reached === null ? '' : ` at ${moment(reached.toISOString())}`
  const end = to === null ? '' : ` of ${moment(to.toISOString())}`
  return `${who}: ${kind ?? ''}${at}${end} (${counts})`
}
