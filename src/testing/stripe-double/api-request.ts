/**
 * What an API call brings along: its key, its headers and its body, with bounds.
 */
import type { IncomingMessage } from 'node:http'
import { invalidRequest } from './api-error.ts'

const maximumBodyBytes = 1024 * 1024

/** Both forms that Stripe takes: a bearer token, or the key as the user of basic authentication. */
export function presentedKey(request: IncomingMessage): string {
  const [scheme = '', value = ''] = (request.headers.authorization ?? '').split(' ')
  if (scheme.toLowerCase() === 'bearer') return value
  if (scheme.toLowerCase() !== 'basic') return ''
  return Buffer.from(value, 'base64').toString('utf8').split(':')[0] ?? ''
}

/** A header with a value, or null. */
export function headerText(request: IncomingMessage, name: string): string | null {
  const value = request.headers[name]
  return typeof value === 'string' && value !== '' ? value : null
}

/**
 * The whole body as text.
 *
 * @throws StripeApiError 400 when it is larger than 1 MiB.
 */
export async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > maximumBodyBytes) throw invalidRequest('The request body is too large.')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}
