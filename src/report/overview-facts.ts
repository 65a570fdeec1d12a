/** What the first page's advice is made of. */
import type { DestinationStatus } from './destinations.ts'
import type { GatheringStatus } from './looks.ts'
import type {
  FindingCounts,
  FirstThings,
  ProcessView,
  SchemaFacts,
  Stage,
} from './overview-parts.ts'
import type { ReconciliationStatus } from './reconciliation.ts'
import type { Count, IsoTime } from './row-values.ts'
import type { UnservedReport } from './unserved.ts'

/** All of it. */
export interface OverviewFacts {
  readonly at: IsoTime
  readonly unserved: UnservedReport
  readonly stages: readonly Stage[]
  readonly findings: FindingCounts
  readonly destinations: readonly DestinationStatus[]
  readonly gathering: GatheringStatus | null
  readonly checkpoints: ReconciliationStatus['checkpoints']
  readonly runs: ReconciliationStatus['runs']
  readonly repairs: ReconciliationStatus['repairs']
  readonly processes: readonly ProcessView[]
  readonly schema: SchemaFacts
  /** Decided in the last minute, and in the one before it that is not over yet. */
  readonly decided_last_minute: Count
  /** Operations that only a person can end. */
  readonly asking: Count
  readonly firsts: FirstThings
}
