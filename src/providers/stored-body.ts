/**
 * A stored body as the engine decides on it: what `readBody` reads, deeply frozen, in one pass over
 * what was parsed. A worker does this for every event, so each further pass would be felt.
 */
import { Buffer, isUtf8 } from 'node:buffer'
import { freezeJson } from '../workflow/any-event.ts'
import { readBody, type BodyProblem } from './body.ts'

/** How large a body's structure may be. */
export interface StoredBodyLimits {
  /** Objects and arrays inside one another. */
  readonly depth: number
  /** Members of all objects together. */
  readonly keys: number
}

/** The frozen object in the bytes, or why there is none. */
export type StoredBody =
  | { readonly ok: true; readonly value: Readonly<Record<string, unknown>> }
  | { readonly ok: false; readonly reason: BodyProblem }

/** Up to this size a body cannot be so deep or so full that parsing it first would hurt. */
const smallBytes = 64 * 1024

/** Reads and freezes a body. Never throws. */
export function readStoredBody(bytes: Uint8Array, limits: StoredBodyLimits): StoredBody {
  if (bytes.byteLength > smallBytes) {
    const read = readBody(bytes, limits)
    return read.ok ? { ok: true, value: freezeJson(read.value) } : read
  }
  if (!isUtf8(bytes)) return { ok: false, reason: 'not_utf8' }
  const value = parse(
    Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8'),
  )
  if (value === undefined) return { ok: false, reason: 'not_json' }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return { ok: false, reason: 'not_object' }
  const census: Census = { keys: 0, deepest: limits.depth, tooDeep: false }
  freeze(value, 1, census)
  if (census.tooDeep) return { ok: false, reason: 'too_deep' }
  if (census.keys > limits.keys) return { ok: false, reason: 'too_many_keys' }
  return { ok: true, value: value as Readonly<Record<string, unknown>> }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

interface Census {
  keys: number
  readonly deepest: number
  tooDeep: boolean
}

/** Freezes from the leaves up, counts members, and takes out those named `__proto__`. */
function freeze(value: object, depth: number, census: Census): void {
  if (depth > census.deepest) {
    census.tooDeep = true
    return
  }
  if (Array.isArray(value)) {
    for (const item of value as unknown[]) {
      if (typeof item === 'object' && item !== null) freeze(item, depth + 1, census)
    }
  } else {
    freezeMembers(value as Record<string, unknown>, depth, census)
  }
  Object.freeze(value)
}

function freezeMembers(members: Record<string, unknown>, depth: number, census: Census): void {
  for (const key in members) {
    census.keys++
    if (key === '__proto__') {
      delete members[key]
      continue
    }
    const member = members[key]
    if (typeof member === 'object' && member !== null) freeze(member, depth + 1, census)
  }
}
