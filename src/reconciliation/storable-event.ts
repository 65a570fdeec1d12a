/** What a provider's records name must fit into the inbox's keys, as what its deliveries name does. */
import { Buffer } from 'node:buffer'
import { RecordsError, type MadeEvent } from '../workflow/records.ts'

/** The longest id or type that is stored, in bytes of UTF-8. */
const longestNameBytes = 255

/** @throws RecordsError `garbage` for an id or a type that cannot be stored */
export function requireStorable({ eventId, eventType, apiVersion }: MadeEvent): void {
  const names = apiVersion === null ? [eventId, eventType] : [eventId, eventType, apiVersion]
  if (names.every(isStorable)) return
  throw new RecordsError(
    'garbage',
    'a record names an event whose id, type or version is empty, longer than 255 bytes or no text: check what eventsOf makes of it',
  )
}

function isStorable(text: unknown): boolean {
  return (
    typeof text === 'string' &&
    text !== '' &&
    !text.includes('\0') &&
    text.isWellFormed() &&
    Buffer.byteLength(text, 'utf8') <= longestNameBytes
  )
}
