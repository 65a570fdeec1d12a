/**
 * The page's own addresses: patterns with `:name` segments, matched on the raw path, so that an id with a
 * slash, a percent sign or a question mark in it is found again exactly.
 */

/** The values of a pattern's `:name` segments. */
export type PathParams = Readonly<Record<string, string>>

/** Matches a raw (still encoded) path; null where it is another one. `/events/:source/:event_id` */
export function matchPath(pattern: string, path: string): PathParams | null {
  const wanted = segmentsOf(pattern)
  const given = segmentsOf(path)
  if (wanted.length !== given.length) return null
  const params: [string, string][] = []
  for (const [index, segment] of wanted.entries()) {
    const text = decoded(given[index] ?? '')
    if (text === null) return null
    if (segment.startsWith(':')) params.push([segment.slice(1), text])
    else if (segment !== text) return null
  }
  return Object.fromEntries(params)
}

/** A path with its parameters filled in and encoded. */
export function fillPath(pattern: string, params: PathParams): string {
  return pattern.replace(/:(\w+)|\{(\w+)\}/g, (_, colon?: string, brace?: string) => {
    const name = colon ?? brace ?? ''
    const value = params[name]
    if (value === undefined) throw new Error(`${pattern} needs ${name}`)
    return encodeURIComponent(value)
  })
}

/** A query string with its `?`, in a fixed order; empty values are left out. */
export function queryText(
  query: Readonly<Record<string, string | number | boolean | null | undefined>>,
): string {
  const given = Object.entries(query).flatMap(([key, value]): [string, string][] =>
    value === undefined || value === null || value === '' ? [] : [[key, String(value)]],
  )
  const text = new URLSearchParams(given).toString()
  return text === '' ? '' : `?${text}`
}

/** What of an address lies below the base; `/` for the base itself. */
export function pathBelow(base: string, pathname: string): string {
  if (base === '') return pathname
  return pathname.startsWith(`${base}/`) ? pathname.slice(base.length) : '/'
}

function segmentsOf(path: string): string[] {
  return path.split('/').filter((segment) => segment !== '')
}

function decoded(segment: string): string | null {
  try {
    return decodeURIComponent(segment)
  } catch {
    return null
  }
}
