/**
 * What the engine decided about an event: everything that one commit writes for it.
 */
import type { Figures } from './decision.ts'
import type { InboxEvent } from './event.ts'
import type { LedgerEffect, Name } from './order.ts'
import type { OperationDraft } from './outbox-port.ts'

/** What became of an event. The first seven are final. */
export type OutcomeKind =
  | 'fulfilled'
  | 'moved'
  | 'reversed'
  | 'skipped'
  | 'absorbed'
  | 'contradicted'
  | 'handled'
  | 'deferred'
  | 'ignored'
  | 'dead'

const finalKinds: ReadonlySet<OutcomeKind> = new Set([
  'fulfilled',
  'moved',
  'reversed',
  'skipped',
  'absorbed',
  'contradicted',
  'handled',
])

/** Whether a decision of this kind is the last word about its event. */
export function isFinal(kind: OutcomeKind): boolean {
  return finalKinds.has(kind)
}

/** A discrepancy to be recorded in the same commit. */
export interface FindingDraft {
  readonly kind: string
  readonly class: 'lag' | 'contradiction'
  readonly severity: 'low' | 'medium' | 'high'
  /** What is compared: with kind and source it makes the finding's permanent id. */
  readonly about: string
  readonly figures: Figures
}

/** A payment as a decision names it. */
export interface PaymentOutcome {
  readonly id: string
  readonly amount: bigint
  readonly currency: string
  readonly applied: boolean
}

/** What a deferred event waits for. */
export interface Wait {
  readonly names: readonly Name[]
  /** The order whose every change wakes it; null when only names do. */
  readonly orderId: string | null
  /** For people: `payment_intent pi_1`, `order 1001`. */
  readonly description: string
  /** Milliseconds; null takes the configuration's default. */
  readonly forMs: number | null
  readonly atDeadline: 'finding' | 'ignore'
  /** The provider's customers of whom one has to be linked with a subject. */
  readonly customers?: readonly string[] | undefined
}

/** The decision about one event, with all that it changes. */
export interface Outcome {
  readonly decisionId: bigint
  readonly event: InboxEvent
  readonly kind: OutcomeKind
  readonly reason: string
  readonly orderId: string | null
  readonly workflow: string | null
  readonly workflowVersion: string | null
  readonly from: string | null
  readonly to: string | null
  readonly entitles: boolean | null
  readonly evidence: Readonly<Record<string, unknown>>
  /** A payment row to be written. */
  readonly payment: PaymentOutcome | null
  /** The id of a payment recorded before as not applied (also in this batch), which is applied now. */
  readonly appliesPayment: string | null
  readonly effects: readonly LedgerEffect[]
  /** What its effects send: written in the same commit. */
  readonly operations: readonly OperationDraft[]
  readonly learned: readonly Name[]
  readonly findings: readonly FindingDraft[]
  /** `subject entitlement` pairs that became active or ceased to be. */
  readonly granted: readonly string[]
  readonly revoked: readonly string[]
  /** Subjects who may use something else than before: also more of it, or for longer. */
  readonly entitled?: readonly string[] | undefined
  readonly wait: Wait | null
  /** Kinds of findings about the order (`order:<id>`) that end with this decision. */
  readonly settles?: readonly string[] | undefined
}

/** The parts of an outcome that most kinds leave empty. */
export const emptyOutcome: Omit<Outcome, 'decisionId' | 'event' | 'kind' | 'reason'> =
  Object.freeze({
    orderId: null,
    workflow: null,
    workflowVersion: null,
    from: null,
    to: null,
    entitles: null,
    evidence: Object.freeze({}),
    payment: null,
    appliesPayment: null,
    effects: Object.freeze([]),
    operations: Object.freeze([]),
    learned: Object.freeze([]),
    findings: Object.freeze([]),
    granted: Object.freeze([]),
    revoked: Object.freeze([]),
    wait: null,
  })
