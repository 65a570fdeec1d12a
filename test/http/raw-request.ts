/** HTTP by hand: exactly these bytes on a socket, and what comes back until the other side is done. */
import { connect } from 'node:net'
import type { Socket } from 'node:net'

/** What a server sent. */
export interface RawAnswer {
  /** All of it, as Latin-1. */
  readonly text: string
  /** Of the first response; 0 when there was none. */
  readonly status: number
}

/** Sends bytes and resolves when the connection is closed, or an answer without `keepOpen` is whole. */
export async function sendRaw(
  port: number,
  bytes: string | Buffer,
  options: { readonly halfClose?: boolean; readonly timeoutMs?: number } = {},
): Promise<RawAnswer> {
  const socket = connect(port, '127.0.0.1')
  const answer = collect(socket, options.timeoutMs ?? 8000)
  socket.write(bytes)
  if (options.halfClose === true) socket.end()
  return answer
}

/** Opens a connection and leaves the rest to the test. */
export async function openRaw(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  await new Promise((resolve) => socket.once('connect', resolve))
  return socket
}

/** Everything that comes until one whole answer is there, the other side closes, or time is up. */
export function collect(socket: Socket, timeoutMs = 8000): Promise<RawAnswer> {
  return new Promise((resolve) => {
    let text = ''
    const done = (): void => {
      clearTimeout(timer)
      socket.destroy()
      resolve({ text, status: Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0) })
    }
    const timer = setTimeout(done, timeoutMs)
    socket.on('error', done)
    socket.on('close', done)
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1')
      if (isWhole(text)) done()
    })
  })
}

function isWhole(text: string): boolean {
  const end = text.indexOf('\r\n\r\n')
  if (end === -1 || text.startsWith('HTTP/1.1 100')) return false
  const length = /content-length: (\d+)/i.exec(text.slice(0, end))?.[1]
  return length !== undefined && text.length >= end + 4 + Number(length)
}

/** A POST with this body and these further header lines. */
export function post(path: string, body: string, lines: readonly string[] = []): string {
  const head = [
    `POST ${path} HTTP/1.1`,
    'Host: localhost',
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...lines,
  ]
  return `${head.join('\r\n')}\r\n\r\n${body}`
}
