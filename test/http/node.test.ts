import { createServer } from 'node:http'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import type { NodeHandlerOptions } from '../../src/http/node.ts'
import { createNodeHandler } from '../../src/http/node.ts'
import { openRaw, post, sendRaw } from './raw-request.ts'
import { hostileBytes, recordedIngest } from './recorded-ingest.ts'

const servers: Server[] = []

afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
})

async function serve(options: Partial<NodeHandlerOptions> = {}) {
  const { ingest, received } = recordedIngest()
  const refused: string[] = []
  const handler = createNodeHandler({
    ingest,
    limits: { bodyBytes: 1024, requestTimeoutMs: 300 },
    source: 'stripe',
    onRefused: (source, reason, status) => refused.push(`${source} ${reason} ${status}`),
    ...options,
  })
  const server = createServer((request, response) => void handler(request, response))
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { port: (server.address() as AddressInfo).port, received, refused }
}

describe('createNodeHandler', () => {
  it('hands over the exact bytes and the headers, and answers 200 with a small body', async () => {
    const { port, received } = await serve()
    const answer = await fetch(`http://127.0.0.1:${port}/`, {
      method: 'POST',
      body: hostileBytes,
      headers: { 'Stripe-Signature': 't=1,v1=2', 'content-type': 'application/json' },
    })
    expect([answer.status, await answer.text()]).toEqual([200, '{"received":true}'])
    expect(received).toHaveLength(1)
    expect(received[0]?.rawBody.equals(hostileBytes)).toBe(true)
    expect(received[0]?.header('stripe-signature')).toBe('t=1,v1=2')
    expect(received[0]?.source).toBe('stripe')
  })

  it('joins a body that comes in pieces', async () => {
    const { port, received } = await serve()
    const socket = await openRaw(port)
    socket.write('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n')
    await new Promise((resolve) => setTimeout(resolve, 30))
    socket.write('4\r\ndefg\r\n0\r\n\r\n')
    await new Promise((resolve) => socket.once('data', resolve))
    socket.destroy()
    expect(received[0]?.rawBody.toString()).toBe('abcdefg')
  })

  it('says what ingest says, with Retry-After', async () => {
    const { port } = await serve({
      ingest: () =>
        Promise.resolve({
          status: 503,
          code: 'HKL_INBOX_UNAVAILABLE',
          message: 'send it again',
          retryAfterSeconds: 5,
        }),
    })
    const answer = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: '{}' })
    expect(answer.status).toBe(503)
    expect(answer.headers.get('retry-after')).toBe('5')
    expect(await answer.json()).toEqual({
      error: { code: 'HKL_INBOX_UNAVAILABLE', message: 'send it again' },
    })
  })

  it('answers 503 when ingest throws', async () => {
    const { port } = await serve({ ingest: () => Promise.reject(new Error('secret inside')) })
    const answer = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: '{}' })
    expect(answer.status).toBe(503)
    expect(await answer.text()).not.toContain('secret')
  })

  it('refuses what is announced larger than the limit without reading it', async () => {
    const { port, received } = await serve()
    const answer = await sendRaw(
      port,
      'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5000000\r\n\r\n',
    )
    expect(answer.status).toBe(413)
    expect(answer.text).toMatch(/connection: close/i)
    expect(received).toEqual([])
  })

  it('gives its 413 to a sender that writes the whole body before it reads', async () => {
    const { port, received } = await serve()
    const answer = await sendRaw(port, post('/', 'x'.repeat(200_000)))
    expect(answer.status).toBe(413)
    expect(received).toEqual([])
  })

  it('counts the bytes of a body that announces no length', async () => {
    const { port, received, refused } = await serve()
    const chunk = `400\r\n${'x'.repeat(1024)}\r\n`
    const answer = await sendRaw(
      port,
      `POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${chunk}${chunk}`,
    )
    expect(answer.status).toBe(413)
    expect(received).toEqual([])
    expect(refused).toEqual(['stripe too_large 413'])
  })

  it('takes a body of exactly the limit', async () => {
    const { port, received } = await serve()
    expect((await sendRaw(port, post('/', 'x'.repeat(1024)))).status).toBe(200)
    expect(received[0]?.rawBody.byteLength).toBe(1024)
  })

  it('answers 408 to a body that does not come in time, and does not ingest what came', async () => {
    const { port, received, refused } = await serve()
    const answer = await sendRaw(
      port,
      'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{"a":',
    )
    expect(answer.status).toBe(408)
    expect(received).toEqual([])
    expect(refused).toEqual(['stripe too_slow 408'])
  })

  it('ingests nothing of a body that breaks off, and answers nobody', async () => {
    const { port, received, refused } = await serve()
    const answer = await sendRaw(
      port,
      'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{"a":',
      {
        halfClose: true,
      },
    )
    expect(answer.status === 0 || answer.status === 400).toBe(true)
    expect(received).toEqual([])
    expect(refused.every((line) => line.startsWith('stripe aborted'))).toBe(true)
  })

  it('survives a sender that leaves after its request, with the event stored', async () => {
    const { port, received } = await serve()
    const socket = await openRaw(port)
    socket.write(post('/', '{}'))
    socket.resetAndDestroy()
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect((await sendRaw(port, post('/', '{}'))).status).toBe(200)
    expect(received.length).toBeGreaterThanOrEqual(1)
  })

  it('refuses other methods, encodings and doubled or non-ASCII headers by their head alone', async () => {
    const { port, received } = await serve()
    const requests: [string, number][] = [
      ['GET / HTTP/1.1\r\nHost: a\r\n\r\n', 405],
      ['PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}', 405],
      [post('/', '{}', ['Content-Encoding: gzip']), 415],
      [post('/', '{}', ['Content-Encoding: identity']), 200],
      [post('/', '{}', ['Stripe-Signature: t=1', 'Stripe-Signature: t=2']), 400],
      [post('/', '{}', ['webhook-id: a', 'webhook-id: b']), 400],
      [post('/', '{}', ['svix-timestamp: 1', 'svix-timestamp: 1']), 400],
      [post('/', '{}', ['X-Forwarded-For: 1.1.1.1', 'X-Forwarded-For: 2.2.2.2']), 200],
      [post('/', '{}', ['X-Name: caf\u00e9']), 400],
    ]
    for (const [request, status] of requests) {
      expect((await sendRaw(port, Buffer.from(request, 'latin1'))).status, request).toBe(status)
    }
    expect(received).toHaveLength(2)
  })

  it('names the one method it takes', async () => {
    const { port } = await serve()
    const answer = await fetch(`http://127.0.0.1:${port}/`)
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST'])
  })

  it('refuses an unknown source before it reads the body', async () => {
    const { port, received } = await serve({ hasSource: (name) => name === 'paddle' })
    const answer = await sendRaw(port, 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n')
    expect(answer.status).toBe(404)
    expect(received).toEqual([])
  })

  it('keeps the connection for the next request', async () => {
    const { port, received } = await serve()
    const socket = await openRaw(port)
    for (let n = 1; n <= 3; n++) {
      socket.write(post('/', `{"n":${n}}`))
      await new Promise((resolve) => socket.once('data', resolve))
    }
    socket.destroy()
    expect(received.map(({ rawBody }) => rawBody.toString())).toEqual([
      '{"n":1}',
      '{"n":2}',
      '{"n":3}',
    ])
  })
})
