/**
 * Rows of the record as the API sends them: amounts are texts, since they may pass 2^53. What the workflows and
 * providers gave (evidence, receipts, plans) is left as it is; its integers stay exact, too.
 */
import type { z } from 'zod'

/** A shape whose input and output are both this. */
export type Shape<T> = z.ZodType<T, T>

/** The type with texts in the place of bigints. */
export type Wire<T> = unknown extends T
  ? T
  : T extends bigint
    ? string
    : T extends readonly (infer Item)[]
      ? readonly Wire<Item>[]
      : T extends object
        ? { readonly [Key in keyof T]: Wire<T[Key]> }
        : T

/** Fields that hold whatever somebody else wrote. */
const open: ReadonlySet<string> = new Set([
  'evidence',
  'receipt',
  'data',
  'plan',
  'previous_state',
  'new_state',
  'coverage',
])

/** The value with texts in the place of bigints. */
export function toWire<T>(value: T): Wire<T> {
  return written(value) as Wire<T>
}

function written(value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString()
  if (Array.isArray(value)) return value.map(written)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [key, open.has(key) ? each : written(each)]),
  )
}
