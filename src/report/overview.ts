/**
 * The first page: is everybody who paid served, and if not, what to do first; how old the oldest unfinished
 * thing is at each stage. Counts of small tables and partial indexes: as cheap at a million events as at ten.
 */
import type { Database } from '../postgres/executor.ts'
import { newestMigration } from '../postgres/migrate.ts'
import { adviceOf, type Advice } from './advice.ts'
import { totalOf, type Activity, type ActivityFigures } from './activity.ts'
import { destinationStatus } from './destinations.ts'
import { gatheringStatus } from './looks.ts'
import type { OverviewFacts } from './overview-facts.ts'
import {
  findingCounts,
  firstThings,
  processesHeardOf,
  readStages,
  refusedLately,
  schemaFacts,
  type RejectionCount,
  type Stage,
} from './overview-parts.ts'
import { reconciliationStatus } from './reconciliation.ts'
import type { Count } from './row-values.ts'
import { shadowStatus, type ShadowStatus } from './shadow.ts'
import { readUnserved, type UnservedReport } from './unserved.ts'

/** The answer. */
export interface Overview extends Omit<OverviewFacts, 'firsts'> {
  /** Whether everybody who paid is served, as far as anybody can know. */
  readonly served: 'yes' | 'no'
  /** The same as a sentence. */
  readonly verdict: string
  readonly first: Advice | null
  /** Everything that there is to do, the worst first. */
  readonly todo: readonly Advice[]
  /** What happened in the last minute that is over. */
  readonly last_minute: ActivityFigures
  readonly last_day: ActivityFigures
  /** Deliveries of the last 24 hours that were of events known already. */
  readonly duplicates_absorbed: Count
  /** Requests refused in the last 24 hours, by source and reason. */
  readonly rejections: readonly RejectionCount[]
  readonly shadow: ShadowStatus | null
}

/** Reads it. */
export async function overview(db: Database, activity: Activity): Promise<Overview> {
  // a handful of connections are enough: the second group waits for the first
  const [unserved, stages, findings, destinations] = await Promise.all([
    readUnserved(db),
    readStages(db),
    findingCounts(db),
    destinationStatus(db),
  ])
  const [gathering, reconciliation, processes, schema] = await Promise.all([
    gatheringStatus(db),
    reconciliationStatus(db),
    processesHeardOf(db),
    schemaFacts(db, newestMigration),
  ])
  const [firsts, rejections, shadow, hour, day] = await Promise.all([
    firstThings(db),
    refusedLately(db),
    shadowStatus(db),
    activity.buckets('1h'),
    activity.buckets('24h'),
  ])
  const minute = totalOf(hour.slice(-2, -1))
  const lastDay = totalOf(day)
  const { firsts: _, ...facts } = withReconciliation({
    at: schema.at,
    unserved,
    stages,
    findings,
    destinations,
    gathering,
    ...reconciliation,
    processes,
    schema: schema.facts,
    decided_last_minute: totalOf(hour.slice(-2)).decided,
    asking: destinations.reduce((sum, each) => sum + each.asking, 0),
    firsts,
  })
  const todo = adviceOf({ ...facts, firsts })
  return {
    ...facts,
    served: unserved.count === 0 ? 'yes' : 'no',
    verdict: verdictOf(unserved),
    first: todo[0] ?? null,
    todo,
    last_minute: minute,
    last_day: lastDay,
    duplicates_absorbed: lastDay.duplicates,
    rejections,
    shadow,
  }
}

/** The stages outbox and reconciliation stand in what was read of destinations, checkpoints and runs. */
function withReconciliation(facts: OverviewFacts): OverviewFacts {
  const { destinations, checkpoints, runs, repairs } = facts
  const sum = (key: 'pending' | 'sending' | 'uncertain' | 'dead'): number =>
    destinations.reduce((total, each) => total + each[key], 0)
  const ages = destinations.flatMap((each) => each.oldest_due_age_ms ?? [])
  const newest = runs.filter(
    (run, index) => runs.findIndex((each) => each.source === run.source) === index,
  )
  const outbox: Stage = {
    stage: 'outbox',
    unfinished: sum('pending') + sum('sending') + sum('uncertain'),
    oldest_age_ms: ages.length === 0 ? null : Math.max(...ages),
    dead: sum('dead'),
    overdue: 0,
    uncertain: sum('uncertain'),
  }
  const behind = checkpoints.map((each) => each.age_ms)
  const reconciliation: Stage = {
    stage: 'reconciliation',
    unfinished: repairs.unverified,
    oldest_age_ms: behind.length === 0 ? null : Math.max(...behind),
    dead: newest.filter((run) => run.state === 'failed').length,
    overdue: behind.filter((age) => age > 3_600_000).length,
    uncertain: 0,
  }
  const [inbox, waiting, gathering, findings] = facts.stages
  const order = [inbox, waiting, gathering, outbox, findings, reconciliation]
  return { ...facts, stages: order.filter((each) => each !== undefined) }
}

function verdictOf({ count, orders, events }: UnservedReport): string {
  if (count === 0) return 'Every paid customer is served.'
  const parts = [
    ...(orders === 0 ? [] : [orders === 1 ? '1 order' : `${orders} orders`]),
    ...(events === 0
      ? []
      : [`${events === 1 ? '1 event' : `${events} events`} not decided for more than a minute`]),
  ]
  return `Not every paid customer is served: ${parts.join(', ')}.`
}
