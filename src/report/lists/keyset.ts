/**
 * Pages of lists by keyset: a cursor is where the page before ended, and no page is ever counted from the start.
 * What comes back from a browser is checked again: a cursor is an input like any other.
 */
import { HookledgerError } from '../../core/errors.ts'
import type { Executor, Statement } from '../../postgres/executor.ts'

/** What a page is asked with. */
export interface PageRequest {
  /** The `next` of the page before. */
  readonly cursor?: string | undefined
  readonly limit: number
}

/** A page. */
export interface Page<Item> {
  readonly items: readonly Item[]
  /** Null at the end. */
  readonly next: string | null
}

/**
 * One row more than a page holds was read: it says whether there is another page. Where fewer fitted within what was
 * looked through, the next page goes on from where that stopped.
 */
export function pageOf<Row, Item>(
  rows: readonly Row[],
  limit: number,
  cursorOf: (last: Row) => readonly string[],
  view: (row: Row) => Item,
  stopped: readonly string[] | null = null,
): Page<Item> {
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  const from = rows.length > limit && last !== undefined ? cursorOf(last) : stopped
  return { items: shown.map(view), next: from === null ? null : writeCursor(from) }
}

/** How many rows a page looks through at most, where no index knows what its filter asks for. */
export const mostLooked = 20_000

/**
 * The last row that a page may look at, as the parts of a cursor; null where the list ends before. `along` selects
 * the parts as one array, in the order of the list and from the cursor on, by an index and without the filter.
 */
export async function stopOf(tx: Executor, along: Statement): Promise<readonly string[] | null> {
  const [row] = await tx.query<{ stop: readonly string[] }>({
    ...along,
    text: `select l.stop from (${along.text} offset ${mostLooked - 1} limit 1) as l(stop)`,
  })
  return row?.stop ?? null
}

/** A cursor of these parts. */
export function writeCursor(parts: readonly string[]): string {
  return Buffer.from(JSON.stringify(parts)).toString('base64url')
}

/**
 * The parts of a cursor, each of its form; null without one.
 *
 * @throws HookledgerError HKL_API_INPUT_INVALID for anything else
 */
export function readCursor(
  cursor: string | undefined,
  forms: readonly RegExp[],
): readonly string[] | null {
  if (cursor === undefined) return null
  const parts = parsed(cursor)
  const isFine =
    Array.isArray(parts) &&
    parts.length === forms.length &&
    parts.every((part, at) => typeof part === 'string' && forms[at]?.test(part) === true)
  if (!isFine)
    throw new HookledgerError('HKL_API_INPUT_INVALID', 'cursor: begin the list anew, this is none')
  return parts as readonly string[]
}

/** Forms of parts. */
export const cursorForms: Readonly<Record<'number' | 'moment' | 'text' | 'uuid', RegExp>> = {
  // whatever has so few digits is a bigint
  number: /^\d{1,18}$/,
  // as the database writes it: microseconds and zone
  moment: /^\d{4,6}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?[+-]\d\d(:\d\d)?$/,
  text: /^[^\u0000]{0,512}$/u,
  uuid: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/,
}

function parsed(cursor: string): unknown {
  try {
    return JSON.parse(Buffer.from(cursor, 'base64url').toString())
  } catch {
    return null
  }
}

/** What texts that begin with `text` lie before, by the bytes of their characters. */
export function pastPrefix(text: string): string {
  return `${text}\u{10FFFF}`
}
