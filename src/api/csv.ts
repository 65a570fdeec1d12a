/**
 * Rows as CSV by RFC 4180, which no spreadsheet can take for anything but text: a cell that would begin a
 * formula is preceded by an apostrophe.
 */
import { toJson } from '../core/json.ts'

/** A download of these rows. */
export function csvOf(
  name: string,
  columns: readonly string[],
  rows: readonly Readonly<Record<string, unknown>>[],
): Response {
  const lines = [
    columns.join(','),
    ...rows.map((row) => columns.map((column) => cell(row[column])).join(',')),
  ]
  return new Response(`${lines.join('\r\n')}\r\n`, {
    headers: {
      'content-type': 'text/csv; charset=utf-8; header=present',
      'content-disposition': `attachment; filename="${name}.csv"`,
    },
  })
}

/** One cell, quoted wherever it must be. */
export function cell(value: unknown): string {
  if (value === null || value === undefined) return ''
  const text =
    typeof value === 'object' || typeof value === 'bigint' ? toJson(value) : String(value)
  // a minus before digits is a number, and stays one
  const isFormula = /^[\t\r\n\0 ]*[=+@-]/.test(text) && !/^-?\d+(\.\d+)?$/.test(text)
  const safe = isFormula || /^[\t\r\0]/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
