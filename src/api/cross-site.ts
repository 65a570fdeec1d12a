/**
 * Whether a request that acts came from the console's own page. Everything must say so: the content type that
 * no form can send, the origin that no page can choose, and the token that no other site can read.
 */
import { timingSafeEqual } from 'node:crypto'
import { HookledgerError } from '../core/errors.ts'
import type { Door, Visitor } from './door.ts'

/** The header that carries the token. */
export const csrfHeader = 'x-hookledger-csrf'

/** The content type is another: what was sent is not even read. */
export class WrongContentType extends HookledgerError {
  constructor() {
    super('HKL_API_CROSS_SITE', 'content-type must be application/json')
  }
}

/** @throws HookledgerError HKL_API_CROSS_SITE saying which of them is missing */
export function requireOwnPage(
  request: Request,
  door: Pick<Door, 'origins'>,
  visitor: Visitor,
): void {
  const type = request.headers.get('content-type')?.split(';')[0]?.trim().toLowerCase()
  if (type !== 'application/json') throw new WrongContentType()
  const site = request.headers.get('sec-fetch-site')
  if (site !== null && site !== 'same-origin') throw crossSite('it came from another site')
  const origin = request.headers.get('origin')
  if (origin === null) throw crossSite('origin is missing')
  if (!isOwnOrigin(origin, request, door.origins)) throw crossSite('origin is another one')
  if (!isEqual(request.headers.get(csrfHeader), visitor.csrf))
    throw crossSite(`${csrfHeader} is not that of this session: reload the page`)
}

function isOwnOrigin(origin: string, request: Request, origins: readonly string[]): boolean {
  if (origins.length > 0) return origins.includes(origin)
  // the scheme is the proxy's, where there is one; the host is what the browser asked for
  try {
    return new URL(origin).host === (request.headers.get('host') ?? new URL(request.url).host)
  } catch {
    return false
  }
}

function isEqual(given: string | null, expected: string | null): boolean {
  if (given === null || expected === null) return false
  const [one, other] = [Buffer.from(given), Buffer.from(expected)]
  return one.length === other.length && timingSafeEqual(one, other)
}

function crossSite(what: string): HookledgerError {
  return new HookledgerError('HKL_API_CROSS_SITE', `nothing was done: ${what}`)
}
