/**
 * The event as users' functions see it: the provider's body and the inbox's facts, deeply frozen, so
 * that no workflow can change what another one reads.
 */
import type { InboxEvent } from './event.ts'
import type { AnyEvent } from './workflow.ts'

/**
 * The frozen event. Own keys named `__proto__` stay plain data: spreading defines, it never assigns.
 * A Date cannot be frozen, so that every reading gives a new one.
 */
export function anyEvent(event: InboxEvent, body: Readonly<Record<string, unknown>>): AnyEvent {
  return Object.freeze({
    ...body,
    get receivedAt() {
      return new Date(event.receivedAt)
    },
    get occurredAt() {
      return event.occurredAt === null ? null : new Date(event.occurredAt)
    },
    synthetic: event.synthetic,
    source: event.source,
  })
}

/** Freezes parsed JSON in place and returns it. Iterative: depth is bounded by whoever parsed it. */
export function freezeJson<T>(value: T): T {
  const stack: unknown[] = [value]
  for (let item = stack.pop(); item !== undefined; item = stack.pop()) {
    if (typeof item !== 'object' || item === null || Object.isFrozen(item)) continue
    Object.freeze(item)
    for (const child of Object.values(item)) {
      if (typeof child === 'object' && child !== null) stack.push(child)
    }
  }
  return value
}
