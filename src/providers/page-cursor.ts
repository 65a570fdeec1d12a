/**
 * The cursor of a list that goes on after its last record. It remembers the borders of the pages before,
 * so that whoever goes on, also another process, sees a page that comes again.
 */
import { createHash } from 'node:crypto'
import { RecordsError } from '../workflow/records.ts'

/** Where a slice is. */
export interface PageCursor {
  /** The id of the last record of the page before. */
  readonly after: string
  /** Marks of the first and the last record of every page so far. */
  readonly borders: readonly string[]
}

const markLength = 8

/**
 * The cursor in its text form; null for the first page.
 *
 * @throws RecordsError `cursor_lost` for a text that is none
 */
export function readCursor(text: string | null): PageCursor | null {
  if (text === null) return null
  const [after, marks, ...rest] = text.split(' ')
  const isWhole =
    after !== undefined &&
    after !== '' &&
    marks !== undefined &&
    marks.length % markLength === 0 &&
    rest.length === 0
  if (!isWhole) throw new RecordsError('cursor_lost', 'the stored cursor cannot be read')
  return { after, borders: marks.match(/.{8}/g) ?? [] }
}

/** The cursor of the page after this one, as text. */
export function nextCursor(before: PageCursor | null, ids: readonly string[]): string {
  const first = ids[0] ?? ''
  const last = ids.at(-1) ?? ''
  const borders = [
    ...(before?.borders ?? []),
    markOf(first),
    ...(ids.length > 1 ? [markOf(last)] : []),
  ]
  return `${last} ${borders.join('')}`
}

/** Whether a record of an earlier page is among these. */
export function comesAgain(before: PageCursor | null, ids: readonly string[]): boolean {
  if (before === null) return false
  const borders = new Set(before.borders)
  return ids.some((id) => borders.has(markOf(id)))
}

/** 48 bits: of a thousand borders and a hundred thousand ids, less than one in a million is taken for another. */
function markOf(id: string): string {
  return createHash('sha256').update(id).digest('base64url').slice(0, markLength)
}
