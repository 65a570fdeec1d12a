/**
 * What the outbox needs of its siblings, which it never imports: the root hands these in.
 */
import type { WritePart } from '../postgres/write-parts.ts'

/** A discrepancy about one operation. */
export interface OperationFinding {
  readonly kind: 'operation_dead' | 'operation_uncertain'
  readonly operationId: string
  readonly orderId: string | null
  /** Figures for people: destination, status, attempts; never a body. */
  readonly figures: Readonly<Record<string, string | number | null>>
}

/** Findings, as part of the statement that makes or ends their cause. */
export interface FindingsPort {
  /** Opens `found` and closes whatever is open about the operations in `settled`. */
  parts(found: readonly OperationFinding[], settled: readonly string[]): WritePart[]
}

/** Makes the events ready that wait for orders. */
export interface WakePort {
  parts(orderIds: readonly string[]): WritePart[]
  /** Told after the commit that events are ready. */
  woken(events: number): void
}
