/**
 * Metadata as Stripe updates it: keys given are written, keys given as an empty string are removed, and
 * an empty string in place of the whole removes all.
 */
import type { Metadata } from './object-kinds.ts'

/** The metadata after an update. */
export function mergeMetadata(before: Metadata | null, update: Metadata | ''): Metadata {
  if (update === '') return {}
  const merged = { ...before, ...update }
  return Object.fromEntries(Object.entries(merged).filter(([, value]) => value !== ''))
}
