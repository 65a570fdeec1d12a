/**
 * What is kept of an answer in the ledger: a few ids and figures, never a document. Whatever a
 * destination or a person's function gives is cut to that here.
 */
import type { Receipt } from '../destination.ts'

const mostFields = 20
const longestText = 255

/** Text that PostgreSQL's JSON takes: no NUL, no half of a surrogate pair. */
function storable(text: string): string {
  return text.replaceAll('\0', '').toWellFormed().slice(0, longestText).toWellFormed()
}

/** The fields that can be kept: texts (cut at 255 characters), numbers, booleans and nulls, 20 at most. */
export function keptReceipt(value: unknown): Receipt {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return {}
  const kept: [string, Receipt[string]][] = []
  for (const [name, field] of Object.entries(value)) {
    if (kept.length === mostFields) break
    const plain = scalar(field)
    if (plain !== undefined) kept.push([storable(name), plain])
  }
  return Object.freeze(Object.fromEntries(kept))
}

function scalar(value: unknown): Receipt[string] | undefined {
  if (value === null || typeof value === 'boolean') return value
  if (typeof value === 'string') return storable(value)
  if (typeof value === 'number') return isExact(value) ? value : undefined
  return typeof value === 'bigint' ? value.toString() : undefined
}

/** An integer past 2^53 may be another one already, and an id that is nearly right is a wrong one. */
function isExact(value: number): boolean {
  return Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value))
}

/** The named fields of an object that are ids or figures. */
export function pickReceipt(value: unknown, names: readonly string[]): Receipt {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return {}
  const fields = value as Record<string, unknown>
  return keptReceipt(
    Object.fromEntries(
      names.flatMap((name) => {
        const field = Object.hasOwn(fields, name) ? fields[name] : undefined
        return field === undefined || field === null ? [] : [[name, field]]
      }),
    ),
  )
}
