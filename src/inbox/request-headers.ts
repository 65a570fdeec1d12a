/**
 * Headers as every framework hands them out, behind one case-insensitive lookup. A header that came
 * twice is joined, so that two values can never pass as one.
 */

/** What carries headers. */
export type HeadersInput =
  | ((name: string) => string | undefined)
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | undefined>>

/** A lookup by lower-case name. */
export function headerLookup(headers: HeadersInput): (name: string) => string | undefined {
  if (typeof headers === 'function') return headers
  if (hasGet(headers)) return (name) => headers.get(name) ?? undefined
  const values = new Map<string, string>()
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined) continue
    const key = name.toLowerCase()
    const text = typeof value === 'string' ? value : value.join(', ')
    const earlier = values.get(key)
    values.set(key, earlier === undefined ? text : `${earlier}, ${text}`)
  }
  return (name) => values.get(name)
}

function hasGet(
  headers: Exclude<HeadersInput, (name: string) => string | undefined>,
): headers is { get(name: string): string | null } {
  return typeof headers.get === 'function'
}
