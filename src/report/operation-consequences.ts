/** What came back: events that one of our own calls caused at the provider. */
import type { Database } from '../postgres/executor.ts'
import type { OperationView } from './record-views.ts'

/** An event that an operation caused, with the decision about it; the keys are what `--json` prints. */
export interface CausedEvent {
  readonly event_id: string
  readonly event_type: string
  readonly decision_id: string
  readonly kind: string
}

/** The events whose decision names the operation as their cause, by the index of its order. */
export async function causedBy(
  db: Database,
  operation: Pick<OperationView, 'operation_id' | 'order_id'>,
): Promise<CausedEvent[]> {
  if (operation.order_id === null) return []
  const s = db.schema
  return db.query<CausedEvent>({
    text: `select e.event_id, e.event_type, d.decision_id, d.kind
      from ${s}ledger_decisions d join ${s}inbox_events e on e.event_key = d.event_key
      where d.order_id = $1 and d.evidence ->> 'operation' = $2 order by d.decision_id limit 100`,
    values: [operation.order_id, operation.operation_id],
  })
}
