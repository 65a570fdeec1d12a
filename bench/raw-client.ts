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
  const lanes = Array.from({ length: connections }, async () =>
    runLane(await open(port), () => requests[next++]),
  )
  await Promise.all(lanes)
}

/** One connection's requests, with listeners that stay: nothing is set up for a single exchange. */
function runLane(socket: Socket, nextRequest: () => Buffer | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    let answer = ''
    const goOn = (): void => {
      const request = nextRequest()
      if (request !== undefined) return void socket.write(request)
      socket.removeAllListeners()
      socket.destroy()
      resolve()
    }
    socket.on('data', (chunk: Buffer) => {
      answer = answer === '' ? chunk.toString('latin1') : answer + chunk.toString('latin1')
      const status = completeStatus(answer)
      if (status === undefined) return
      if (status !== 200) return void socket.destroy(new Error(`answered ${status}`))
      answer = ''
      goOn()
    })
    socket.on('error', reject)
    socket.on('close', () => {
      reject(new Error('the connection ended'))
    })
    goOn()
  })
}

/** The status of an answer that is whole. */
function completeStatus(answer: string): number | undefined {
  const head = answer.indexOf('\r\n\r\n')
  if (head === -1) return undefined
  const length = Number(/\r\ncontent-length: (\d+)/i.exec(answer)?.[1] ?? 0)
  return answer.length < head + 4 + length ? undefined : Number(answer.slice(9, 12))
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
      const status = completeStatus(answer)
      if (status !== undefined) done(() => resolve(status))
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
