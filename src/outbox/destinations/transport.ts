/**
 * One request and its answer, over pinned connections that are kept: knows whether the request was
 * written when something fails, reads no more of an answer than was asked for, follows nothing, repeats
 * nothing, and is over at its deadline.
 */
import type { Client } from 'undici'
import { reach } from '../../core/failpoints.ts'
import { KeptClients, type ClientsOptions } from './kept-clients.ts'
import { PendingExchange, type ExchangeResult } from './pending-exchange.ts'

/** What is sent. */
export interface ExchangeRequest {
  readonly method: string
  /** Of the transport's own origin. */
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  /** More than this is not read: the connection is cut instead. */
  readonly maxAnswerBytes: number
  /** Everything, from resolving the name to the last byte of the answer. */
  readonly deadlineMs: number
  /** A connection of its own, closed afterward: a kept one can be closed by the other side at the moment of writing. */
  readonly isAlone: boolean
}

/** Sends requests to one origin. */
export interface Transport {
  /** Never rejects; over at the deadline, or at the signal before it. */
  exchange(request: ExchangeRequest, signal: AbortSignal): Promise<ExchangeResult>
  /** Ends the connections that it keeps. */
  close(): Promise<void>
}

/** A transport; it loads its client and opens its first connection with the first request. */
export function createTransport(options: ClientsOptions): Transport {
  const clients = new KeptClients(options)
  return Object.freeze({
    async exchange(request: ExchangeRequest, signal: AbortSignal): Promise<ExchangeResult> {
      const pending = new PendingExchange(request.maxAnswerBytes)
      const end = (): void => pending.end()
      const timer = setTimeout(end, request.deadlineMs)
      if (signal.aborted) end()
      signal.addEventListener('abort', end, { once: true })
      try {
        await reach('D1')
        const result = await send(clients, request, pending)
        if (result.kind === 'answered') await reach('D4')
        return result
      } catch (error) {
        pending.fail(error)
        return await pending.result
      } finally {
        clearTimeout(timer)
        signal.removeEventListener('abort', end)
      }
    },
    close(): Promise<void> {
      clients.close()
      return Promise.resolve()
    },
  })
}

async function send(
  clients: KeptClients,
  request: ExchangeRequest,
  pending: PendingExchange,
): Promise<ExchangeResult> {
  if (pending.isOver) return pending.result
  const client = await clients.take(request.isAlone)
  let isReusable = false
  try {
    if (!pending.isOver) dispatch(client, request, pending)
    const result = await pending.result
    const isRead = result.kind === 'answered' && result.end === 'complete'
    isReusable = isRead && !request.isAlone
    return result
  } finally {
    clients.release(client, isReusable)
  }
}

function dispatch(client: Client, request: ExchangeRequest, pending: PendingExchange): void {
  client.dispatch(
    {
      path: `${request.url.pathname}${request.url.search}`,
      method: request.method,
      headers: request.headers,
      body: request.body.byteLength === 0 ? null : request.body,
      idempotent: false,
      reset: request.isAlone,
    },
    pending,
  )
}
