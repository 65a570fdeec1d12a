/**
 * What may become an identity: texts that a unique key can hold byte for byte. Everything else gets
 * the hash of the body as its id, so that no delivery is ever refused for its name.
 */
import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'

/** The longest id, type or account that is kept, in bytes of UTF-8. */
export const longestNameBytes: number = 255

/** The event type of a body that has none that can be kept. */
export const unknownType: string = 'unknown'

/** What stands for an id that cannot be kept; see `bodyIdentity`. */
export const hashPrefix: string = 'sha256:'

/**
 * The text when it can be kept: not empty, at most 255 bytes, without NUL (no database text holds
 * it), without lone surrogates (two of them would become one in UTF-8).
 */
export function keepableName(value: unknown): string | undefined {
  if (typeof value !== 'string' || value === '' || value.length > longestNameBytes) return undefined
  if (value.includes('\0') || !value.isWellFormed()) return undefined
  return Buffer.byteLength(value, 'utf8') <= longestNameBytes ? value : undefined
}

/** `sha256:<hex of the bytes>`: the identity of a body without one of its own. */
export function bodyIdentity(rawBody: Uint8Array): string {
  return hashPrefix + createHash('sha256').update(rawBody).digest('hex')
}

/** The last second that a database and every driver write with a four-digit year. */
const lastSecond = 253_402_300_799

/** The moment of Unix seconds; undefined when it is no moment from 1970 to 9999. */
export function dateOfSeconds(value: unknown): Date | undefined {
  if (typeof value !== 'number' || !(value >= 0 && value <= lastSecond)) return undefined
  return new Date(Math.floor(value * 1000))
}

/** The moment of an ISO 8601 text with date, time and zone; undefined when it is none. */
export function dateOfText(value: unknown): Date | undefined {
  if (typeof value !== 'string' || value.length > 40) return undefined
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)$/.test(value))
    return undefined
  const ms = Date.parse(value)
  return ms >= 0 && ms <= lastSecond * 1000 ? new Date(ms) : undefined
}
