/**
 * An HTTP request as it is stored with its operation: method, path, content type, headers and body,
 * written once and read back the same for ever. Secrets are no part of it; they are added when it is
 * sent.
 */
import { PermanentError } from '../../core/errors.ts'
import { requestBytes } from './json-body.ts'

/** Methods that an operation may have. */
export const httpMethods = ['POST', 'PUT', 'PATCH', 'DELETE'] as const

/** One of {@link httpMethods}. */
export type HttpMethod = (typeof httpMethods)[number]

/** The stored part of a request. */
export interface StoredHttpRequest {
  readonly method: HttpMethod
  /** Added to the destination's URL; empty: the URL itself. */
  readonly path: string
  readonly contentType: string
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

const version = 1

/** @throws PermanentError when it is larger than a request may be. */
export function writeHttpRequest(request: StoredHttpRequest): Uint8Array {
  const { method, path, contentType, headers, body } = request
  return requestBytes(
    JSON.stringify({ v: version, method, path, type: contentType, headers, body }),
  )
}

/** The request in stored bytes; undefined when they are none that this version wrote. */
export function readHttpRequest(bytes: Uint8Array): StoredHttpRequest | undefined {
  const stored = parse(bytes)
  if (stored === undefined || stored['v'] !== version) return undefined
  const { method, path, type, headers, body } = stored
  const isKnown = httpMethods.some((known) => known === method)
  if (!isKnown || typeof path !== 'string' || typeof type !== 'string') return undefined
  if (typeof body !== 'string' || !isTextRecord(headers)) return undefined
  const isSafe =
    isHeaderValue(type) &&
    Object.entries(headers).every(([name, value]) => isHeaderName(name) && isHeaderValue(value))
  return isSafe
    ? { method: method as HttpMethod, path, contentType: type, headers, body }
    : undefined
}

function parse(bytes: Uint8Array): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined
  } catch {
    return undefined
  }
}

function isTextRecord(value: unknown): value is Record<string, string> {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    Object.values(value).every((item) => typeof item === 'string')
  )
}

/** Whether the text is a header's name. */
export function isHeaderName(name: string): boolean {
  return /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/.test(name)
}

/** Whether the text can be a header's value: printable ASCII, no line end. */
export function isHeaderValue(value: string): boolean {
  return /^[\t\x20-\x7e]{0,4096}$/.test(value)
}

/**
 * The URL of a request: the destination's own, with the path added to it. It never leaves that URL:
 * another host, `..`, and whatever a parser would rewrite are refused.
 *
 * @throws PermanentError saying what is wrong with the path
 */
export function targetUrl(base: URL, path: string): URL {
  if (path === '') return base
  if (base.search !== '') {
    throw new PermanentError('path cannot be added to a destination whose url has a query')
  }
  if (!/^\/(?!\/)/.test(path)) throw new PermanentError('path must begin with one /')
  const wanted = `${base.pathname.replace(/\/+$/, '')}${path}`
  const url = new URL(base.origin)
  const [pathname = '', query] = splitOnce(wanted, '?')
  url.pathname = pathname
  url.search = query ?? ''
  const isSame = `${url.pathname}${url.search}` === wanted && !/[\\#]/.test(wanted)
  if (!isSame) {
    throw new PermanentError(
      'path must be written as in a URL: percent-encoded, without .. and without a host',
    )
  }
  return url
}

function splitOnce(text: string, separator: string): [string, string?] {
  const at = text.indexOf(separator)
  return at === -1 ? [text] : [text.slice(0, at), text.slice(at + 1)]
}
