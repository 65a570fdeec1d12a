import type { Socket } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { collect, openRaw, post, sendRaw } from '../http/raw-request.ts'
import { serve, stopServers } from './serve.ts'

const sockets: Socket[] = []

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  await stopServers()
})

const path = '/webhooks/stripe'
const head = `POST ${path} HTTP/1.1\r\nHost: localhost\r\n`

describe('what two parsers could read differently', () => {
  it.each([
    [
      'a length beside chunks',
      `${head}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    ],
    ['two lengths', `${head}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}`],
    ['a length that is no number', `${head}Content-Length: +2\r\n\r\n{}`],
    ['an unknown transfer coding', `${head}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n`],
    ['a folded header', `${head}X-A: 1\r\n folded\r\nContent-Length: 2\r\n\r\n{}`],
    ['bare line feeds', `POST ${path} HTTP/1.1\nHost: localhost\nContent-Length: 2\n\n{}`],
    ['a space before a colon', `${head}Content-Length : 2\r\n\r\n{}`],
    ['no Host', `POST ${path} HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}`],
    ['two Hosts', `${head}Host: evil\r\nContent-Length: 2\r\n\r\n{}`],
    ['NUL in a header', `${head}X-A: a\0b\r\nContent-Length: 2\r\n\r\n{}`],
    ['a Latin-1 byte in a header', `${head}X-A: caf\u00e9\r\nContent-Length: 2\r\n\r\n{}`],
    [
      'an absolute target',
      `POST http://evil${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}`,
    ],
    ['a target that is no path', 'OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n'],
    [
      'a doubled signature',
      post(path, '{}', ['Stripe-Signature: t=1,v1=a', 'Stripe-Signature: t=1,v1=b']),
    ],
    ['a doubled webhook-id', post(path, '{}', ['webhook-id: a', 'webhook-id: b'])],
    [
      'a doubled webhook-signature',
      post(path, '{}', ['webhook-signature: v1,a', 'Webhook-Signature: v1,b']),
    ],
    ['no HTTP at all', 'hello\r\n\r\n'],
  ])('is 400 (%s)', async (_what, request) => {
    const { port, received } = await serve()
    const answer = await sendRaw(port, Buffer.from(request, 'latin1'))
    expect(answer.status).toBe(400)
    expect(received).toEqual([])
  })
})

describe('what is too much', () => {
  it('is 431 for headers over 16 KiB, many or one', async () => {
    const { port, received } = await serve()
    const one = post(path, '{}', [`X-A: ${'a'.repeat(17_000)}`])
    const many = post(
      path,
      '{}',
      Array.from({ length: 900 }, (_, n) => `X-Header-${n}: 0123456789`),
    )
    expect((await sendRaw(port, one)).status).toBe(431)
    expect((await sendRaw(port, many)).status).toBe(431)
    expect(received).toEqual([])
  })

  it('is 413 for a body over the limit, announced or in chunks', async () => {
    const { port, received } = await serve()
    expect((await sendRaw(port, `${head}Content-Length: 4097\r\n\r\n`)).status).toBe(413)
    const chunk = `1000\r\n${'x'.repeat(4096)}\r\n`
    expect(
      (await sendRaw(port, `${head}Transfer-Encoding: chunked\r\n\r\n${chunk}${chunk}`)).status,
    ).toBe(413)
    expect(received).toEqual([])
  })

  it('is 415 for a compressed body, which is not unpacked', async () => {
    const { port, received } = await serve()
    for (const encoding of ['gzip', 'deflate', 'br', 'gzip, gzip']) {
      expect(
        (await sendRaw(port, post(path, '{}', [`Content-Encoding: ${encoding}`]))).status,
      ).toBe(415)
    }
    expect(received).toEqual([])
  })

  it('is 417 for a body that wants to be asked for, and Node does not ask for it', async () => {
    const { port, received } = await serve()
    for (const expectation of ['100-continue', 'something-else']) {
      const answer = await sendRaw(
        port,
        `${head}Content-Length: 2\r\nExpect: ${expectation}\r\n\r\n`,
      )
      expect(answer.status).toBe(417)
      expect(answer.text).not.toContain('100 Continue')
    }
    expect(received).toEqual([])
  })
})

