/**
 * The body of a send as JSON text, made once: what cannot be written exactly is refused here, by the
 * place where it stands and not by its value, instead of being sent as something else.
 */
import { PermanentError } from '../../core/errors.ts'
import { toJson } from '../../core/json.ts'

const deepest = 64

/** The largest request, in bytes. */
export const largestRequestBytes: number = 1024 * 1024

/**
 * The JSON text of plain data; bigints become integers of any size, `undefined` fields are left out.
 * `change` is made after the check.
 *
 * @throws PermanentError for what JSON cannot hold exactly, naming where it stands
 */
export function jsonBody(value: unknown, change: (value: unknown) => unknown = same): string {
  if (value === undefined) throw new PermanentError('the body is undefined')
  check(value, 'body', 0, [])
  return toJson(change(value))
}

const same = (value: unknown): unknown => value

/** Large integers as text, for a reader that would round them. */
export function bigintsAsText(value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString()
  if (typeof value !== 'object' || value === null || value instanceof Date) return value
  if (Array.isArray(value)) return value.map(bigintsAsText)
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [name, bigintsAsText(item)]),
  )
}

/** @throws PermanentError when a request is larger than may be sent. */
export function requestBytes(text: string): Uint8Array {
  const bytes = new TextEncoder().encode(text)
  if (bytes.byteLength <= largestRequestBytes) return bytes
  throw new PermanentError(
    `the request has ${bytes.byteLength} bytes, more than ${largestRequestBytes}; send a reference instead of the whole`,
  )
}

function check(value: unknown, at: string, depth: number, above: readonly object[]): void {
  switch (typeof value) {
    case 'string':
    case 'boolean':
    case 'bigint':
    case 'undefined':
      return
    case 'number':
      if (Number.isFinite(value)) return
      throw new PermanentError(`${at} is ${value}, which JSON cannot hold`)
    case 'object':
      if (value !== null) checkObject(value, at, depth, above)
      return
    default:
      throw new PermanentError(`${at} is a ${typeof value}; give plain data`)
  }
}

function checkObject(value: object, at: string, depth: number, above: readonly object[]): void {
  if (depth >= deepest) throw new PermanentError(`the body is nested more than ${deepest} deep`)
  if (above.includes(value)) throw new PermanentError(`${at} contains itself`)
  if (value instanceof Date) {
    if (Number.isNaN(value.getTime())) throw new PermanentError(`${at} is an invalid date`)
    return
  }
  const inside = [...above, value]
  if (Array.isArray(value)) {
    for (const [index, item] of (value as unknown[]).entries()) {
      check(item, `${at}[${index}]`, depth + 1, inside)
    }
    return
  }
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) {
    throw new PermanentError(`${at} is no plain object; give its fields instead`)
  }
  for (const [key, item] of Object.entries(value)) check(item, `${at}.${key}`, depth + 1, inside)
}
