/** What the parts of a dispatcher have in common. */
import type { Signals } from '../core/signals.ts'
import type { Tracing } from '../core/tracing.ts'
import type { Database } from '../postgres/executor.ts'
import type { AttemptOutcome, DestinationTraits, OperationStanding } from './next-step.ts'
import type { Destination } from './destination.ts'
import type { FindingsPort } from './ports.ts'

/** One destination as one dispatcher works on it. */
export interface DispatchContext {
  readonly db: Database
  readonly name: string
  readonly destination: Destination
  readonly findings: FindingsPort
  readonly signals: Signals
  /** Who holds a lease: for people; the lease's number is what counts. */
  readonly dispatcher: string
  /** Operations in one transaction at most. */
  readonly batch: number
  /** How long a transaction waits for another dispatcher's, in milliseconds. */
  readonly lockTimeoutMs: number
  /** Absent or null: traces are off. */
  readonly tracing?: Tracing | null
}

/** What the pure rules need of a destination. */
export function traitsOf(destination: Destination): DestinationTraits {
  return { contract: destination.contract, canLookUp: destination.lookup !== undefined }
}

/** An operation in this dispatcher's hands. */
export interface LeasedOperation {
  readonly operationId: string
  readonly kind: 'call' | 'lookup'
  readonly attemptId: string
  readonly lease: string
  /** The number of this attempt. */
  readonly number: number
  /** Null where the bytes are gone. */
  readonly request: Uint8Array | null
  /** With this attempt counted. */
  readonly standing: OperationStanding
  readonly orderId: string | null
  readonly flagged: boolean
  /** Milliseconds since it was recorded. */
  readonly ageMs: number
  /** When it was recorded, by the database's clock; null where nothing will be looked up. */
  readonly recordedAt: Date | null
  /** When its lease began at the latest, by `performance.now()`. */
  readonly leasedAt: number
}

/** An attempt that ended. */
export interface FinishedAttempt {
  readonly operation: LeasedOperation
  readonly outcome: AttemptOutcome
  /** When, by `performance.now()`. */
  readonly finishedAt: number
}
