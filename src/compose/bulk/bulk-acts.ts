/** What can be done with many things at once, and which things those are. */
import type { ReplayableState } from '../../inbox/replay.ts'

/** Events that are replayed. */
export interface BulkEvents {
  readonly states: readonly ReplayableState[]
  readonly types: readonly string[]
  /** `provider:account`, or with the environment behind it. */
  readonly source: string | null
  /** Received at this moment or later, and before that one. */
  readonly from: string | null
  readonly to: string | null
}

/** Operations that wait for a person. */
export interface BulkOperations {
  readonly states: readonly ('dead' | 'uncertain')[]
  readonly destination: string | null
  readonly order_id: string | null
  readonly from: string | null
  readonly to: string | null
}

/** Findings that are open. */
export interface BulkFindings {
  readonly states: readonly ('open' | 'repairing' | 'dismissed')[]
  readonly kind: string | null
  readonly class: string | null
  readonly owner: string | null
  readonly order_id: string | null
  readonly overdue: boolean
}

/** What is to be done, and with what. */
export type BulkWork =
  | { readonly act: 'replay'; readonly filter: BulkEvents; readonly details: BulkNothing }
  | {
      readonly act: 'retry' | 'discard'
      readonly filter: BulkOperations
      readonly details: BulkNothing
    }
  | {
      readonly act: 'assign'
      readonly filter: BulkFindings
      readonly details: { readonly owner: string }
    }
  | {
      readonly act: 'dismiss'
      readonly filter: BulkFindings
      readonly details: { readonly until: string }
    }
  | {
      readonly act: 'repair'
      readonly filter: BulkFindings
      /** `choice` null: what each kind of finding suggests. */
      readonly details: { readonly choice: BulkChoice | null }
    }

/** No details. */
export type BulkNothing = Readonly<Record<string, never>>

/** Choices that mean the same for every finding. */
export type BulkChoice = 'provider' | 'restore' | 'accept' | 'keep'

/** The states of a bulk act. */
export type BulkState =
  'planned' | 'waiting_approval' | 'running' | 'done' | 'failed' | 'canceled' | 'rejected'

/** A target, as it stood when it was planned. */
export interface BulkTarget {
  /** `event:12`, `operation:<uuid>`, `finding:<uuid>`: as the record of acts names it. */
  readonly target: string
  readonly was: string
}

/** More targets than this are refused: a filter that catches everything is likelier a mistake. */
export const mostTargets = 20_000
