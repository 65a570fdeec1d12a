/** Tells what became of each event, after the commit that made it so. */
import type { Signals } from '../core/signals.ts'
import type { Settled } from '../inbox/outcome-parts.ts'

/** Emits one signal an event, if anybody listens, and one for the operations that were recorded. */
export function emitOutcomes(signals: Signals, settled: readonly Settled[]): void {
  emitOperations(signals, settled)
  if (!signals.has('inbox.event.decided')) return
  const now = Date.now()
  for (const { row, outcome, trace } of settled) {
    const { event, wait } = outcome
    signals.emit('inbox.event.decided', {
      eventId: event.eventId,
      eventType: event.eventType,
      source: event.source.name ?? event.source.provider,
      outcome: outcome.kind,
      reason: outcome.reason,
      orderId: outcome.orderId,
      workflow: outcome.workflow,
      from: outcome.from,
      to: outcome.to,
      effects: outcome.effects.map((each) =>
        each.reference === '' ? each.type : `${each.type} ${each.reference}`,
      ),
      granted: outcome.granted,
      revoked: outcome.revoked,
      findings: outcome.findings.map((each) => each.kind),
      waitsFor: wait?.description ?? null,
      until: wait === null ? null : row.deadlineAt,
      attempts: row.attempts + 1,
      ageMs: now - event.receivedAt.getTime(),
      ...(trace == null ? {} : { traceId: trace.slice(3, 35) }),
    })
  }
}

/**
 * Tells whose entitlements an event changed, if anybody listens. What persons, rules and the clock change is
 * told from the list of changes.
 */
export function emitEntitled(signals: Signals, settled: readonly Settled[]): void {
  if (!signals.has('entitlements.changed')) return
  for (const { outcome } of settled) {
    for (const subject of outcome.entitled ?? []) {
      const { orderId } = outcome
      signals.emit('entitlements.changed', { subject, orderId, because: 'event' })
    }
  }
}

function emitOperations(signals: Signals, settled: readonly Settled[]): void {
  const destinations = new Set<string>()
  for (const { outcome } of settled)
    for (const { destination } of outcome.operations) destinations.add(destination)
  if (destinations.size > 0)
    signals.emit('outbox.operations.recorded', { destinations: [...destinations] })
}

/** Tells a gatherer in the same process that events wait for answers. */
export function emitAsked(signals: Signals, asked: readonly bigint[]): void {
  if (asked.length > 0) signals.emit('gather.answers.wanted', { events: asked.length })
}
