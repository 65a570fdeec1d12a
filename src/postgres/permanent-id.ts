/** Ids that must come out the same for ever, computed from what they stand for. */
import { createHash } from 'node:crypto'

/** A version 5 UUID (RFC 9562) of `parts` in a namespace of the caller's, given as a UUID. */
export function permanentId(namespace: string, parts: readonly string[]): string {
  const bytes = createHash('sha1')
    .update(Buffer.from(namespace.replaceAll('-', ''), 'hex'))
    .update(JSON.stringify(parts))
    .digest()
    .subarray(0, 16)
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x50
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80
  const hex = bytes.toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

/** The id of an operation that the app asks for itself, under a key of its own. */
export function appOperationId(installationId: string, destination: string, key: string): string {
  return permanentId(installationId, ['app', destination, key])
}
