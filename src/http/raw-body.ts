/**
 * The exact bytes of a request's body, within a size and a time. A body that does not come whole is
 * no body: what was read of it is dropped.
 */
import { Buffer } from 'node:buffer'
import type { IncomingMessage } from 'node:http'

/** How much and how long to read. */
export interface RawBodyLimits {
  readonly bodyBytes: number
  readonly requestTimeoutMs: number
}

/** The bytes, or why there are none. `aborted`: the sender left, there is nobody to answer. */
export type RawBody =
  | { readonly bytes: Buffer }
  | { readonly failure: 'too_large' | 'too_slow' | 'aborted' | 'consumed' }

/** A request of a framework whose body parsers ran before us. */
type ParsedRequest = IncomingMessage & { readonly body?: unknown; readonly rawBody?: unknown }

/** Reads the body. Stops reading, without ending the connection, when a limit is passed. */
export function readRawBody(request: IncomingMessage, limits: RawBodyLimits): Promise<RawBody> {
  const kept = bytesOfParser(request)
  if (kept !== undefined) {
    const fits = kept.byteLength <= limits.bodyBytes
    return Promise.resolve(fits ? { bytes: kept } : { failure: 'too_large' })
  }
  if (request.readableDidRead || request.readableEnded) {
    return Promise.resolve({ failure: 'consumed' })
  }
  if (request.destroyed) return Promise.resolve({ failure: 'aborted' })
  const announced = Number(request.headers['content-length'] ?? 0)
  if (announced > limits.bodyBytes) return Promise.resolve({ failure: 'too_large' })
  return collect(request, limits)
}

/** The bytes where a parser kept them: `express.raw()`, and hosts that set `rawBody`. */
function bytesOfParser(request: ParsedRequest): Buffer | undefined {
  for (const bytes of [request.rawBody, request.body]) {
    if (Buffer.isBuffer(bytes)) return bytes
    if (bytes instanceof Uint8Array) {
      return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    }
  }
  return undefined
}

function collect(request: IncomingMessage, limits: RawBodyLimits): Promise<RawBody> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let size = 0
    const finish = (result: RawBody): void => {
      clearTimeout(timer)
      request.off('data', onData)
      request.off('end', onEnd)
      request.off('close', onClose)
      if ('failure' in result) request.pause()
      resolve(result)
    }
    const onData = (chunk: Buffer): void => {
      size += chunk.byteLength
      if (size > limits.bodyBytes) finish({ failure: 'too_large' })
      else chunks.push(chunk)
    }
    const onEnd = (): void => {
      const [only] = chunks
      finish({
        bytes: chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks, size),
      })
    }
    const onClose = (): void => {
      finish({ failure: 'aborted' })
    }
    const timer = setTimeout(() => {
      finish({ failure: 'too_slow' })
    }, limits.requestTimeoutMs)
    request.on('data', onData)
    request.on('end', onEnd)
    request.on('close', onClose)
  })
}
