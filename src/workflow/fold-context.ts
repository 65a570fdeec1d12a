/**
 * What the fold needs besides the order: ids for decisions, owners of names and payments.
 */
import type { InboxEvent } from './event.ts'
import {
  reversedSuffix,
  type Effect,
  type LedgerEffect,
  type Name,
  type Operation,
} from './order.ts'
import type { OutboxPort } from './outbox-port.ts'

/** Facts and sources that the fold takes from outside, so that it stays pure. */
export interface FoldContext {
  /** The id for the decision about an event. */
  readonly allocate: (event: InboxEvent) => bigint
  /** The order that a name of a source is bound to; null when to none (or only waited for). */
  readonly ownerOf: (sourceId: number, name: Name) => string | null
  /** The order that a payment of a source is recorded for, where it is another one; else null. */
  readonly payerOf: (sourceId: number, paymentId: string) => string | null
  /** A stable secret of an order and a name. */
  readonly derive: (orderId: string, name: string) => string
  /** Where effects may send, and what exactly. */
  readonly outbox: OutboxPort
}

/** An effect as users see it. */
export type EffectView = Effect

/**
 * Joins effects with their reversals, whichever came first. A reversal that came before its effect
 * shows as a reversed effect without an amount, so that whoever decides about the effect can know.
 */
export function viewEffects(
  rows: readonly LedgerEffect[],
  operations: readonly Operation[],
): readonly EffectView[] {
  const reversals = new Map<string, LedgerEffect>()
  for (const row of rows) {
    if (row.type.endsWith(reversedSuffix))
      reversals.set(`${reversedType(row)}\n${row.reference}`, row)
  }
  const views: EffectView[] = []
  for (const row of rows) {
    if (row.type.endsWith(reversedSuffix)) continue
    views.push(
      Object.freeze({
        ...row,
        reversed: reversals.delete(`${row.type}\n${row.reference}`),
        operations: operationsOf(row, operations),
      }),
    )
  }
  for (const row of reversals.values()) {
    views.push(
      Object.freeze({
        ...row,
        type: reversedType(row),
        amount: null,
        currency: null,
        payment: null,
        reversed: true,
        operations: noOperations,
      }),
    )
  }
  return Object.freeze(views)
}

/** What most orders have of them. */
export const noOperations: readonly Operation[] = Object.freeze([])

/** The operations of one effect. */
export function operationsOf(
  { type, reference }: { readonly type: string; readonly reference: string },
  operations: readonly Operation[],
): readonly Operation[] {
  // most orders send nothing, and this is asked for every effect of every event
  if (operations.length === 0) return noOperations
  return Object.freeze(
    operations.filter(({ effect }) => effect.type === type && effect.reference === reference),
  )
}

function reversedType(row: LedgerEffect): string {
  return row.type.slice(0, -reversedSuffix.length)
}
