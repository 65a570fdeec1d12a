/**
 * An event from a provider's body alone, where nothing was received: for runs in memory. Deliveries
 * over HTTP are verified and named by their source instead.
 */
import { fingerprint } from '../core/fingerprint.ts'
import { freezeJson } from './any-event.ts'
import type { Environment, EventContent } from './event.ts'

/** What a body says about itself. */
export interface BodyFacts {
  readonly eventId: string
  readonly eventType: string
  /** The account that the body names (Stripe Connect); null when it names none. */
  readonly account: string | null
  /** The environment that the body names; null when it names none. */
  readonly environment: Environment | null
  readonly occurredAt: Date | null
  readonly content: EventContent
}

/**
 * Reads the usual top-level fields: `id`, `type`, `account`, `livemode`, and `created` (Unix seconds)
 * or `timestamp` (ISO 8601). A body without an id is named after its content.
 *
 * @param body the parsed body, or its JSON text
 */
export function factsOfBody(body: object | string): BodyFacts {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const value = parsed(text)
  const { id, type, account, livemode } = value ?? {}
  return {
    eventId: typeof id === 'string' && id !== '' ? id : `body:${fingerprint(text)}`,
    eventType: typeof type === 'string' && type !== '' ? type : 'unknown',
    account: typeof account === 'string' && account !== '' ? account : null,
    environment: typeof livemode === 'boolean' ? (livemode ? 'live' : 'test') : null,
    occurredAt: momentOf(value?.['created'] ?? value?.['timestamp']),
    content:
      value === null
        ? { readable: false, reason: 'the body is not a JSON object' }
        : { readable: true, value: freezeJson(value) },
  }
}

function parsed(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text)
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
    return isObject ? (value as Record<string, unknown>) : null
  } catch {
    return null
  }
}

function momentOf(value: unknown): Date | null {
  const ms =
    typeof value === 'number' ? value * 1000 : typeof value === 'string' ? Date.parse(value) : NaN
  return Number.isFinite(ms) && Math.abs(ms) < 8.64e15 ? new Date(ms) : null
}
