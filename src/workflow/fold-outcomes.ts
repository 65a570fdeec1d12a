/**
 * Outcomes that change nothing of the order: skipped, absorbed, contradicted, deferred.
 */
import type { Name, OrderLedger } from './order.ts'
import {
  emptyOutcome,
  type FindingDraft,
  type Outcome,
  type OutcomeKind,
  type PaymentOutcome,
} from './outcome.ts'
import type { Claim } from './resolve-event.ts'
import { recordedEntitles } from './workflow.ts'

/** Where an outcome is made: the event, its order, and the id of its decision. */
export interface At {
  readonly decisionId: bigint
  readonly claim: Claim
  readonly ledger: OrderLedger
}

/** An outcome that leaves the order in its state; the event's names are learned. */
export function plainOutcome(at: At, kind: OutcomeKind, reason: string): Outcome {
  const { claim, ledger } = at
  // all fields by name, and not over a copy of empty ones: this is made for every event
  return {
    decisionId: at.decisionId,
    event: claim.event,
    kind,
    reason,
    orderId: ledger.id,
    workflow: ledger.workflow,
    workflowVersion: claim.candidate.workflow.version,
    from: ledger.state,
    to: ledger.state,
    entitles: recordedEntitles(claim.candidate.workflow, ledger.state),
    evidence: emptyOutcome.evidence,
    payment: null,
    appliesPayment: null,
    effects: emptyOutcome.effects,
    operations: emptyOutcome.operations,
    learned: ledger.stored ? claim.learned : [],
    findings: emptyOutcome.findings,
    granted: emptyOutcome.granted,
    revoked: emptyOutcome.revoked,
    wait: null,
  }
}

/**
 * A contradiction: nothing is granted. Where the order exists, the payment is kept as not applied and
 * the names are learned (but for those of another order), so that a refund of it finds its way.
 */
export function contradictionOutcome(
  at: At,
  reason: string,
  findings: readonly FindingDraft[],
  payment: PaymentOutcome | null = null,
): Outcome {
  const { claim, ledger } = at
  const foreign = findings.some((each) =>
    ['foreign_account', 'workflow_differs', 'name_of_other_order'].includes(each.kind),
  )
  const sameWorkflow = ledger.workflow === claim.candidate.workflow.name
  return {
    ...plainOutcome(at, 'contradicted', reason),
    // the decision's keys must name a registered state of the order's own workflow
    ...(ledger.stored && sameWorkflow
      ? {}
      : { workflow: null, from: null, to: null, entitles: null }),
    orderId: ledger.stored ? ledger.id : null,
    evidence: Object.assign({}, ...findings.map((each) => each.figures)) as Record<string, unknown>,
    findings,
    payment,
    learned: foreign || !ledger.stored ? [] : claim.learned,
  }
}

/** Waits for the order to change, and for names where they are given. */
export function deferredOutcome(
  at: At,
  wait: {
    readonly description: string
    readonly names?: readonly Name[]
    readonly forMs?: number | null
    readonly customers?: readonly string[]
  },
): Outcome {
  const { claim, ledger } = at
  const stored = ledger.stored
  return {
    ...plainOutcome(at, 'deferred', `waits for ${wait.description}`),
    ...(stored ? {} : { workflow: null, from: null, to: null, entitles: null }),
    // names of a stored order are facts that do not wait with the event
    learned: stored ? claim.learned : [],
    wait: {
      names: wait.names ?? [],
      orderId: ledger.id,
      description: wait.description,
      forMs: wait.forMs ?? null,
      // what belongs to an order that is here has been claimed: its wait never ends in silence
      atDeadline: stored ? 'finding' : (claim.candidate.handler.unclaimed ?? 'finding'),
      ...(wait.customers !== undefined &&
        wait.customers.length > 0 && { customers: wait.customers }),
    },
  }
}
