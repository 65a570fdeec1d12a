/** A plan with what carrying it out needs besides: the order before and after, and exact operations. */
import type { LedgerEffect, OrderLedger } from '../../workflow/order.ts'
import type { OperationDraft } from '../../workflow/outbox-port.ts'
import type { FindingDraft, PaymentOutcome } from '../../workflow/outcome.ts'
import type { Workflow } from '../../workflow/workflow.ts'
import type { PlannedEntitlement, RepairPlan } from './plan.ts'

/** A payment as the ledger's statement takes it. */
export interface DraftPayment {
  readonly sourceId: number
  readonly row: PaymentOutcome | null
  /** The id of one that was known as not applied. */
  readonly applies: string | null
}

/** How an order changes. */
export interface OrderChange {
  readonly workflow: Workflow
  readonly before: OrderLedger
  readonly after: OrderLedger
  readonly payments: readonly DraftPayment[]
  readonly voided: readonly { readonly sourceId: number; readonly id: string }[]
  readonly effects: readonly LedgerEffect[]
  readonly operations: readonly OperationDraft[]
  readonly learned: readonly {
    readonly sourceId: number
    readonly kind: string
    readonly value: string
  }[]
  /** What the workflow's decisions found besides. */
  readonly findings: readonly FindingDraft[]
  /** Lines for a person: what the provider's records hold that is no part of it. */
  readonly notes: readonly string[]
}

/** A change of nothing: the order is held and stays as it is. */
export function unchanged(workflow: Workflow, before: OrderLedger): OrderChange {
  return {
    workflow,
    before,
    after: before,
    payments: [],
    voided: [],
    effects: [],
    operations: [],
    learned: [],
    findings: [],
    notes: [],
  }
}

/** An operation of the repair's own. */
export interface RefundCall {
  readonly to: string
  readonly key: string
  readonly operationId: string
  readonly body: unknown
}

/** A plan, ready to be carried out in the transaction in which it was made. */
export interface RepairDraft {
  readonly plan: RepairPlan
  readonly change: OrderChange | null
  /** The state that the order's decisions lead to. */
  readonly decided: string | null
  readonly refund: RefundCall | null
  /** Pairs that become active or cease to be so, as the decision says it for whoever counts them later. */
  readonly granted: readonly string[]
  readonly revoked: readonly string[]
}

/** The order is in somebody's hands at this moment: the transaction is begun anew. */
export class OrderHeld extends Error {
  readonly orderId: string

  constructor(orderId: string) {
    super(`order ${orderId} is held by another transaction`)
    this.name = 'OrderHeld'
    this.orderId = orderId
  }
}

/** The whole set after a change, where any of it differs from before; null: nothing does. */
export function entitlementsAfter({ before, after }: OrderChange): PlannedEntitlement[] | null {
  const text = (ledger: OrderLedger): string =>
    JSON.stringify(
      ledger.entitlements
        .map((row) => [
          row.subject,
          row.entitlement,
          row.quantity,
          row.validUntil?.getTime() ?? null,
          row.active,
          row.stated,
        ])
        .sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)),
    )
  if (text(before) === text(after)) return null
  return after.entitlements
    .filter((row) => row.stated || row.active)
    .map(({ subject, entitlement, quantity, validUntil, active }) => ({
      subject,
      entitlement,
      quantity,
      validUntil,
      active,
    }))
    .sort((a, b) => (pairOf(a) < pairOf(b) ? -1 : 1))
}

/** Pairs that become active, and pairs that cease to be. */
export function activeDifference({ before, after }: OrderChange): {
  readonly granted: string[]
  readonly revoked: string[]
} {
  const active = (ledger: OrderLedger): Set<string> =>
    new Set(ledger.entitlements.filter((row) => row.active).map(pairOf))
  const earlier = active(before)
  const later = active(after)
  return {
    granted: [...later].filter((pair) => !earlier.has(pair)).sort(),
    revoked: [...earlier].filter((pair) => !later.has(pair)).sort(),
  }
}

/** `subject entitlement`, as decisions name it. */
export function pairOf(row: { readonly subject: string; readonly entitlement: string }): string {
  return `${row.subject} ${row.entitlement}`
}

/**
 * Nothing is to be done by what was chosen: both sides agree by now, or `otherwise` says what else there is.
 * Which of the two is known only after the provider was asked again, outside of the transaction.
 */
export class NothingToDo extends Error {
  /** Whether all that the provider's records say is recorded, or all that decisions say is in the rows. */
  readonly isRecorded: boolean
  readonly otherwise: Error

  constructor(isRecorded: boolean, otherwise: Error) {
    super('nothing is to be done')
    this.name = 'NothingToDo'
    this.isRecorded = isRecorded
    this.otherwise = otherwise
  }
}
