/** What a round of a destination is asked for, and what it came to. */
import type { SortedCandidates } from './candidates.ts'
import type { FinishedAttempt, LeasedOperation } from './dispatch-context.ts'
import type { SettledAttempt } from './settle.ts'

/** What a round is asked for. */
export interface RoundRequest {
  readonly finished: readonly FinishedAttempt[]
  /** Calls that this dispatcher can take on. */
  readonly wanted: number
  /** Whether to look for leases that ran out. */
  readonly sweeps: boolean
  /** Nothing that is due before this moment is looked for: `-infinity`, or where the last round ended. */
  readonly from: string
  /** Whether only the longer way will do: something is due that is not new. */
  readonly others: boolean
}

/** What a round came to. */
export interface RoundReport {
  readonly settled: readonly SettledAttempt[]
  readonly leased: readonly LeasedOperation[]
  readonly sorted: SortedCandidates | null
  /** Whether as much was due as was asked for: there may be more. */
  readonly more: boolean
  /** Where a next round goes on; null where everything that was due was seen. */
  readonly until: string | null
  /** Milliseconds until the rate or the breaker lets more through; null where neither is in the way. */
  readonly waitMs: number | null
  readonly breaker: 'opened' | 'shut' | null
  readonly failures: number
  /** Whether something is due that only the longer way can take. */
  readonly others: boolean
}
