/**
 * The stand-alone server: strict parsing, a bound on everything a sender can make grow, and a stop
 * that finishes what is in hand. Its answers tell whether the process is up, never what is inside.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { HookledgerError } from '../core/errors.ts'
import { reach } from '../core/failpoints.ts'
import type { Limits } from '../core/limits.ts'
import type { Refusal } from '../http/answer.ts'
import { refusal } from '../http/answer.ts'
import { sendUnread } from '../http/linger.ts'
import type { MountOptions, NodeHandler } from '../http/node.ts'
import { createNodeHandler } from '../http/node.ts'
import { judgeHead } from '../http/request-rules.ts'
import type { ReadyCheck } from './readiness.ts'
import { createReadiness } from './readiness.ts'
import type { ExtraRoutes, Route } from './router.ts'
import { routeOf } from './router.ts'

/** What the server serves. */
export interface ServerOptions extends Omit<MountOptions, 'limits'> {
  readonly limits: Pick<Limits, 'bodyBytes' | 'headerBytes' | 'requestTimeoutMs'>
  /** Whether the database answers and its schema is current. */
  readonly ready: ReadyCheck
  /** The text of `/metrics`; without it the path does not exist. */
  readonly metrics?: () => Promise<string>
  /** Further routes. */
  readonly routes?: ExtraRoutes
  /** Connections at once; more are closed as they come. Default 4096. */
  readonly maxConnections?: number
  /** How often connections are looked over for being late, in milliseconds. Default 500. */
  readonly checkEveryMs?: number
}

/** A server that can be started once and stopped. */
export interface HookledgerServer {
  /**
   * Starts to listen and resolves with the address.
   *
   * @throws HookledgerError HKL_SERVER_IN_USE when the port is taken.
   */
  listen(port: number, host?: string): Promise<AddressInfo>
  /** Accepts nothing more, finishes what is in hand within `timeoutMs`, then cuts what is left. */
  stop(timeoutMs?: number): Promise<void>
}

/** A sender may keep a connection for this long between requests; load balancers expect 60 s. */
const keepAliveMs = 65_000

/** Requests on one connection before it is closed, so that no connection lives for ever. */
const requestsPerConnection = 10_000

/** Creates the server; it listens to nothing yet. */
export function createHookledgerServer(options: ServerOptions): HookledgerServer {
  return new StandaloneServer(options)
}

/** Why it cannot listen, with the variable to change: what Node says would read like a lost database. */
function cannotListen(error: NodeJS.ErrnoException, port: number, host?: string): Error {
  const cause = { cause: error }
  switch (error.code) {
    case 'EADDRINUSE':
      return new HookledgerError(
        'HKL_SERVER_IN_USE',
        `port ${port} is in use; choose another one with PORT`,
        cause,
      )
    case 'EACCES':
      return new HookledgerError(
        'HKL_CONFIG_INVALID',
        `this user may not listen on port ${port}; choose another one with PORT`,
        cause,
      )
    case 'EADDRNOTAVAIL':
    case 'EAFNOSUPPORT':
    case 'EAI_AGAIN':
    case 'EINVAL':
    case 'ENOTFOUND':
      return new HookledgerError(
        'HKL_CONFIG_INVALID',
        `HOST must be an address of this machine, not ${JSON.stringify(host ?? '')} (${error.code})`,
        cause,
      )
    default:
      return error
  }
}

class StandaloneServer implements HookledgerServer {
  readonly #options: ServerOptions
  readonly #ready: ReadyCheck
  readonly #server: Server
  /** Every connection, with the responses that it still waits for. */
  readonly #connections = new Map<Socket, Set<ServerResponse>>()
  readonly #handlers = new Map<string, NodeHandler>()
  #stopping: Promise<void> | undefined

  constructor(options: ServerOptions) {
    this.#options = options
    this.#ready = createReadiness(options.ready)
    this.#server = this.#createServer()
  }

  listen(port: number, host?: string): Promise<AddressInfo> {
    const server = this.#server
    return new Promise((resolve, reject) => {
      const onError = (error: NodeJS.ErrnoException): void => {
        reject(cannotListen(error, port, host))
      }
      server.once('error', onError)
      server.listen(port, host, () => {
        server.off('error', onError)
        server.on('error', () => {}) // out of file descriptors, say: the next connection may succeed
        resolve(server.address() as AddressInfo)
      })
    })
  }

  stop(timeoutMs = 10_000): Promise<void> {
    this.#stopping ??= this.#stop(timeoutMs)
    return this.#stopping
  }

