/**
 * A client that costs little: keep-alive sockets that write prepared bytes and wait for each answer's
 * end. What it costs is the same for every contestant.
 */
import { connect, type Socket } from 'node:net'
import { signStripe } from '../src/testing/sign.ts'
import type { CheckoutEvent } from './checkout-events.ts'
import { benchSecret } from './license.ts'

/** The bytes of one signed delivery. */
export function requestBytes({ body }: CheckoutEvent): Buffer {
  const headers = Object.entries(signStripe(body, benchSecret)).map(
    ([name, value]) => `${name}: ${value}`,
  )
  const head = [
    'POST /webhooks/stripe HTTP/1.1',
    'host: 127.0.0.1',
    ...headers,
    `content-length: ${body.length}`,
    '',
    '',
  ].join('\r\n')
  return Buffer.concat([Buffer.from(head, 'latin1'), body])
}

/** Sends all requests over so many connections, each its next one when the last was answered 200. */
export async function sendAll(
  port: number,
  requests: readonly Buffer[],
  connections: number,
): Promise<void> {
  let next = 0
  const lane = async (): Promise<void> => {
    const socket = await open(port)
    try {
      for (let request = requests[next++]; request !== undefined; request = requests[next++]) {
        const status = await exchange(socket, request)
        if (status !== 200) throw new Error(`answered ${status}`)
      }
    } finally {
      socket.destroy()
    }
  }
  await Promise.all(Array.from({ length: connections }, lane))
}

/** One request and its answer's status. */
export function exchange(socket: Socket, request: Buffer): Promise<number> {
  return new Promise((resolve, reject) => {
    let answer = ''
    const done = (settle: () => void): void => {
      socket.off('data', onData)
      socket.off('error', onEnd)
      socket.off('close', onEnd)
      settle()
    }
    const onEnd = (): void => done(() => reject(new Error('the connection ended')))
    const onData = (chunk: Buffer): void => {
      answer += chunk.toString('latin1')
      const head = answer.indexOf('\r\n\r\n')
      if (head === -1) return
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(answer)?.[1] ?? 0)
      if (answer.length < head + 4 + length) return
      done(() => resolve(Number(answer.slice(9, 12))))
    }
    socket.on('data', onData)
    socket.on('error', onEnd)
    socket.on('close', onEnd)
    socket.write(request)
  })
}

/** An open connection. */
export function open(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => resolve(socket))
    socket.setNoDelay(true)
    socket.once('error', reject)
  })
}
