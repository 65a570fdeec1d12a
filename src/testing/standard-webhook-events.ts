/**
 * Events of Standard Webhooks as they arrive, for tests and histories: type, time and data, with the same bytes and
 * id for the same options. The id travels in a header, so that an event and its headers are made together.
 */
import { createHash } from 'node:crypto'

/** What the envelope of an event says. */
export interface StandardWebhookEventOptions {
  /** When it happened; 2026-01-01T12:00:00Z. */
  readonly timestamp?: Date | undefined
}

/** An event as the specification has it. */
export interface StandardWebhookEvent<Type extends string, Data> {
  readonly type: Type
  /** ISO 8601. */
  readonly timestamp: string
  readonly data: Data
}

/**
 * An event of any type around its data.
 *
 * @example standardWebhookEvent('invoice.paid', { id: 'inv_1', order: '1001' })
 */
export function standardWebhookEvent<Type extends string, Data extends object>(
  type: Type,
  data: Data,
  { timestamp = new Date('2026-01-01T12:00:00Z') }: StandardWebhookEventOptions = {},
): StandardWebhookEvent<Type, Data> {
  return { type, timestamp: timestamp.toISOString(), data }
}

/** The bytes as the specification recommends them: no white space. */
export function standardWebhookBody(event: object): string {
  return JSON.stringify(event)
}

/** `msg_…`: the id that an event has where none is given; it follows from its bytes alone. */
export function standardWebhookId(event: object): string {
  const digest = createHash('sha256').update(standardWebhookBody(event)).digest('base64url')
  return `msg_${digest.replace(/[-_]/g, '').slice(0, 24)}`
}
