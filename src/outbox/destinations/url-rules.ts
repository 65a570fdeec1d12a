/**
 * Which URLs a destination may have: https to a public host at a usual port, nothing hidden in it. A
 * host that is listed in `allow` may be anything (http, private, any port), and only that host.
 */
import { isIP } from 'node:net'
import { HookledgerError } from '../../core/errors.ts'
import { refusedAddress } from './addresses.ts'

/** What a person listed. */
export interface UrlRules {
  /** Hosts as in a URL, with or without a port: `localhost:3000`, `mail.internal`, `[::1]:8025`. */
  readonly allow?: readonly string[] | undefined
  /** Ports of hosts that are not listed; 443. */
  readonly ports?: readonly number[] | undefined
}

/** A URL that passed, and whether its host is a listed one, whose addresses are not judged. */
export interface CheckedUrl {
  readonly url: URL
  readonly isListed: boolean
}

interface ListedHost {
  readonly hostname: string
  readonly port: string | null
}

/**
 * Checks a URL as configured.
 *
 * @throws HookledgerError HKL_CONFIG_INVALID saying what is wrong, without the URL (it may hold a token)
 */
export function checkUrl(maker: string, text: unknown, rules: UrlRules): CheckedUrl {
  if (text === undefined || text === null || text === '') {
    throw wrong(maker, 'url is not set; is the environment variable that it is read from?')
  }
  if (typeof text !== 'string' || !URL.canParse(text)) throw wrong(maker, 'url is not a URL')
  const url = new URL(text)
  const listed = readAllow(maker, rules.allow)
  const isListed = listed.some(
    ({ hostname, port }) => hostname === url.hostname && (port === null || port === portOf(url)),
  )
  refuseShape(maker, url, isListed)
  if (!isListed) refuseUnlisted(maker, url, readPorts(maker, rules.ports))
  return { url, isListed }
}

function refuseShape(maker: string, url: URL, isListed: boolean): void {
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    throw wrong(maker, 'url must begin with https://')
  }
  if (url.protocol === 'http:' && !isListed) {
    throw wrong(
      maker,
      `url is not https; list its host in allow (allow: ['${url.host}']) to permit it`,
    )
  }
  if (url.username !== '' || url.password !== '') {
    throw wrong(maker, 'url carries a user name or password; give it in secretHeaders instead')
  }
  if (url.hash !== '') throw wrong(maker, 'url has a fragment, which is never sent')
  if (url.hostname === '') throw wrong(maker, 'url has no host')
}

function refuseUnlisted(maker: string, url: URL, ports: ReadonlySet<string>): void {
  const listing = `list it in allow (allow: ['${url.host}']) if it is meant`
  const host = bareHost(url.hostname)
  const name = host.replace(/\.$/, '').toLowerCase()
  if (name === 'localhost' || name.endsWith('.localhost')) {
    throw wrong(maker, `url leads to this machine; ${listing}`)
  }
  const refused = isIP(host) === 0 ? undefined : refusedAddress(host)
  if (refused !== undefined)
    throw wrong(maker, `url leads to an address that is ${refused}; ${listing}`)
  if (!ports.has(portOf(url))) {
    throw wrong(
      maker,
      `url has port ${portOf(url)}, which is not one of ports (${[...ports].join(', ')})`,
    )
  }
}

/** The host as a resolver or socket takes it: IPv6 without its brackets. */
export function bareHost(hostname: string): string {
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname
}

function portOf(url: URL): string {
  return url.port === '' ? (url.protocol === 'https:' ? '443' : '80') : url.port
}

function readPorts(maker: string, ports: UrlRules['ports']): ReadonlySet<string> {
  if (ports === undefined) return new Set(['443'])
  const usable =
    Array.isArray(ports) &&
    ports.length > 0 &&
    ports.every((port) => Number.isInteger(port) && port > 0 && port < 65_536)
  if (!usable) throw wrong(maker, 'ports must be an array of port numbers')
  return new Set(ports.map(String))
}

function readAllow(maker: string, allow: UrlRules['allow']): readonly ListedHost[] {
  if (allow === undefined) return []
  if (!Array.isArray(allow)) throw wrong(maker, 'allow must be an array of hosts')
  return allow.map((entry: unknown, index) => {
    const listed = typeof entry === 'string' ? readHost(entry) : undefined
    if (listed !== undefined) return listed
    throw wrong(
      maker,
      `allow[${index}] must be a host, with or without a port, such as 'mail.internal' or 'localhost:3000'`,
    )
  })
}

/** Reads a host the way the URL's own is read, so that every spelling of it is the same one. */
function readHost(text: string): ListedHost | undefined {
  const host = isIP(text) === 6 ? `[${text}]` : text
  if (/[\s/@?#*\\]/.test(host) || host === '' || !URL.canParse(`ws://${host}/`)) return undefined
  const url = new URL(`ws://${host}/`)
  const port = /:(\d+)$/.exec(host)?.[1]
  return { hostname: url.hostname, port: port === undefined ? null : String(Number(port)) }
}

function wrong(maker: string, problem: string): HookledgerError {
  return new HookledgerError('HKL_CONFIG_INVALID', `${maker}: ${problem}`)
}
