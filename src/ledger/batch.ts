/**
 * What one commit writes to the ledger, and how its texts are made storable.
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

/** What may have to be replaced: NUL, an escape that may stand for it, half of a pair. */
const unstorable = /[\u0000\\\ud800-\udfff]/

/** NUL and lone surrogates cannot be stored as text: shown as the replacement character. */
export function storable(text: string): string {
  if (!unstorable.test(text)) return text
  return text
    .toWellFormed()
    .replaceAll('\u0000', '\ufffd')
    .replaceAll('\\u0000', '\\ufffd')
    .replace(/\\ud[89a-f][0-9a-f]{2}/gi, '\\ufffd')
}
