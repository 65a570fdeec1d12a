/**
 * The destination of `dispatch`, in a process of its own: takes 5 ms for each call and answers with a
 * receipt. It counts what it was asked, tells on request, and ends with its parent.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** How long a call takes it. */
const workMs = 5

/** What it was asked since it was last told to forget. */
export interface DestinationCounts {
  readonly calls: number
  /** Different keys among them. */
  readonly operations: number
}

let calls = 0
let keys = new Set<string>()

const server = createServer((request, response) => {
  const key = String(request.headers['idempotency-key'])
  calls += 1
  keys.add(key)
  request.resume()
  setTimeout(() => {
    const body = `{"id":"receipt-${key}"}`
    response.writeHead(200, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
    })
    response.end(body)
  }, workMs)
})
server.keepAliveTimeout = 60_000

process.on('message', () => {
  const counts: DestinationCounts = { calls, operations: keys.size }
  calls = 0
  keys = new Set()
  process.send?.({ counts })
})
process.once('disconnect', () => process.exit(0))
server.listen(0, '127.0.0.1', () => {
  process.send?.({ port: (server.address() as AddressInfo).port })
})
