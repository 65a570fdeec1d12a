/**
 * One check of the audit: a query whose rows are the violations. A check that cannot fail is worse
 * than none, so every one of them has a test that breaks what it watches.
 */
import type { Value } from '../postgres/executor.ts'

/** The promises of the design that a query can check. */
export type AuditedPromise = 'P1' | 'P2' | 'P3' | 'P4' | 'P5' | 'P6' | 'P7' | 'P8'

/** What the promises are called. */
export const promiseNames: Readonly<Record<AuditedPromise, string>> = Object.freeze({
  P1: 'durable acceptance',
  P2: 'one effect',
  P3: 'one commit',
  P4: 'no unpaid entitlement',
  P5: 'nothing silently stuck',
  P6: 'one external operation',
  P7: 'reconciliation converges',
  P8: 'everything is explained',
})

/** What the checks need to know of the configuration. */
export interface AuditLimits {
  /** Milliseconds an accepted event may stay pending, or an operation due, without a finding. */
  readonly pendingMs: number
  /** Milliseconds that upkeep (sweeps, findings) may be late before it counts as broken. */
  readonly graceMs: number
  /** How many stored bodies, and requests, are compared with their hash; the newest and the oldest unfinished. */
  readonly bodies: number
}

/** A query that returns violations, as rows of `key` (what is concerned) and `detail` (what is wrong). */
export interface AuditCheck {
  readonly promise: AuditedPromise
  /** Stable, snake_case. */
  readonly name: string
  /** What holds when the check passes, as a sentence. */
  readonly holds: string
  /** Reads the heap and no index: a corrupt or missing index must not hide what it should prevent. */
  readonly onHeap?: boolean
  /**
   * Its rows name their order (`order_id`), and one that reconciliation has found already (an open finding
   * about what was changed behind the ledger's back, with an owner and not overdue; or one that somebody dismissed
   * until a day) is told as known: it is the finding that calls a person. Past its time it is a violation again.
   */
  readonly knownByFinding?: boolean
  readonly sql: (schema: string, schemaName: string) => string
  readonly values?: (limits: AuditLimits, schemaName: string) => readonly Value[]
}
