/**
 * The few top-level fields that name an event, read from the bytes in one pass that allocates
 * nothing for the rest: time is linear, nesting costs nothing, and no input makes it throw.
 */
import { Buffer, isUtf8 } from 'node:buffer'

/** Stands for an object or an array: there is a value, and it names nothing. */
export const composite: unique symbol = Symbol('composite')

/** A top-level value: what JSON says for a text, number, boolean or null, else `composite`. */
export type TopLevelValue = string | number | boolean | null | typeof composite

const quote = 0x22
const backslash = 0x5c
const comma = 0x2c
const colon = 0x3a
const openBrace = 0x7b
const closeBrace = 0x7d
const openBracket = 0x5b
const closeBracket = 0x5d

/**
 * The values of the wanted fields of a JSON object; the last one wins where a key is repeated, as in
 * JSON.parse. Undefined when the bytes are not UTF-8 or not one object. What lies deeper is skipped
 * without being judged: a body can be named here and still be unreadable later.
 */
export function readTopLevel(
  bytes: Uint8Array,
  wanted: ReadonlySet<string>,
): ReadonlyMap<string, TopLevelValue> | undefined {
  if (!isUtf8(bytes)) return undefined
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const found = new Map<string, TopLevelValue>()
  let at = skipSpace(text, 0)
  if (text[at] !== openBrace) return undefined
  at = skipSpace(text, at + 1)
  if (text[at] === closeBrace) return isEnd(text, at + 1) ? found : undefined
  for (;;) {
    if (text[at] !== quote) return undefined
    const keyEnd = skipString(text, at)
    const key = decode(text, at, keyEnd)
    at = skipSpace(text, keyEnd)
    if (typeof key !== 'string' || text[at] !== colon) return undefined
    at = skipSpace(text, at + 1)
    const valueEnd = skipValue(text, at)
    if (valueEnd === at) return undefined
    if (wanted.has(key)) {
      const value = decode(text, at, valueEnd)
      if (value === undefined) return undefined
      found.set(key, value)
    }
    at = skipSpace(text, valueEnd)
    if (text[at] === closeBrace) return isEnd(text, at + 1) ? found : undefined
    if (text[at] !== comma) return undefined
    at = skipSpace(text, at + 1)
  }
}

function isEnd(text: Buffer, from: number): boolean {
  return skipSpace(text, from) === text.length
}

function skipSpace(text: Buffer, from: number): number {
  let at = from
  while (isSpace(text[at])) at++
  return at
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
}

/** The end of the string that starts at `from`; past the end of the text when it is not closed. */
function skipString(text: Buffer, from: number): number {
  let at = from + 1
  while (at < text.length && text[at] !== quote) at += text[at] === backslash ? 2 : 1
  return at + 1
}

function skipValue(text: Buffer, from: number): number {
  const first = text[from]
  if (first === quote) return skipString(text, from)
  if (first === openBrace || first === openBracket) return skipComposite(text, from)
  let at = from
  while (at < text.length && !endsScalar(text[at])) at++
  return at
}

function endsScalar(byte: number | undefined): boolean {
  return byte === comma || byte === closeBrace || byte === closeBracket || isSpace(byte)
}

/** The end of the object or array that starts at `from`, by counting: no stack, any depth. */
function skipComposite(text: Buffer, from: number): number {
  let depth = 0
  let at = from
  while (at < text.length) {
    const byte = text[at]
    if (byte === quote) {
      at = skipString(text, at)
      continue
    }
    at++
    if (byte === openBrace || byte === openBracket) depth++
    else if ((byte === closeBrace || byte === closeBracket) && --depth === 0) return at
  }
  return at
}

/** The value between two offsets; undefined when it is no JSON. */
function decode(text: Buffer, from: number, to: number): TopLevelValue | undefined {
  const first = text[from]
  if (first === openBrace || first === openBracket) return composite
  const slice = text.toString('utf8', from, to)
  if (first === quote && to <= text.length && !/[\\\u0000-\u001f]/.test(slice)) {
    return slice.slice(1, -1)
  }
  try {
    return JSON.parse(slice) as TopLevelValue
  } catch {
    return undefined
  }
}
