/**
 * Where operations go in a drill: it honors an operation's id, keeps a log of its own, and fails as it is told to. What
 * it says in its log it did, whatever the caller came to know of it.
 */
import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { SeenCall } from '../oracle/verdict.ts'

/**
 * `refuse`: 503, nothing done. `lose`: done, and the connection cut before the answer. `silent`: done, and never answered.
 * `drop`: the connection is cut before anything is done.
 */
export type DestinationFault = 'refuse' | 'lose' | 'silent' | 'drop'

/** A double of every destination of a configuration. */
export interface DestinationDouble {
  /** Its address; a destination's name follows as a path. */
  readonly url: string
  /** Every call since the last `reset`. */
  readonly calls: readonly SeenCall[]
  /** The next calls fail so, one each. */
  fail(faults: readonly DestinationFault[]): void
  /** Told of the next call, before it is answered. */
  onNextCall(listener: () => void): void
  /** Forgets everything. */
  reset(): void
  close(): Promise<void>
}

/** Starts it on a free port. */
export async function startDestinationDouble(): Promise<DestinationDouble> {
  const state: State = { listener: null, calls: [], faults: [], done: new Set() }
  const server = createServer((request, response) => void answer(state, request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get calls() {
      return state.calls
    },
    onNextCall: (listener) => {
      state.listener = listener
    },
    fail: (faults) => void state.faults.push(...faults),
    reset() {
      state.calls = []
      state.faults = []
      state.listener = null
      state.done.clear()
    },
    close: () => closeServer(server),
  }
}

/** Ends a server with everything that is connected to it. */
export async function closeServer(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  server.closeAllConnections()
  await closed
}

interface State {
  listener: (() => void) | null
  calls: SeenCall[]
  faults: DestinationFault[]
  readonly done: Set<string>
}

async function answer(
  state: State,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const body = await bodyOf(request)
  // one that was cut off asked for nothing
  if (body === null) return
  const destination = decodeURIComponent((request.url ?? '/').split('?')[0]?.slice(1) ?? '')
  const key = String(request.headers['idempotency-key'] ?? '')
  state.listener?.()
  state.listener = null
  const fault = state.faults.shift()
  const applies = fault !== 'refuse' && fault !== 'drop' && !state.done.has(`${destination} ${key}`)
  if (applies) state.done.add(`${destination} ${key}`)
  const status = fault === 'refuse' ? 503 : fault === undefined ? 200 : null
  state.calls.push({
    destination,
    key,
    sha256: createHash('sha256').update(body).digest('hex'),
    status,
    applied: applies,
  })
  if (fault === 'drop' || fault === 'lose') return void request.socket.destroy()
  if (fault === 'silent') return
  response.writeHead(status ?? 200, { 'content-type': 'application/json' })
  response.end(status === 200 ? JSON.stringify({ id: `done_${key}` }) : '{"error":"busy"}')
}

/** The bytes of a request; null where it did not come whole. */
export async function bodyOf(request: IncomingMessage): Promise<Buffer | null> {
  const chunks: Buffer[] = []
  try {
    for await (const chunk of request) chunks.push(chunk as Buffer)
  } catch {
    return null
  }
  return request.complete ? Buffer.concat(chunks) : null
}
