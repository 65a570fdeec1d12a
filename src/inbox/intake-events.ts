/**
 * From a verified delivery to rows that can always be written: whatever a source says of its events,
 * names that no key can hold are replaced by the hash of the body, so that an authentic delivery is
 * never refused for what is in it.
 */
import { Buffer } from 'node:buffer'
import { hash } from 'node:crypto'
import type { IncomingDelivery, IncomingEvent } from './intake-statement.ts'
import type { InboxSource, NamedInboxEvent, RawDelivery } from './source.ts'

/** The longest id, type or account that is stored, in bytes of UTF-8. */
const longestNameBytes = 255

/** A text of at most this many UTF-16 units cannot be longer than `longestNameBytes`. */
const surelyShort = 85

const firstMoment = Date.parse('0001-01-01T00:00:00.000Z')
const lastMoment = Date.parse('9999-12-31T23:59:59.999Z')

/** The delivery as it is stored. A delivery that names no event is one event of its own. */
export function toIncoming(source: InboxSource, delivery: RawDelivery): IncomingDelivery {
  const { rawBody } = delivery
  const bodySha256 = hash('sha256', rawBody, 'buffer')
  return { events: nameAll(source, delivery, bodySha256), rawBody, bodySha256 }
}

function nameAll(
  source: InboxSource,
  delivery: RawDelivery,
  bodySha256: Buffer,
): readonly IncomingEvent[] {
  let named: readonly IncomingEvent[] = []
  try {
    named = source.name(delivery).map((event) => toRow(source, event, bodySha256))
  } catch {
    // authentic bytes are kept whatever naming makes of them
  }
  return named.length > 0 ? named : [toRow(source, unnamed, bodySha256)]
}

const unnamed: NamedInboxEvent = { eventId: '', eventType: '' }

function toRow(source: InboxSource, event: NamedInboxEvent, bodySha256: Buffer): IncomingEvent {
  const identity = (): string => `sha256:${bodySha256.toString('hex')}`
  const { providerAccount = source.account, environment = source.environment } = event
  return {
    namespace: {
      provider: source.provider,
      // an account that cannot be stored must not pass as another one
      account: isStorable(providerAccount) ? providerAccount : identity(),
      environment,
    },
    eventId: isStorable(event.eventId) ? event.eventId : identity(),
    eventType: isStorable(event.eventType) ? event.eventType : 'unknown',
    occurredAt: isoText(event.occurredAt),
    apiVersion: isStorable(event.apiVersion) ? event.apiVersion : null,
  }
}

function isStorable(text: unknown): text is string {
  if (typeof text !== 'string' || text === '' || text.includes('\0')) return false
  if (text.length > longestNameBytes || !text.isWellFormed()) return false
  return text.length <= surelyShort || Buffer.byteLength(text, 'utf8') <= longestNameBytes
}

function isoText(moment: unknown): string | null {
  if (!(moment instanceof Date)) return null
  const ms = moment.getTime()
  return ms >= firstMoment && ms <= lastMoment ? moment.toISOString() : null
}
