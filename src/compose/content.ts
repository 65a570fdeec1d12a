/** Stored bodies as deciding sees them: readable, or with the reason why not. */
import { readStoredBody } from '../providers/stored-body.ts'
import type { EventContent } from '../workflow/event.ts'

const unreadable = {
  not_utf8: 'unreadable: the body is not UTF-8',
  not_json: 'unreadable: the body is not JSON',
  not_object: 'unreadable: the body is not a JSON object',
  too_deep: 'unreadable: the body is nested too deep',
  too_many_keys: 'unreadable: the body has too many keys',
} as const

/** Reads a stored body within the limits of nesting and of keys. */
export function contentOf(
  bytes: Uint8Array,
  limits: { readonly jsonDepth: number; readonly jsonKeys: number },
): EventContent {
  const read = readStoredBody(bytes, { depth: limits.jsonDepth, keys: limits.jsonKeys })
  if (!read.ok) return { readable: false, reason: unreadable[read.reason] }
  return { readable: true, value: read.value }
}
