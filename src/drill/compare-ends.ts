/** What it means that a case ended otherwise than the same events without a fault: a name for each way in which it can be. */
import type { CaseKind } from './drill-case.ts'
import { orderDifferences, tableDifferences, volatileColumns, type End } from './oracle/ends.ts'
import type { PromiseId, Violation } from './oracle/verdict.ts'

/** Two runs without a fault: what they agree in is what every other run must end with. */
export interface Reference {
  readonly end: End
  readonly volatile: ReadonlySet<string>
}

/** The reference of two ends. */
export function referenceOf(end: End, shifted: End): Reference {
  return { end, volatile: volatileColumns(end, shifted) }
}

const meaning: Readonly<
  Record<
    CaseKind,
    { readonly orders: string; readonly tables: string; readonly promise: PromiseId }
  >
> = {
  plain: { orders: 'ended_differently', tables: 'ended_differently', promise: 'P3' },
  kill: { orders: 'ended_differently', tables: 'apply_outside_transaction', promise: 'P3' },
  postgres: { orders: 'ended_differently', tables: 'apply_outside_transaction', promise: 'P3' },
  commit: { orders: 'ended_differently', tables: 'apply_outside_transaction', promise: 'P3' },
  permutation: { orders: 'order_matters', tables: 'order_matters', promise: 'P10' },
  refund: { orders: 'order_matters', tables: 'order_matters', promise: 'P10' },
  duplicate: { orders: 'ended_differently', tables: 'not_idempotent', promise: 'P2' },
  simultaneous: { orders: 'ended_differently', tables: 'not_idempotent', promise: 'P2' },
  twin: { orders: 'effect_keyed_by_event', tables: 'added_outside_effect', promise: 'P2' },
  off: { orders: 'ended_differently', tables: 'not_idempotent', promise: 'P5' },
  provider: { orders: 'ended_differently', tables: 'not_idempotent', promise: 'P5' },
  destination: { orders: 'ended_differently', tables: 'not_idempotent', promise: 'P6' },
  reconcile: { orders: 'never_arrived', tables: 'never_arrived', promise: 'P7' },
}

/** What is wrong about an end. */
export function compareEnds(
  kind: CaseKind,
  { end, volatile }: Reference,
  actual: End,
): Violation[] {
  const { orders, tables, promise } = meaning[kind]
  const found: Violation[] = []
  const inOrders = orderDifferences(end, actual)
  if (inOrders.length > 0)
    found.push({ fault: orders, promise, detail: inOrders.slice(0, 6).join('; ') })
  const inTables = tableDifferences(end, actual, volatile)
  if (inTables.length > 0)
    found.push({ fault: tables, promise, detail: inTables.slice(0, 6).join('; ') })
  return found
}
