/**
 * What the ledger holds of one order, as the engine reads it under the order's lock.
 */
import type { Money } from '../core/money.ts'

/** Another identifier of an order: a session, payment intent, charge, subscription, invoice. */
export interface Name {
  readonly kind: string
  readonly value: string
}

/** A payment recorded for an order. */
export interface Payment {
  readonly id: string
  readonly amount: bigint
  readonly currency: string
  /** False when the decision that named it was a contradiction: the money is known, nothing was granted for it. */
  readonly applied: boolean
}

/** Where an operation stands. `sent`, `canceled` and `discarded` are final. */
export type OperationState =
  'pending' | 'sending' | 'sent' | 'uncertain' | 'dead' | 'canceled' | 'discarded'

/** One call to the outside that an effect of the order asked for. */
export interface Operation<Type extends string = string, Destination extends string = string> {
  /** As its `send` named it; else the type of its effect. */
  readonly name: string
  readonly destination: Destination
  readonly effect: { readonly type: Type; readonly reference: string }
  readonly state: OperationState
  /** What the destination answered, once it is sent: ids and figures. */
  readonly receipt: Readonly<Record<string, unknown>> | null
}

/** An effect of an order: a fulfillment that happened once. */
export interface Effect<Type extends string = string, Destination extends string = string> {
  readonly type: Type
  /** What makes it once: a refund id, an invoice id; empty for what happens once an order. */
  readonly reference: string
  readonly amount: bigint | null
  readonly currency: string | null
  /** The payment it counts against (a refund's), if any. */
  readonly payment: string | null
  readonly data: Readonly<Record<string, unknown>>
  /**
   * True when a `reverse` of it was recorded, in whichever order the two came. A reversal that came
   * first shows as a reversed effect without an amount.
   */
  readonly reversed: boolean
  /** What it sends, with the receipts. */
  readonly operations: readonly Operation<Type, Destination>[]
}

/** Something a subject may use because of an order. */
export interface Entitlement {
  readonly subject: string
  readonly entitlement: string
  readonly quantity: number
  readonly validUntil: Date | null
  readonly active: boolean
}

/** The order as `decide` sees it. Orders that only the app opens always have a subject. */
export interface Order<
  State extends string = string,
  Subject extends string | null = string | null,
> {
  readonly id: string
  readonly workflow: string
  readonly state: State
  readonly subject: Subject
  readonly expected: Money | null
}

/** Everything the ledger holds of one order; the engine's fold changes a copy of it. */
export interface OrderLedger {
  readonly id: string
  workflow: string
  /** The source (provider, account, environment) it belongs to; null until an event or the app binds it. */
  sourceId: number | null
  /** The provider of that source: events of other providers that the workflow takes are not bound by it. */
  provider: string | null
  providerAccount: string | null
  state: string
  subject: string | null
  expected: Money | null
  version: bigint
  /** False for an order that this batch opens. */
  stored: boolean
  payments: LedgerPayment[]
  effects: LedgerEffect[]
  entitlements: LedgerEntitlement[]
  operations: Operation[]
}

/** A payment with the source whose id it bears. */
export interface LedgerPayment extends Payment {
  readonly sourceId: number
}

/** An effect row. A reversal is a row of its own, under the same reference. */
export interface LedgerEffect {
  readonly type: string
  readonly reference: string
  readonly amount: bigint | null
  readonly currency: string | null
  readonly payment: string | null
  readonly data: Readonly<Record<string, unknown>>
}

/** An entitlement row: `stated` while it belongs to the set last stated, `active` while the state entitles. */
export interface LedgerEntitlement extends Entitlement {
  readonly stated: boolean
  readonly grantedBy: bigint | null
}

/** The suffix of the effect type under which the reversal of an effect is recorded. */
export const reversedSuffix = ':reversed'
