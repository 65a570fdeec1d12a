/**
 * Data that a decision keeps, in the very form in which a ledger gives it back: an event that is
 * decided in the same batch as the effect reads the same as one that comes a month later.
 */
import { PermanentError } from '../core/errors.ts'
import { printable } from './checked-text.ts'

const none: Readonly<Record<string, never>> = Object.freeze({})
const maxDepth = 16

/**
 * A frozen copy as JSON has it: dates become ISO text, bigints decimal text, `undefined` is left out.
 *
 * @throws PermanentError for what JSON cannot hold (functions, cycles) or 16 levels and more.
 */
export function plainData(value: unknown, what: string): Readonly<Record<string, unknown>> {
  if (value === undefined || value === null) return none
  if (typeof value !== 'object' || Array.isArray(value))
    throw new PermanentError(`the ${what} must be an object`)
  return copy(value, what, 0) as Readonly<Record<string, unknown>>
}

function copy(value: unknown, what: string, depth: number): unknown {
  switch (typeof value) {
    case 'string':
      return printable(value)
    case 'bigint':
      return value.toString()
    case 'number':
      return Number.isFinite(value) ? value : null
    case 'boolean':
      return value
    case 'object':
      break
    default:
      throw new PermanentError(`the ${what} must be plain data, not a ${typeof value}`)
  }
  if (value === null) return null
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString()
  if (depth >= maxDepth)
    throw new PermanentError(`the ${what} is nested more than ${maxDepth} deep`)
  if (Array.isArray(value)) {
    return Object.freeze(
      value.map((item: unknown) => (item === undefined ? null : copy(item, what, depth + 1))),
    )
  }
  const fields = Object.entries(value).filter(([, item]) => item !== undefined)
  return Object.freeze(
    Object.fromEntries(fields.map(([key, item]) => [printable(key), copy(item, what, depth + 1)])),
  )
}
