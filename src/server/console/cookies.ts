/** The cookies of the console: never readable by a script, never sent from another site's page. */

/** How cookies of this console are made. */
export interface CookieKind {
  /** Whether the browser reaches it over https. */
  readonly isSecure: boolean
  readonly name: string
  /** `Lax` only for what must come back from the provider of identities. */
  readonly sameSite: 'Strict' | 'Lax'
}

/** The full name: a browser takes `__Host-` only from a secure page, for this host alone, and for all paths. */
export function cookieName({ isSecure, name }: Pick<CookieKind, 'isSecure' | 'name'>): string {
  return isSecure ? `__Host-${name}` : name
}

/** Sets one; without a value the browser forgets it. */
export function setCookie(kind: CookieKind, value: string | null, maxAgeSeconds?: number): string {
  const parts = [
    `${cookieName(kind)}=${value ?? ''}`,
    'Path=/',
    'HttpOnly',
    `SameSite=${kind.sameSite}`,
    ...(kind.isSecure ? ['Secure'] : []),
  ]
  if (value === null) parts.push('Max-Age=0')
  else if (maxAgeSeconds !== undefined) parts.push(`Max-Age=${Math.trunc(maxAgeSeconds)}`)
  return parts.join('; ')
}

/** The value of one in a request; null where it is missing, there twice, or no token of ours. */
export function readCookie(request: Request, kind: CookieKind): string | null {
  const wanted = cookieName(kind)
  const found = (request.headers.get('cookie') ?? '')
    .split(';')
    .map((each) => each.trim().split('='))
    .filter(([name]) => name === wanted)
  const value = found[0]?.[1]
  if (found.length !== 1 || value === undefined) return null
  return /^[A-Za-z0-9_-]{20,100}$/.test(value) ? value : null
}
