/**
 * Texts that become keys, and names that must be declared. What fails here can never be decided, so
 * it is a PermanentError: the event ends dead with a reason that names the culprit.
 */
import { PermanentError } from '../core/errors.ts'
import { nearest } from '../core/nearest.ts'

/** The longest order id or name, in UTF-8 bytes: index keys stay far below PostgreSQL's limit. */
export const maxKeyBytes = 255

/**
 * The text, if it can be a key: not empty, at most 255 bytes of UTF-8, without NUL, valid Unicode.
 *
 * @throws PermanentError otherwise, saying what is wrong with `what`, and never its value.
 */
export function keyText(value: unknown, what: string): string {
  if (typeof value !== 'string') throw new PermanentError(`the ${what} is not a text`)
  if (value === '') throw new PermanentError(`the ${what} is empty`)
  if (
    value.length > maxKeyBytes ||
    (value.length * 3 > maxKeyBytes && utf8Bytes(value) > maxKeyBytes)
  ) {
    throw new PermanentError(`the ${what} is longer than ${maxKeyBytes} bytes`)
  }
  if (value.includes('\u0000')) throw new PermanentError(`the ${what} contains NUL`)
  if (!value.isWellFormed()) throw new PermanentError(`the ${what} is not valid Unicode`)
  return value
}

function utf8Bytes(value: string): number {
  let bytes = 0
  for (const character of value) {
    const point = character.codePointAt(0) ?? 0
    bytes += point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4
  }
  return bytes
}

/**
 * Holds a name to those that a workflow declares.
 *
 * @throws PermanentError naming it, and the nearest declared one.
 */
export function declared(
  workflow: string,
  what: 'state' | 'effect',
  value: unknown,
  names: ReadonlyMap<string, unknown>,
): void {
  if (typeof value === 'string' && names.has(value)) return
  const near = nearest(String(value).slice(0, 80), names.keys())
  const hint = near === null ? '' : `, did it mean "${near}"?`
  const shown = printable(String(value).slice(0, 80))
  throw new PermanentError(`workflow ${workflow} declares no ${what} "${shown}"${hint}`)
}

/** A text that any database can keep, whatever it was: NUL and broken Unicode become U+FFFD. */
export function printable(value: string): string {
  return String(value).toWellFormed().replaceAll('\u0000', '\ufffd')
}