describe('what is too slow', () => {
  it('is 408 for headers that do not end, and for a body that does not', async () => {
    const { port, received } = await serve()
    expect((await sendRaw(port, 'POST / HTTP/1.1\r\nHost:')).status).toBe(408)
    expect((await sendRaw(port, `${head}Content-Length: 100\r\n\r\n{`)).status).toBe(408)
    expect(received).toEqual([])
  })

  it('ends for a sender that drips a byte now and then', async () => {
    const { port, received } = await serve()
    const socket = await openRaw(port)
    sockets.push(socket)
    socket.write(`${head}Content-Length: 1000\r\n\r\n`)
    const drip = setInterval(() => socket.write('x'), 50)
    const answer = await collect(socket)
    clearInterval(drip)
    expect(answer.status).toBe(408)
    expect(received).toEqual([])
  })

  it('ends for a connection that never says a word', async () => {
    const { port } = await serve()
    const socket = await openRaw(port)
    expect((await collect(socket)).status).toBe(408)
  })

  it('does not keep an honest sender waiting, however many are slow', async () => {
    const { port, received } = await serve({
      limits: { bodyBytes: 4096, headerBytes: 16 * 1024, requestTimeoutMs: 5000 },
    })
    const slow = await Promise.all(Array.from({ length: 400 }, () => openRaw(port)))
    sockets.push(...slow)
    slow.forEach((socket, n) =>
      socket.write(n % 2 === 0 ? 'POST /webh' : `${head}Content-Length: 100\r\n\r\n{`),
    )
    for (let n = 0; n < 20; n++)
      expect((await sendRaw(port, post(path, `{"n":${n}}`))).status).toBe(200)
    expect(received).toHaveLength(20)
    expect(slow.filter(({ destroyed }) => destroyed)).toEqual([])
  })

  it('is closed as it comes when there are too many connections', async () => {
    const { port } = await serve({ maxConnections: 2 })
    const kept = [await openRaw(port), await openRaw(port)]
    sockets.push(...kept)
    const answer = await sendRaw(port, post(path, '{}'), { timeoutMs: 400 })
    expect(answer.status).toBe(0)
    kept[0]?.destroy()
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect((await sendRaw(port, post(path, '{}'))).status).toBe(200)
  })
})

describe('what breaks off', () => {
  it('leaves nothing stored and nobody hurt', async () => {
    const { port, received } = await serve()
    const broken = [
      `${head}Content-Length: 100\r\n\r\n{"a":`,
      head,
      'POST',
      `${head}Transfer-Encoding: chunked\r\n\r\n5\r\nab`,
    ]
    for (const bytes of broken) {
      await sendRaw(port, bytes, { halfClose: true })
      const socket = await openRaw(port)
      socket.write(bytes)
      await new Promise((resolve) => setTimeout(resolve, 10))
      socket.resetAndDestroy()
    }
    expect(received).toEqual([])
    expect((await sendRaw(port, post(path, '{}'))).status).toBe(200)
  })

  it('is answered although the sender closed its own side', async () => {
    const { port, received } = await serve()
    expect((await sendRaw(port, post(path, '{}'), { halfClose: true })).status).toBe(200)
    expect(received).toHaveLength(1)
  })

  it('is no error when the sender is gone before its answer', async () => {
    let answer = (): void => {}
    const asked = new Promise<void>((resolve) => {
      answer = resolve
    })
    let calls = 0
    const { port } = await serve({
      ingest: async () => {
        if (calls++ === 0) await asked
        return { status: 200 }
      },
    })
    const socket = await openRaw(port)
    socket.write(post(path, '{}'))
    while (calls === 0) await new Promise((resolve) => setTimeout(resolve, 5))
    socket.resetAndDestroy()
    await new Promise((resolve) => setTimeout(resolve, 20))
    answer()
    expect((await sendRaw(port, post(path, '{}'))).status).toBe(200)
  })
})
