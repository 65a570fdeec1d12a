/** An HTTP server on this machine that keeps what it gets to the byte and answers as a test says. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'

/** A request as it arrived. */
export interface SeenRequest {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
  /** Number of the connection that it came over. */
  readonly connection: number
}

/** Answers a request; ends the response, or leaves it open. */
export type Script = (
  request: SeenRequest,
  response: ServerResponse,
  seen: readonly SeenRequest[],
) => void

/** A server that is closed at the end of its block. */
export interface ScriptedServer extends AsyncDisposable {
  readonly url: string
  readonly host: string
  readonly port: number
  readonly seen: readonly SeenRequest[]
  /** Connections accepted so far, and those open now. */
  readonly connections: () => { readonly accepted: number; readonly open: number }
  script: Script
}

/** 200 and a small JSON body. */
export const works: Script = (_, response) => {
  response.writeHead(200, { 'content-type': 'application/json' })
  response.end('{"id":"msg_1"}')
}

/** Answers with a status, and headers and a body where given. */
export function answers(
  status: number,
  body = '',
  headers: Readonly<Record<string, string>> = {},
): Script {
  return (_, response) => {
    response.writeHead(status, headers)
    response.end(body)
  }
}

/** Starts a server on a free port. */
export async function startServer(script: Script = works): Promise<ScriptedServer> {
  const seen: SeenRequest[] = []
  const sockets = new Set<Socket>()
  const numbers = new WeakMap<Socket, number>()
  let accepted = 0
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const arrived: SeenRequest = {
        method: request.method ?? '',
        path: request.url ?? '',
        headers: request.headers,
        body: Buffer.concat(chunks),
        connection: numbers.get(request.socket) ?? 0,
      }
      seen.push(arrived)
      started.script(arrived, response, seen)
    })
  })
  server.on('connection', (socket: Socket) => {
    numbers.set(socket, ++accepted)
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const started: ScriptedServer = {
    url: `http://127.0.0.1:${port}`,
    host: `127.0.0.1:${port}`,
    port,
    seen,
    script,
    connections: () => ({ accepted, open: sockets.size }),
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  }
  return started
}
