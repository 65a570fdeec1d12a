/**
 * What one commit writes to the ledger.
 */
import type { OrderLedger } from '../workflow/order.ts'
import type { Outcome } from '../workflow/outcome.ts'
import type { FoundDiscrepancy } from './findings.ts'

/**
 * How a decision is recorded that is an act: by a person, or by a rule. It is the final decision of an
 * event of the source `hookledger`; what it changes (payment, names) stays in the source of the outcome's event.
 */
export interface RecordedAs {
  readonly kind: 'redecided' | 'repaired'
  /** The event of the source `hookledger`. */
  readonly eventKey: bigint
  /** The decision that it stands in the place of; null where there is none. */
  readonly supersedes: bigint | null
}

/** One decision to be recorded, with the attempts that its event took. */
export interface DecidedEvent {
  readonly outcome: Outcome
  readonly attempts: number
  /** Left out: under the outcome's own event and kind. */
  readonly recordedAs?: RecordedAs | undefined
  /** False for a deferral that waits for what it waited for before: nothing new to record. */
  readonly recorded: boolean
}

/** Everything that one commit writes to the ledger. */
export interface LedgerBatch {
  readonly decided: readonly DecidedEvent[]
  readonly before: ReadonlyMap<string, OrderLedger>
  readonly after: ReadonlyMap<string, OrderLedger>
  readonly findings: readonly FoundDiscrepancy[]
  readonly closedFindings: readonly string[]
  readonly actor: string
}
