/** Values as drivers hand them back, as values that reports print. */

/** A number of rows or of milliseconds: far below 2^53. */
export type Count = number

/** A time as ISO 8601 text in UTC. */
export type IsoTime = string

/** A count that came back as text. */
export function counted(value: string | number | null | undefined): Count {
  return Number(value ?? 0)
}

/** A time that came back as a Date or as text. */
export function isoTime(value: Date | string | null | undefined): IsoTime | null {
  if (value === null || value === undefined) return null
  return (value instanceof Date ? value : new Date(value)).toISOString()
}

/** A time that is never null. */
export function requiredTime(value: Date | string): IsoTime {
  return isoTime(value) ?? ''
}

/** An amount in minor units, exact at any size. */
export function exactAmount(value: string | number | bigint | null | undefined): bigint | null {
  return value === null || value === undefined ? null : BigInt(value)
}

/**
 * Parses JSON that PostgreSQL hands out as text; integers past 2^53 become bigint instead of being
 * rounded. The tag cannot occur in jsonb, which refuses NUL.
 */
export function exactJson(text: string | null): unknown {
  if (text === null) return null
  const tagged = text.replace(/"(?:[^"\\]|\\.)*"|-?\d{16,}(?![\d.eE])/g, (token) =>
    token.startsWith('"') || Number.isSafeInteger(Number(token)) ? token : `"\\u0000${token}"`,
  )
  return JSON.parse(tagged, (_, value: unknown) =>
    typeof value === 'string' && value.startsWith('\u0000') ? BigInt(value.slice(1)) : value,
  )
}
