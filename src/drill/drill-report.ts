/** What a drill came to: as data, in the words of the JSON that is printed. */
import { promiseTitles, type PromiseId } from './oracle/verdict.ts'

/** One promise. */
export interface PromiseReport {
  readonly id: PromiseId
  readonly title: string
  readonly holds: boolean
  /** How many cases put it to the test. */
  readonly cases: number
  /** Codes of what broke it. */
  readonly faults: readonly string[]
  /** Why it has no case: nothing of the configuration concerns it. Null where it has, or should have. */
  readonly not_applicable: string | null
}

/** One fault that was found. */
export interface FaultReport {
  /** Stable: `apply_outside_transaction`. */
  readonly fault: string
  readonly promise: PromiseId
  /** The first case that showed it. */
  readonly case: string
  readonly detail: string
  /** How many cases showed it. */
  readonly cases: number
  /** The smallest order of events that shows it, a line each. */
  readonly schedule: readonly string[]
  /** The command that plays it again; null for what no single case shows. */
  readonly replay: string | null
}

/** How long it took until nothing was left to do after a fault, in milliseconds. */
export interface RecoveryReport {
  readonly kind: string
  readonly cases: number
  readonly median_ms: number
  readonly longest_ms: number
}

/** One case. */
export interface CaseReport {
  readonly case: string
  readonly holds: boolean
  /** Whether what was planned really happened. */
  readonly exercised: boolean
  readonly took_ms: number
  readonly recovery_ms: number | null
  readonly faults: readonly string[]
}

/** A drill. */
export interface DrillReport {
  readonly go: boolean
  /** Why it is no release decision; null where it is one. */
  readonly not_a_release_decision: string | null
  readonly seed: number
  readonly took_ms: number
  readonly promises: readonly PromiseReport[]
  readonly faults: readonly FaultReport[]
  /** Steps with actions that were not exercised. */
  readonly left_out: readonly string[]
  readonly recovery: readonly RecoveryReport[]
  readonly cases: readonly CaseReport[]
  /** Plays in memory by what was checked. */
  readonly in_memory: Readonly<Record<string, number>>
}

/** Every promise by its id. */
export const promiseIds: readonly PromiseId[] = Object.keys(promiseTitles) as PromiseId[]
