/**
 * What a failed connection says of itself: codes and host names, never what an error quotes of a
 * request.
 */
import { AddressRefused } from './pinned-connect.ts'

const said: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset',
  EPIPE: 'connection closed while writing',
  ENOTFOUND: 'the host name does not exist',
  EAI_AGAIN: 'the host name could not be resolved now',
  ETIMEDOUT: 'connecting timed out',
  EHOSTUNREACH: 'the host is unreachable',
  ENETUNREACH: 'the network is unreachable',
  UND_ERR_CONNECT_TIMEOUT: 'connecting timed out',
  UND_ERR_SOCKET: 'the connection broke',
  UND_ERR_HEADERS_OVERFLOW: 'the headers of the answer are too large',
  UND_ERR_DESTROYED: 'the destination was closed',
  UND_ERR_CLOSED: 'the destination was closed',
}

/** One line for an error of a connection. */
export function failureText(error: unknown): string {
  if (error instanceof AddressRefused) return error.message
  const code = errorCode(error)
  if (code === undefined) return 'the connection failed'
  const words = Object.hasOwn(said, code) ? said[code] : undefined
  if (words !== undefined) return words
  if (code.startsWith('HPE_')) return `the answer is no HTTP (${code})`
  return `the connection failed (${code})`
}

function errorCode(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined
  if ('code' in error && typeof error.code === 'string' && /^[A-Z0-9_]{1,60}$/.test(error.code)) {
    return error.code
  }
  return 'cause' in error && error.cause !== error ? errorCode(error.cause) : undefined
}
