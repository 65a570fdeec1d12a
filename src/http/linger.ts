/**
 * Refuses a request whose body was not read. Closing at once would reset the connection while the
 * sender still writes, and the reset can overtake the answer; so the answer goes out whole, a little
 * is read and dropped, and then the connection ends.
 */
import { Buffer } from 'node:buffer'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Answer } from './answer.ts'
import { send } from './answer.ts'

/** How long and how much is dropped before the connection ends. */
const lingerMs = 1000
const lingerBytes = 256 * 1024

/** Sends the answer and ends the connection unless the request came whole. */
export function sendUnread(
  request: IncomingMessage,
  response: ServerResponse,
  answer: Answer,
): void {
  if (isWhole(request)) {
    send(response, answer)
    return
  }
  if (response.headersSent || response.destroyed) return
  response.writeHead(answer.status, {
    ...answer.headers,
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(answer.body),
    connection: 'close',
  })
  response.write(answer.body)
  dropThenEnd(request, response)
}

function isWhole(request: IncomingMessage): boolean {
  if (request.complete) return true
  const { 'content-length': length, 'transfer-encoding': transfer } = request.headers
  return transfer === undefined && (length === undefined || Number(length) === 0)
}

function dropThenEnd(request: IncomingMessage, response: ServerResponse): void {
  let dropped = 0
  const end = (): void => {
    clearTimeout(timer)
    request.off('data', drop)
    response.end()
  }
  const drop = (chunk: Uint8Array): void => {
    dropped += chunk.byteLength
    if (dropped > lingerBytes) end()
  }
  const timer = setTimeout(end, lingerMs)
  request.on('data', drop)
  request.once('end', end)
  request.once('close', end)
  request.resume()
}
