/**
 * Form-encoded parameters as Stripe's SDKs send them: `a[b]=1`, `a[]=1`, `a[0][b]=1` become nested
 * objects and lists. Values stay strings; each endpoint says what it takes them for.
 */
import { invalidRequest } from './api-error.ts'

/** A parameter's value. */
export type Parameter = string | Parameter[] | { [name: string]: Parameter }

/** The parameters of a request. */
export type Parameters = { [name: string]: Parameter }

const maximumDepth = 8
const maximumFields = 1000

/**
 * Reads a query string or a form body.
 *
 * @throws StripeApiError 400 when it is nested too deep, too large or contradicts itself.
 */
export function parseParameters(text: string): Parameters {
  const root = emptyObject()
  let fields = 0
  for (const [name, value] of new URLSearchParams(text)) {
    if (++fields > maximumFields) throw invalidRequest('Too many parameters.')
    insert(root, keysOf(name), value)
  }
  return toLists(root) as Parameters
}

/** The same parameters always as the same text, whatever their order was. */
export function canonicalText(value: Parameter): string {
  if (typeof value === 'string') return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(canonicalText).join(',')}]`
  const names = Object.keys(value).sort()
  return `{${names.map((name) => `${JSON.stringify(name)}:${canonicalText(value[name]!)}`).join(',')}}`
}

function keysOf(name: string): string[] {
  const bracket = name.indexOf('[')
  if (bracket === -1) return [name]
  const keys = [name.slice(0, bracket)]
  for (const [, key] of name.slice(bracket).matchAll(/\[([^\]]*)\]/g)) keys.push(key!)
  if (keys.length > maximumDepth)
    throw invalidRequest(`Parameter ${name.slice(0, 40)} is nested too deep.`)
  return keys
}

type Nested = Map<string, string | Nested>

function emptyObject(): Nested {
  return new Map()
}

function insert(root: Nested, keys: string[], value: string): void {
  let at = root
  for (const [depth, key] of keys.entries()) {
    // `a[]=1&a[]=2` numbers its values by arrival.
    const name = key === '' && depth > 0 ? String(at.size) : key
    if (depth === keys.length - 1) {
      at.set(name, value)
      return
    }
    const next = at.get(name)
    if (typeof next === 'string')
      throw invalidRequest(`Parameter ${keys[0]} is both a value and a hash.`)
    const child = next ?? emptyObject()
    at.set(name, child)
    at = child
  }
}

function toLists(nested: Nested): Parameter {
  const entries = [...nested].map(
    ([name, value]) => [name, typeof value === 'string' ? value : toLists(value)] as const,
  )
  const isList = entries.length > 0 && entries.every(([name], index) => name === String(index))
  if (isList) return entries.map(([, value]) => value)
  // `fromEntries` defines own properties, so a key such as `__proto__` is a key and nothing else.
  return Object.fromEntries(entries)
}
