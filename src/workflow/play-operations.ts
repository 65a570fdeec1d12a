/** The operations of a run in memory: each under its id, recorded with its effect and answered once. */
import type { Operation, OrderLedger } from './order.ts'
import type { OperationDraft } from './outbox-port.ts'

/** An operation, and where it stands. */
export interface PlayedOperation {
  readonly draft: OperationDraft
  /** `sent` once it was answered. */
  readonly state: 'pending' | 'sent'
  /** Whether it would be sent now: its order is in one of the states in which it makes sense. */
  readonly holds: boolean
}

/** What effects asked for, in order. Where each stands is in the ledger of its order. */
export class PlayOperations {
  readonly #drafts = new Map<string, OperationDraft>()

  record(drafts: readonly OperationDraft[]): void {
    for (const draft of drafts) this.#drafts.set(draft.operationId, draft)
  }

  /** As they were recorded. */
  drafts(): Iterable<OperationDraft> {
    return this.#drafts.values()
  }

  all(orders: ReadonlyMap<string, OrderLedger>): readonly PlayedOperation[] {
    return [...this.#drafts.values()].map((draft) => {
      const order = orders.get(draft.orderId)
      const isSent = order?.operations.some((each) => isOf(each, draft) && each.state === 'sent')
      const holds = draft.whileStates?.includes(order?.state ?? '') ?? true
      return { draft, state: isSent === true ? 'sent' : 'pending', holds }
    })
  }

  /** Marks one as sent, and returns its order; a second answer changes nothing. Null for one that is not there. */
  answer(
    operationId: string,
    receipt: Readonly<Record<string, unknown>>,
    orders: ReadonlyMap<string, OrderLedger>,
  ): OrderLedger | null {
    const draft = this.#drafts.get(operationId)
    const order = draft === undefined ? undefined : orders.get(draft.orderId)
    if (draft === undefined || order === undefined) return null
    order.operations = order.operations.map((each) =>
      isOf(each, draft) && each.state === 'pending'
        ? Object.freeze({ ...each, state: 'sent', receipt })
        : each,
    )
    return order
  }
}

function isOf({ name, destination, effect }: Operation, draft: OperationDraft): boolean {
  return (
    name === draft.name &&
    destination === draft.destination &&
    effect.type === draft.effectType &&
    effect.reference === draft.effectReference
  )
}
