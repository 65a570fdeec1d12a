/**
 * Outcomes of events that belong to no order, as far as is known now: ignored, unreadable, claimed
 * twice, or waiting for the names of all that wait for it.
 */
import type { InboxEvent } from './event.ts'
import { finding } from './finding-kinds.ts'
import type { Name } from './order.ts'
import { emptyOutcome, type Outcome } from './outcome.ts'
import type { Claim, Resolved, Waiting } from './resolve-event.ts'

/** An event that resolving left without an order, and that has an outcome by itself. */
export type Orderless = Exclude<Resolved, Claim | { readonly kind: 'failed' }>

/** The outcome of an event without an order. */
export function orderlessOutcome(resolved: Orderless, decisionId: bigint): Outcome {
  const { event } = resolved
  const base = { ...emptyOutcome, decisionId, event }
  switch (resolved.kind) {
    case 'ignored':
      return { ...base, kind: 'ignored', reason: resolved.reason }
    case 'left':
      return { ...base, kind: 'ignored', reason: `nothing handles ${event.eventType}` }
    case 'dead':
      return deadOutcome(event, decisionId, resolved.reason)
    case 'plain':
      return { ...base, kind: 'handled', reason: 'taken by a plain handler' }
    case 'waiting':
      return waitingOutcome(resolved, decisionId)
    case 'contradicted': {
      const { reason, orderIds } = resolved
      const figures = { reason, orders: orderIds.join(', ') }
      const findings = [finding('two_claims', `event:${event.key}`, figures)]
      return { ...base, kind: 'contradicted', reason, evidence: { orders: orderIds }, findings }
    }
  }
}

/** The outcome of an event that can never be decided as it is. */
export function deadOutcome(event: InboxEvent, decisionId: bigint, reason: string): Outcome {
  const figures = { event: event.eventId, type: event.eventType, reason }
  const findings = [finding('dead_event', `event:${event.key}`, figures)]
  return { ...emptyOutcome, decisionId, event, kind: 'dead', reason, findings }
}

/** As long as the most patient of those that wait; null: the default. */
function longestOf({ waits }: Waiting): number | null {
  const each = waits.map(({ candidate }) => candidate.handler.unclaimedAfterMs)
  return each.includes(undefined) ? null : Math.max(...each.map((ms) => ms ?? 0))
}

function waitingOutcome(waiting: Waiting, decisionId: bigint): Outcome {
  const distinct = new Map<string, Name>()
  for (const { names } of waiting.waits) {
    for (const name of names) distinct.set(`${name.kind}\n${name.value}`, name)
  }
  const names = [...distinct.values()]
  const description = names.map((name) => `${name.kind} ${name.value}`).join(' or ')
  // ignore holds only if all that wait say so
  const ignores = waiting.waits.every(({ candidate }) => candidate.handler.unclaimed === 'ignore')
  return {
    ...emptyOutcome,
    decisionId,
    event: waiting.event,
    kind: 'deferred',
    reason: `waits for ${description}`,
    wait: {
      names,
      orderId: null,
      description,
      forMs: ignores ? longestOf(waiting) : null,
      atDeadline: ignores ? 'ignore' : 'finding',
    },
  }
}
