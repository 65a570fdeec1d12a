/**
 * What one commit writes to the ledger.
 */
import type { OrderLedger } from '../workflow/order.ts'
import type { Outcome } from '../workflow/outcome.ts'
import type { FoundDiscrepancy } from './findings.ts'

/** One decision to be recorded, with the attempts that its event took. */
export interface DecidedEvent {
  readonly outcome: Outcome
  readonly attempts: number
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
