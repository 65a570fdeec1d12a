/**
 * Small judgements about the events of a batch, each of which keeps one from being decided by a process
 * that does not know enough, or from being left where nothing wakes it.
 */
import type { InboxEvent } from '../workflow/event.ts'
import type { FindingKind } from '../workflow/finding-kinds.ts'
import type { OrderLedger } from '../workflow/order.ts'
import type { Outcome } from '../workflow/outcome.ts'
import type { Registry } from '../workflow/registry.ts'
import type { Workflow } from '../workflow/workflow.ts'
import type { SourceName } from './ledger-port.ts'
import { staysOverdue, type Settled } from './outcome-parts.ts'

/** Whether an order is in a state that this version of its workflow does not know: a newer worker decides. */
export function isBeyond(workflow: Workflow, order: OrderLedger | undefined): boolean {
  if (order === undefined || order.workflow !== workflow.name || workflow.states.has(order.state))
    return false
  return ![...workflow.states.values()].some((state) => state.renamedFrom === order.state)
}

/** Whether this process has something to say about an event of its environment. */
export function isKnown(
  { source, accountAllowed, eventType }: InboxEvent,
  registry: Registry,
): boolean {
  return (
    accountAllowed && source.name !== null && registry.candidates(source.name, eventType) !== null
  )
}

/** Whether one of the names that an event waits for is such a one. */
export function waitsFor({ event, wait }: Outcome, isSuch: (name: SourceName) => boolean): boolean {
  return (wait?.names ?? []).some((name) =>
    isSuch({ sourceId: event.sourceId, kind: name.kind, value: name.value }),
  )
}

/** Which findings about an event end with its new outcome: whatever it is now, it is no longer that. */
export function resolvedKinds(each: Settled): readonly FindingKind[] {
  if (!each.row.overdue) return []
  if (each.outcome.kind === 'dead') return ['wait_overdue']
  if (each.outcome.kind === 'deferred' && staysOverdue(each)) return []
  return ['wait_overdue', 'dead_event']
}
