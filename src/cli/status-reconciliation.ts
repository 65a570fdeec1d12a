/** Reconciliation in `hookledger status`: how far it has looked, what the last passes came to, what is late. */
import type { ReconciliationStatus, RunView } from '../report/reconciliation.ts'
import { columns, duration, plural, relative } from './table.ts'

/** A checkpoint that has not moved for so long deserves a question, in milliseconds. */
const lateMs = 3_600_000
/** A run that has not shown itself for so long is left behind by a process that died, in milliseconds. */
const silentMs = 300_000

/** The lines about it; none where nothing was ever reconciled. */
export function reconciliationText(report: ReconciliationStatus): string[] {
  const { checkpoints, runs, repairs } = report
  if (checkpoints.length === 0 && runs.length === 0) return []
  const bySource = new Map<string, typeof checkpoints>()
  for (const each of checkpoints)
    bySource.set(each.source, [...(bySource.get(each.source) ?? []), each])
  const rows = [...bySource].map(([source, kinds]) => {
    const oldest = kinds.reduce((a, b) => (a.age_ms >= b.age_ms ? a : b))
    const inWork = kinds.filter((each) => each.in_work).length
    return [
      source,
      `up to ${duration(oldest.age_ms)} ago`,
      plural(kinds.length, 'kind'),
      inWork === 0 ? '' : `${inWork} in work`,
    ]
  })
  return [
    '',
    ...(rows.length === 0 ? [] : [columns([['reconciled', '', '', ''], ...rows])]),
    ...newest(runs).map(runText),
    ...(repairs.applied === 0
      ? []
      : [
          `${plural(repairs.applied, 'repair')}${repairs.unverified === 0 ? ', all of them verified' : `, ${repairs.unverified} not verified yet`}`,
        ]),
  ]
}

function newest(runs: readonly RunView[]): RunView[] {
  return runs.filter((run, at) => runs.findIndex((each) => each.source === run.source) === at)
}

function runText(run: RunView): string {
  const when =
    run.finished_at === null ? `since ${relative(run.started_at)}` : relative(run.finished_at)
  const did = [
    plural(run.calls, 'call'),
    `${run.injected} injected`,
    `${plural(run.opened, 'finding')} opened`,
    `${run.closed} closed`,
    ...(run.repaired === 0 ? [] : [`${run.repaired} repaired`]),
  ]
  return `the last pass over ${run.source} (${run.how}) ${run.state} ${when}: ${did.join(', ')}`
}

/** What to do about what is wrong. */
export function reconciliationAdvice(
  { checkpoints, runs, repairs }: ReconciliationStatus,
  now: number = Date.now(),
): string[] {
  const late = checkpoints.filter((each) => each.age_ms > lateMs)
  const stopped = newest(runs).filter((run) => run.state === 'failed' || run.state === 'incomplete')
  const left = newest(runs).filter(
    (run) => run.state === 'running' && now - Date.parse(run.seen_at) > silentMs,
  )
  const unverifiedMs = repairs.oldest_unverified_age_ms ?? 0
  return [
    ...stopped.map(
      (run) =>
        `the last pass over ${run.source} is ${run.state}: ${run.error ?? 'it gave no reason'}`,
    ),
    ...left.map(
      (run) =>
        `a pass over ${run.source} stopped in the middle ${relative(run.seen_at, now)}: the next one goes on there (hookledger reconcile)`,
    ),
    ...(late.length === 0
      ? []
      : [
          `nothing newer than ${duration(Math.max(...late.map((each) => each.age_ms)))} was compared with the provider: does a reconciler run? (hookledger start --roles reconcile)`,
        ]),
    ...(unverifiedMs <= lateMs
      ? []
      : [
          `${plural(repairs.unverified, 'repair')} not verified: hookledger reconcile asks the provider again`,
        ]),
  ]
}
