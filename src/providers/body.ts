/**
 * Reading a stored body: linear in its length, bounded in depth and number of keys before anything is
 * built, and honest about what JavaScript cannot represent. The bytes stay the truth; what is read
 * here is a convenience that can be absent, with a reason.
 */
import { Buffer, isUtf8 } from 'node:buffer'

/** How large a body's structure may be. */
export interface BodyLimits {
  /** Objects and arrays inside one another; 64. */
  readonly depth?: number | undefined
  /** Members of all objects together; 10,000. */
  readonly keys?: number | undefined
}

/**
 * What a reader of the value should know: a key came twice in one object (the last one counts), a
 * number is not the one that was written, or a key `__proto__` was left out.
 */
export type BodyWarning = 'duplicate_key' | 'inexact_number' | 'proto_key'

/** Why a body cannot be read. */
export type BodyProblem = 'not_utf8' | 'not_json' | 'too_deep' | 'too_many_keys' | 'not_object'

/** The object in the bytes, or why there is none. */
export type ReadBody =
  | {
      readonly ok: true
      readonly value: Readonly<Record<string, unknown>>
      readonly warnings: readonly BodyWarning[]
    }
  | { readonly ok: false; readonly reason: BodyProblem }

const defaultDepth = 64
const defaultKeys = 10_000

/**
 * The JSON object in the bytes (UTF-8, without a byte order mark). Never throws. Keys named
 * `__proto__` are left out, so that copying with `Object.assign` cannot change a prototype.
 */
export function readBody(bytes: Uint8Array, limits: BodyLimits = {}): ReadBody {
  if (!isUtf8(bytes)) return { ok: false, reason: 'not_utf8' }
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const shape = measure(text, limits.depth ?? defaultDepth, limits.keys ?? defaultKeys)
  if (typeof shape === 'string') return { ok: false, reason: shape }
  const value = parse(text)
  if (value === undefined) return { ok: false, reason: 'not_json' }
  if (!isObject(value)) return { ok: false, reason: 'not_object' }
  const census = { keys: 0, protoKeys: 0 }
  countKeys(value, census)
  const warnings: BodyWarning[] = []
  // Keys written and keys kept differ exactly by the repeated ones.
  if (census.keys !== shape.keys) warnings.push('duplicate_key')
  if (shape.inexact) warnings.push('inexact_number')
  if (census.protoKeys > 0) warnings.push('proto_key')
  return { ok: true, value, warnings }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function parse(text: Buffer): unknown {
  try {
    return JSON.parse(text.toString('utf8'))
  } catch {
    return undefined
  }
}

interface Shape {
  readonly keys: number
  readonly inexact: boolean
}

const quote = 0x22
const backslash = 0x5c
const colon = 0x3a
const minus = 0x2d
const digit0 = 0x30
const digit9 = 0x39

/**
 * Depth, number of keys and exactness of the numbers, if the text is JSON; JSON.parse says
 * afterwards whether it is. Outside of strings, every colon is one key.
 */
function measure(
  text: Buffer,
  maxDepth: number,
  maxKeys: number,
): Shape | 'too_deep' | 'too_many_keys' {
  let depth = 0
  let keys = 0
  let inexact = false
  let at = 0
  while (at < text.length) {
    const byte = text[at] as number
    if (byte === quote) {
      at++
      while (at < text.length && text[at] !== quote) at += text[at] === backslash ? 2 : 1
    } else if (byte === colon) {
      if (++keys > maxKeys) return 'too_many_keys'
    } else if (byte === 0x7b || byte === 0x5b) {
      if (++depth > maxDepth) return 'too_deep'
    } else if (byte === 0x7d || byte === 0x5d) {
      depth--
    } else if (byte === minus || (byte >= digit0 && byte <= digit9)) {
      const end = skipNumber(text, at)
      inexact ||= isInexact(text, at, end)
      at = end - 1
    }
    at++
  }
  return { keys, inexact }
}

function skipNumber(text: Buffer, from: number): number {
  let at = from + 1
  while (at < text.length && isNumberByte(text[at] as number)) at++
  return at
}

function isNumberByte(byte: number): boolean {
  return (
    (byte >= digit0 && byte <= digit9) ||
    byte === 0x2e ||
    byte === 0x2b ||
    byte === minus ||
    (byte | 0x20) === 0x65
  )
}

/** With fewer characters and no exponent, every number is read as the one that was written. */
const alwaysExactLength = 15

function isInexact(text: Buffer, from: number, to: number): boolean {
  if (to - from <= alwaysExactLength && !hasExponent(text, from, to)) return false
  const written = text.toString('latin1', from, to)
  const value = Number(written)
  if (Math.abs(value) > Number.MAX_SAFE_INTEGER) return true
  return normalize(written) !== normalize(String(value))
}

function hasExponent(text: Buffer, from: number, to: number): boolean {
  for (let at = from; at < to; at++) if (((text[at] as number) | 0x20) === 0x65) return true
  return false
}

/** One spelling for each decimal number: digits without zeros at either end, and their exponent. */
function normalize(number: string): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?$/.exec(number) ?? []
  const digits = stripZeros(whole + fraction)
  if (digits.text === '') return '0'
  return `${sign}${digits.text}e${Number(exponent) - fraction.length + digits.trailing}`
}

/** By hand and not by a pattern: `/0+$/` takes quadratic time on zeros that something follows. */
function stripZeros(digits: string): { text: string; trailing: number } {
  let from = 0
  let to = digits.length
  while (from < to && digits[from] === '0') from++
  while (to > from && digits[to - 1] === '0') to--
  return { text: digits.slice(from, to), trailing: digits.length - to }
}

/** Counts the members of all objects, and takes out those named `__proto__`. Depth is bounded. */
function countKeys(value: object, census: { keys: number; protoKeys: number }): void {
  if (Array.isArray(value)) {
    for (const item of value as unknown[]) {
      if (typeof item === 'object' && item !== null) countKeys(item, census)
    }
    return
  }
  const members = value as Record<string, unknown>
  for (const key in members) {
    census.keys++
    const member = members[key]
    if (typeof member === 'object' && member !== null) countKeys(member, census)
    if (key === '__proto__') {
      census.protoKeys++
      delete members[key]
    }
  }
}
