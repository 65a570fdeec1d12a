import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import type { Express } from 'express'
import fastify from 'fastify'
import { afterEach, describe, expect, it } from 'vitest'
import { createExpressHandler } from '../../src/http/express.ts'
import { createFastifyPlugin } from '../../src/http/fastify.ts'
import { hostileBytes, recordedIngest } from './recorded-ingest.ts'

const limits = { bodyBytes: 1024 * 1024, requestTimeoutMs: 5000 }
const closing: (() => unknown)[] = []

afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

async function listen(app: Express): Promise<string> {
  const server = await new Promise<Server>((resolve) => {
    const started = app.listen(0, '127.0.0.1', () => {
      resolve(started)
    })
  })
  closing.push(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function deliver(
  url: string,
  body: Buffer = hostileBytes,
  contentType = 'application/json',
): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    body,
    headers: { 'content-type': contentType, 'stripe-signature': 't=1,v1=2' },
  })
}

describe('createExpressHandler', () => {
  it('hands over exact bytes and the source of the route, beside a body parser for the rest', async () => {
    const { ingest, received } = recordedIngest()
    const app = express()
    app.post('/webhooks/:source', createExpressHandler({ ingest, limits }))
    app.use(express.json())
    app.post('/orders', (request, response) => {
      response.json(request.body)
    })
    const url = await listen(app)
    expect((await deliver(`${url}/webhooks/stripe`)).status).toBe(200)
    expect(received[0]?.source).toBe('stripe')
    expect(received[0]?.rawBody.equals(hostileBytes)).toBe(true)
    expect(received[0]?.header('stripe-signature')).toBe('t=1,v1=2')
    const order = await deliver(`${url}/orders`, Buffer.from('{"id":1}'))
    expect(await order.json()).toEqual({ id: 1 })
  })

  it('takes the bytes that express.raw() kept', async () => {
    const { ingest, received } = recordedIngest()
    const app = express()
    app.post(
      '/hook',
      express.raw({ type: () => true }),
      createExpressHandler({ ingest, limits, source: 'stripe' }),
    )
    const url = await listen(app)
    expect((await deliver(`${url}/hook`, hostileBytes, 'text/plain')).status).toBe(200)
    expect(received[0]?.rawBody.equals(hostileBytes)).toBe(true)
  })

  it.each([
    ['express.json()', express.json(), 'application/json'],
    ['express.text()', express.text(), 'text/plain'],
    ['express.urlencoded()', express.urlencoded(), 'application/x-www-form-urlencoded'],
  ])(
    'answers 503 with the fix when %s read the body first',
    async (_parser, parser, contentType) => {
      const { ingest, received } = recordedIngest()
      const refused: string[] = []
      const app = express()
      app.use(parser)
      app.post(
        '/webhooks/:source',
        createExpressHandler({
          ingest,
          limits,
          onRefused: (source, reason) => refused.push(`${source} ${reason}`),
        }),
      )
      const url = await listen(app)
      const answer = await deliver(
        `${url}/webhooks/stripe`,
        Buffer.from('{"id":"evt_1"}'),
        contentType,
      )
      expect(answer.status).toBe(503)
      const { error } = (await answer.json()) as { error: { code: string; message: string } }
      expect(error.code).toBe('HKL_INBOX_BODY_CONSUMED')
      expect(error.message).toContain('before any body parser')
      expect(received).toEqual([])
      expect(refused).toEqual(['stripe body_consumed'])
    },
  )

  it('refuses what is larger than its limit, through express.raw() too', async () => {
    const { ingest, received } = recordedIngest()
    const small = { ...limits, bodyBytes: 100 }
    const app = express()
    app.post(
      '/raw/:source',
      express.raw({ type: () => true, limit: '5mb' }),
      createExpressHandler({ ingest, limits: small }),
    )
    app.post('/:source', createExpressHandler({ ingest, limits: small }))
    const url = await listen(app)
    for (const path of ['/raw/stripe', '/stripe']) {
      expect((await deliver(url + path, Buffer.alloc(5000, 0x20))).status).toBe(413)
    }
    expect(received).toEqual([])
  })
})

describe('createFastifyPlugin', () => {
  it('hands over exact bytes and the source of the route, and leaves the parsers of the app alone', async () => {
    const { ingest, received } = recordedIngest()
    const app = fastify()
    closing.push(() => app.close())
    await app.register(createFastifyPlugin({ ingest, limits }))
    app.post('/orders', (request) => request.body)
    const url = await app.listen({ port: 0, host: '127.0.0.1' })
    for (const contentType of [
      'application/json',
      'text/plain',
      'application/x-www-form-urlencoded',
      'x/y',
    ]) {
      expect((await deliver(`${url}/webhooks/stripe`, hostileBytes, contentType)).status).toBe(200)
    }
    expect(received).toHaveLength(4)
    for (const { source, rawBody } of received) {
      expect(source).toBe('stripe')
      expect(rawBody.equals(hostileBytes)).toBe(true)
    }
    const order = await deliver(`${url}/orders`, Buffer.from('{"id":1}'))
    expect(await order.json()).toEqual({ id: 1 })
  })

  it('mounts a fixed source at another path, and keeps its own limit of size', async () => {
    const { ingest, received } = recordedIngest()
    const app = fastify({ bodyLimit: 10 })
    closing.push(() => app.close())
    await app.register(
      createFastifyPlugin({
        ingest,
        limits: { ...limits, bodyBytes: 100 },
        path: '/hook',
        source: 'paddle',
      }),
    )
    const url = await app.listen({ port: 0, host: '127.0.0.1' })
    expect((await deliver(`${url}/hook`, Buffer.alloc(100, 0x20))).status).toBe(200)
    expect((await deliver(`${url}/hook`, Buffer.alloc(101, 0x20))).status).toBe(413)
    expect(received.map(({ source }) => source)).toEqual(['paddle'])
  })
})