  #createServer(): Server {
    const { limits } = this.#options
    const server = createServer(
      {
        insecureHTTPParser: false,
        requireHostHeader: true,
        maxHeaderSize: limits.headerBytes,
        headersTimeout: limits.requestTimeoutMs,
        requestTimeout: limits.requestTimeoutMs,
        keepAliveTimeout: keepAliveMs,
        connectionsCheckingInterval: this.#options.checkEveryMs ?? 500,
      },
      (request, response) => {
        this.#handle(request, response)
      },
    )
    server.maxConnections = this.#options.maxConnections ?? 4096
    server.maxRequestsPerSocket = requestsPerConnection
    server.on('connection', (socket) => {
      this.#connections.set(socket, new Set())
      socket.once('close', () => this.#connections.delete(socket))
      void accepted(socket)
    })
    // Node would ask for the body by itself before anything was judged
    server.on('checkContinue', (request, response) => this.#refuseExpect(request, response))
    server.on('checkExpectation', (request, response) => this.#refuseExpect(request, response))
    return server
  }

  async #stop(timeoutMs: number): Promise<void> {
    const server = this.#server
    if (!server.listening) return
    const closed = new Promise<void>((resolve) => {
      server.close(() => {
        resolve()
      })
    })
    for (const [socket, inHand] of this.#connections) {
      // nothing was acknowledged on a connection without a whole head, so it may go at once
      if (inHand.size === 0) socket.destroy()
      for (const response of inHand) closeAfter(response)
    }
    const cut = setTimeout(() => {
      server.closeAllConnections()
    }, timeoutMs)
    await closed
    clearTimeout(cut)
  }

  #handle(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request
    const inHand = this.#connections.get(socket)
    inHand?.add(response)
    response.once('close', () => {
      inHand?.delete(response)
      if (this.#stopping !== undefined && inHand?.size === 0) socket.destroySoon()
    })
    if (this.#stopping !== undefined) closeAfter(response)
    this.#dispatch(request, response, routeOf(request.url ?? ''))
  }

  #dispatch(request: IncomingMessage, response: ServerResponse, route: Route): void {
    if (route.kind === 'webhook') {
      void this.#webhook(route.source)(request, response)
      return
    }
    request.on('error', () => {})
    response.on('error', () => {})
    if (route.kind === 'malformed') return this.#refuse(request, response, malformed)
    const objection = judgeHead(request)
    if (objection !== undefined) return this.#refuse(request, response, objection)
    if (route.kind === 'other') {
      if (this.#options.routes?.(request, response, route.path) === true) return
      return sendUnread(request, response, notFound.answer)
    }
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      return sendUnread(request, response, onlyRead.answer)
    }
    void this.#tell(route.kind, request, response)
  }

  #webhook(source: string): NodeHandler {
    const known = this.#handlers.get(source)
    if (known !== undefined) return known
    const handler = createNodeHandler({ ...this.#options, source })
    // only names of the configuration are kept: the others are the sender's to invent
    if (this.#options.hasSource?.(source) === true) this.#handlers.set(source, handler)
    return handler
  }

  async #tell(
    kind: 'health' | 'ready' | 'metrics',
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    if (kind === 'metrics') {
      const text = await this.#options.metrics?.().catch(() => undefined)
      if (text === undefined) return sendUnread(request, response, notFound.answer)
      response.writeHead(200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' })
      response.end(text)
      return
    }
    const up = kind === 'health' || (this.#stopping === undefined && (await this.#ready()))
    const body = up ? '{"status":"ok"}' : '{"status":"unavailable"}'
    sendUnread(request, response, { status: up ? 200 : 503, body })
  }

  #refuseExpect(request: IncomingMessage, response: ServerResponse): void {
    request.on('error', () => {})
    response.on('error', () => {})
    this.#refuse(request, response, expectation)
  }

  #refuse(request: IncomingMessage, response: ServerResponse, { reason, answer }: Refusal): void {
    this.#options.onRefused?.('', reason, answer.status)
    sendUnread(request, response, answer)
  }
}

const notFound = refusal(404, 'not_found', 'nothing is here')
const onlyRead = refusal(405, 'method', 'this is only read', { headers: { allow: 'GET, HEAD' } })
const malformed = refusal(400, 'malformed_head', 'the target must be a path')
const expectation = refusal(
  417,
  'expectation',
  'send the body without expecting to be asked for it',
)

async function accepted(socket: Socket): Promise<void> {
  try {
    await reach('R0')
  } catch {
    socket.destroy()
  }
}

/** Makes a response that is not begun yet the last one of its connection. */
function closeAfter(response: ServerResponse): void {
  if (!response.headersSent) response.shouldKeepAlive = false
}
