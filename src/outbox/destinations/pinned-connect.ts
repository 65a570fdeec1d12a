/**
 * Connects only to addresses that were judged: the name is resolved here, every address that it has is
 * checked, and the socket goes to a checked address and not to the name, so that a second answer of the
 * resolver changes nothing. Names and literal addresses take the same way; TLS still proves the name.
 */
import { lookup } from 'node:dns/promises'
import { isIP, type Socket } from 'node:net'
import { rootCertificates, type TLSSocket } from 'node:tls'
import type { buildConnector } from 'undici'
import { refusedAddress } from './addresses.ts'

/** As many of a name's addresses are tried, of those that all were judged. */
const mostAddresses = 4

/** Every address of a name. */
export type Resolve = (hostname: string) => Promise<readonly string[]>

/** How to connect. */
export interface PinnedOptions {
  /** Whether a person listed the host: then its addresses are not judged. */
  readonly isListed: boolean
  /** For one address; there may be several. */
  readonly timeoutMs: number
  /** Certificates, in PEM, of authorities beside the usual ones. */
  readonly ca: readonly string[] | undefined
  readonly resolve?: Resolve | undefined
}

/** A connection that was not made since the address is a refused one. */
export class AddressRefused extends Error {
  readonly code = 'HKL_ADDRESS_REFUSED'

  constructor(hostname: string, address: string, why: string) {
    super(`${hostname} leads to ${address} (${why}); list the host in allow if it is meant`)
    this.name = 'AddressRefused'
  }
}

/** Every address of the name, as the machine itself resolves it. */
export const resolveAll: Resolve = async (hostname) => {
  const found = await lookup(hostname, { all: true, verbatim: true })
  return found.map(({ address }) => address)
}

/**
 * The addresses of a host, all of them judged: one refused address refuses the host, since which of
 * them is used would be chance.
 *
 * @throws AddressRefused naming the address and why
 */
export async function judgedAddresses(
  hostname: string,
  { isListed, resolve = resolveAll }: Pick<PinnedOptions, 'isListed' | 'resolve'>,
): Promise<readonly string[]> {
  const addresses = isIP(hostname) === 0 ? await resolve(hostname) : [hostname]
  if (addresses.length === 0) throw new Error(`${hostname} has no address`)
  if (isListed) return addresses
  for (const address of addresses) {
    const why = refusedAddress(address)
    if (why !== undefined) throw new AddressRefused(hostname, address, why)
  }
  return addresses
}

/** A connector for undici over the one that undici builds. */
export function pinnedConnector(
  build: typeof buildConnector,
  options: PinnedOptions,
): buildConnector.connector {
  const connect = build({
    timeout: options.timeoutMs,
    // Said here, so that no variable of the environment can switch it off.
    rejectUnauthorized: true,
    // Given authorities would replace the usual ones.
    ...(options.ca !== undefined && { ca: [...rootCertificates, ...options.ca] }),
    allowH2: false,
  })
  const resolve = oneAtATime(options.resolve ?? resolveAll)
  const open = async (target: buildConnector.Options): Promise<Socket | TLSSocket> => {
    const addresses = await judgedAddresses(target.hostname, { ...options, resolve })
    let failure: unknown
    for (const address of addresses.slice(0, mostAddresses)) {
      try {
        // `host` stays the name: it is what the certificate has to be for.
        return await connectTo(connect, { ...target, hostname: address })
      } catch (error) {
        failure = error
      }
    }
    throw failure
  }
  return (target, callback) => {
    open(target).then(
      (socket) => callback(null, socket),
      (error: unknown) => callback(asConnectError(error), null),
    )
  }
}

/**
 * Connections that are opened at once share one answer, which each of them judges. The system resolves
 * few names at a time: the calls of one destination whose name hangs would hold up all others.
 */
function oneAtATime(resolve: Resolve): Resolve {
  const asking = new Map<string, Promise<readonly string[]>>()
  return (hostname) => {
    const asked = asking.get(hostname)
    if (asked !== undefined) return asked
    const answer = resolve(hostname).finally(() => asking.delete(hostname))
    asking.set(hostname, answer)
    return answer
  }
}

function connectTo(
  connect: buildConnector.connector,
  target: buildConnector.Options,
): Promise<Socket | TLSSocket> {
  return new Promise((resolve, reject) => {
    connect(target, (...[error, socket]) => {
      if (error !== null) reject(error)
      else resolve(socket)
    })
  })
}

/** undici takes some codes for its own and would connect again by itself, for ever. */
function asConnectError(cause: unknown): Error {
  const known = cause instanceof Error ? cause : new Error('the connection failed')
  const code = 'code' in known && typeof known.code === 'string' ? known.code : undefined
  if (code !== 'UND_ERR_SOCKET' && code !== 'UND_ERR_INFO') return known
  return Object.assign(new Error(known.message, { cause }), { code: 'HKL_CONNECT' })
}
