/** What the lines of a story are about, as references to pages. Pure. */
import type { OrderRecord } from './order-record.ts'
import type { ActView, DecisionView, EventView } from './record-views.ts'
import { eventReference, type Reference } from './reference.ts'

/** The event, and the operations that it asked for. */
export function decisionLinks(
  record: OrderRecord,
  { decision_id: id }: DecisionView,
  event: EventView | undefined,
): Reference[] {
  return [
    ...(event === undefined ? [] : [eventReference(event)]),
    ...record.operations
      .filter((operation) => operation.decision_id === id)
      .map((operation): Reference => ({ kind: 'operation', id: operation.operation_id })),
  ]
}

/** What an act was done to: `event:12`, `operation:…`, `finding:…`; an order's own page is where this stands. */
export function targetOf(record: OrderRecord, { target }: ActView): Reference[] {
  const [, kind = '', id = ''] = /^(\w+):(.*)$/s.exec(target) ?? []
  if (kind === 'operation' || kind === 'finding' || kind === 'subject') return [{ kind, id }]
  if (kind !== 'event') return []
  return record.events.filter((event) => event.event_key === id).map(eventReference)
}
