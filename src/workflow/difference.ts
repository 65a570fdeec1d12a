/**
 * Tells two ends of a run apart, in words: which part differs, what it is and what it was expected to
 * be. The order of keys does not matter, that of lists does.
 */

/** The same text for equal values: keys sorted, bigints and dates in a form of their own. */
export function stableText(value: unknown): string {
  if (typeof value === 'bigint') return `${value}n`
  if (value === undefined) return 'undefined'
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? String(value)
  if (value instanceof Date)
    return `Date(${Number.isNaN(value.getTime()) ? 'invalid' : value.toISOString()})`
  if (value instanceof Map) return `Map${stableText([...value].sort(byText))}`
  if (value instanceof Set) return `Set${stableText([...value].sort(byText))}`
  if (Array.isArray(value)) return `[${value.map((item) => stableText(item)).join(',')}]`
  const fields = fieldsOf(value).map(([key, item]) => `${JSON.stringify(key)}:${stableText(item)}`)
  return `{${fields.join(',')}}`
}

function byText(a: unknown, b: unknown): number {
  return stableText(a) < stableText(b) ? -1 : 1
}

function fieldsOf(value: object): [string, unknown][] {
  return Object.entries(value)
    .filter(([, item]) => item !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
}

/**
 * What differs between two values, at most `most` lines, each with its path.
 *
 * @example differences({ state: 'paid' }, { state: 'refunded' }) // ['state: "paid", not "refunded"']
 */
export function differences(actual: unknown, expected: unknown, most: number = 5): string[] {
  const found: string[] = []
  collect(actual, expected, [], found)
  if (found.length <= most) return found
  return [...found.slice(0, most), `and ${found.length - most} more`]
}

function collect(
  actual: unknown,
  expected: unknown,
  path: readonly string[],
  found: string[],
): void {
  if (stableText(actual) === stableText(expected)) return
  if (!isPlain(actual) || !isPlain(expected)) {
    const where = path.length === 0 ? '' : `${path.join(', ')}: `
    found.push(`${where}${shown(actual)}, not ${shown(expected)}`)
    return
  }
  for (const key of new Set([...Object.keys(expected), ...Object.keys(actual)])) {
    collect(fieldOf(actual, key), fieldOf(expected, key), [...path, key], found)
  }
}

function fieldOf(value: object, key: string): unknown {
  return Object.hasOwn(value, key) ? (value as Record<string, unknown>)[key] : undefined
}

function isPlain(value: unknown): value is object {
  return (
    typeof value === 'object' &&
    value !== null &&
    !(value instanceof Date || value instanceof Map || value instanceof Set)
  )
}

function shown(value: unknown): string {
  if (value === undefined) return 'missing'
  const text = stableText(value)
  return text.length > 200 ? `${text.slice(0, 200)}…` : text
}
