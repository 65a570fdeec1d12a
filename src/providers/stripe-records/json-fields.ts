/**
 * Fields of JSON that nobody vouches for, each as what it should be or as nothing.
 */

/** A JSON object. */
export type Json = Readonly<Record<string, unknown>>

/** A text, or null. */
export function textIn(object: Json, field: string): string | null {
  const value = object[field]
  return typeof value === 'string' && value !== '' ? value : null
}

/** An object, or null: also for a field that holds only an id. */
export function recordIn(object: Json, field: string): Json | null {
  const value = object[field]
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Json)
    : null
}

/** The id in a field that holds an id or the whole object. */
export function idIn(object: Json, field: string): string | null {
  return textIn(object, field) ?? textIn(recordIn(object, field) ?? {}, 'id')
}

/** The objects of an array. */
export function recordsIn(object: Json, field: string): readonly Json[] {
  const value = object[field]
  if (!Array.isArray(value)) return []
  return value.filter((item): item is Json => typeof item === 'object' && item !== null)
}

/** An amount in minor units; 0 where there is none. */
export function amountOf(object: Json, field: string): bigint {
  const value = object[field]
  return typeof value === 'number' && Number.isSafeInteger(value) ? BigInt(value) : 0n
}
