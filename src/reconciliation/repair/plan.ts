/**
 * What a repair would change, before it changes anything. A plan is named by what it says: the same
 * finding in the same state gives the same id, and any difference gives another one, so that a plan that
 * somebody has read can be told from what would be done now.
 */
import type { Money } from '../../core/money.ts'
import { permanentId } from '../../postgres/permanent-id.ts'
import { stableText } from '../../workflow/difference.ts'
import type { LedgerEffect, Name } from '../../workflow/order.ts'
import type { RecordReference } from '../../workflow/records.ts'

/** How a finding can be repaired. */
export type ChoiceName =
  /** The facts that the provider's records have and this ledger lacks are recorded, as the workflow decides them. */
  | 'provider'
  /** The order and its entitlements become again what their decisions say. */
  | 'restore'
  /** The provider's records are recorded although the workflow's checks of money or transition refused them. */
  | 'accept'
  /** A person names the state. */
  | 'target'
  /** A payment is given back, through the outbox. */
  | 'refund'
  /** A compensating effect is recorded; its `apply` runs. */
  | 'compensate'
  /** Nothing changes: it is accepted as it is. */
  | 'keep'

/** A choice as a person types it (`refund:pi_1`), and what it does. */
export interface ChoiceOffer {
  readonly choice: string
  readonly does: string
}

/** The order that a plan is about. */
export interface PlannedOrder {
  readonly id: string
  readonly workflow: string
  /** The state that the order's row says; null: the repair opens the order. */
  readonly from: string | null
  readonly to: string
  /** The state that the order's decisions lead to: another than `from` where somebody changed the row. */
  readonly decided: string | null
  readonly version: bigint
  /** Whose it is, where that changes. */
  readonly subject: { readonly from: string | null; readonly to: string | null } | null
  /** What is to be paid for it, where that changes. */
  readonly expected: { readonly from: Money | null; readonly to: Money | null } | null
}

/** A payment that is recorded. Minor units. */
export interface PlannedPayment {
  readonly sourceId: number
  readonly id: string
  readonly amount: bigint
  readonly currency: string
  /** True where it was known already, as one that was not applied. */
  readonly known: boolean
}

/** An entitlement as it is after the repair. */
export interface PlannedEntitlement {
  readonly subject: string
  readonly entitlement: string
  readonly quantity: number
  readonly validUntil: Date | null
  readonly active: boolean
}

/** A call to the outside that the repair records. */
export interface PlannedOperation {
  readonly operationId: string
  readonly destination: string
  readonly name: string
  /** The effect that asks for it; null: the repair itself. */
  readonly effect: { readonly type: string; readonly reference: string } | null
}

/** Money that is given back. */
export interface PlannedRefund {
  readonly payment: string
  readonly account: string
  readonly amount: bigint
  readonly currency: string
}

/** A plan: everything that applying it changes, and nothing else changes. */
export interface RepairPlan {
  readonly id: string
  readonly findingId: string
  readonly kind: string
  /** As it was chosen: `provider`, `refund:pi_1`. */
  readonly choice: string
  readonly order: PlannedOrder | null
  readonly payments: readonly PlannedPayment[]
  /** Payments that count here and that the provider knows nothing of: they no longer count. */
  readonly voided: readonly { readonly sourceId: number; readonly id: string }[]
  /** Missing ones only. */
  readonly effects: readonly LedgerEffect[]
  /** The whole set, where anything of it changes; null: entitlements stay as they are. */
  readonly entitle: readonly PlannedEntitlement[] | null
  readonly granted: readonly string[]
  readonly revoked: readonly string[]
  readonly learned: readonly (Name & { readonly sourceId: number })[]
  readonly operations: readonly PlannedOperation[]
  readonly refund: PlannedRefund | null
  /** The provider's records that it was made from, with what they claim. */
  readonly records: readonly { readonly reference: RecordReference; readonly says: string }[]
  /** How often this finding was repaired before. */
  readonly earlier: number
  /** For a person, a line each. */
  readonly summary: readonly string[]
  /** What else can be chosen. */
  readonly choices: readonly ChoiceOffer[]
}

/** A plan without what only tells of it. */
export type PlanContent = Omit<RepairPlan, 'id' | 'summary' | 'choices'>

/** The id of a plan: what it says, in the namespace of the installation. */
export function planId(installationId: string, content: PlanContent): string {
  return permanentId(installationId, ['repair', stableText(content)])
}

/** Whether applying it changes an order, its payments, effects or entitlements. */
export function changesLedger(plan: PlanContent): boolean {
  const { order } = plan
  return (
    (order !== null &&
      (order.from !== order.to ||
        (order.decided ?? order.to) !== order.to ||
        order.subject !== null ||
        order.expected !== null)) ||
    plan.payments.length > 0 ||
    plan.voided.length > 0 ||
    plan.effects.length > 0 ||
    plan.entitle !== null
  )
}

/** Splits what was typed: `refund:pi_1` into the choice and what it is about. */
export function readChoice(text: string): { readonly name: string; readonly about: string | null } {
  const at = text.indexOf(':')
  if (at === -1) return { name: text, about: null }
  return { name: text.slice(0, at), about: text.slice(at + 1) }
}
