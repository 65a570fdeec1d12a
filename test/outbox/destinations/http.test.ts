import { createServer as createTcpServer, type AddressInfo } from 'node:net'
import { Webhook as StandardWebhook } from 'standardwebhooks'
import { Webhook as SvixWebhook } from 'svix'
import { describe, expect, it } from 'vitest'
import { http } from '../../../src/outbox/destinations/http.ts'
import type { HttpOptions } from '../../../src/outbox/destinations/http-options.ts'
import type { Destination } from '../../../src/outbox/destination.ts'
import { callWith, lookUpWith, operationId, outgoing } from './outgoing.ts'
import { answers, startServer, type ScriptedServer, type Script } from './scripted-server.ts'

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const older = 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD'

/** A destination of the server, closed with it. */
async function served(
  script: Script,
  options: Partial<HttpOptions> = {},
): Promise<{ server: ScriptedServer; destination: Destination } & AsyncDisposable> {
  const server = await startServer(script)
  const destination = http({ url: `${server.url}/mail`, allow: [server.host], ...options })
  return {
    server,
    destination,
    [Symbol.asyncDispose]: async () => {
      await destination.close?.()
      await server[Symbol.asyncDispose]()
    },
  }
}

describe('what an HTTP destination sends', () => {
  it('is the stored body under the key, with nothing that the operation did not say', async () => {
    await using both = await served(answers(202, '{"id":"m_1","text":"long"}'))
    const { server, destination } = both
    const body = { to: 'ada@example.com', amount: 12345678901234567890n, note: 'zwölf €' }
    expect(await callWith(destination, body)).toMatchObject({
      kind: 'sent',
      status: 202,
      receipt: { status: 202, id: 'm_1' },
    })
    const [request] = server.seen
    expect(request?.method).toBe('POST')
    expect(request?.path).toBe('/mail')
    expect(request?.body.toString('utf8')).toBe(
      '{"to":"ada@example.com","amount":12345678901234567890,"note":"zwölf €"}',
    )
    expect(request?.headers).toEqual({
      accept: 'application/json, */*;q=0.5',
      'accept-encoding': 'identity',
      connection: 'keep-alive',
      'content-length': String(request?.body.byteLength),
      'content-type': 'application/json',
      host: server.host,
      'idempotency-key': operationId,
      'user-agent': 'hookledger',
    })
  })

  it('carries a later generation of the key in the same header, over the same bytes', async () => {
    await using both = await served(answers(200))
    const { server, destination } = both
    await callWith(destination, { a: 1 })
    await callWith(destination, { a: 1 }, { generation: 2 })
    expect(server.seen.map((request) => request.headers['idempotency-key'])).toEqual([
      operationId,
      `${operationId}:2`,
    ])
    expect(server.seen[1]?.body).toEqual(server.seen[0]?.body)
  })

  it('carries the key under the name that the destination reads', async () => {
    await using header = await served(answers(200), { key: { header: 'X-Request-Token' } })
    await callWith(header.destination, {})
    expect(header.server.seen[0]?.headers['x-request-token']).toBe(operationId)
    expect(header.server.seen[0]?.headers).not.toHaveProperty('idempotency-key')

    await using field = await served(answers(200), { key: { field: 'client_ref' } })
    await callWith(field.destination, { to: 'x' })
    expect(field.server.seen[0]?.body.toString()).toBe(`{"to":"x","client_ref":"${operationId}"}`)
    expect(field.server.seen[0]?.headers).not.toHaveProperty('idempotency-key')
  })

  it('is what request() made of the body: method, path, type, headers', async () => {
    await using both = await served(answers(200), {
      request: ({ body, operationId: id }) => ({
        method: 'PUT',
        path: `/messages/${id}?notify=1`,
        contentType: 'application/x-www-form-urlencoded',
        headers: { 'X-Version': '3' },
        body: new URLSearchParams(body as Record<string, string>).toString(),
      }),
    })
    await callWith(both.destination, { to: 'a b' })
    const [request] = both.server.seen
    expect([request?.method, request?.path]).toEqual([
      'PUT',
      `/mail/messages/${operationId}?notify=1`,
    ])
    expect(request?.headers).toMatchObject({
      'content-type': 'application/x-www-form-urlencoded',
      'x-version': '3',
    })
    expect(request?.body.toString()).toBe('to=a+b')
  })

  it('is none where request() is asynchronous: nothing is recorded that would be sent empty', async () => {
    await using both = await served(answers(200), {
      request: (async () => ({ body: {} })) as never,
    })
    expect(() => both.destination.encode({ operationId, orderId: null, body: {} })).toThrow(
      /asynchronous/,
    )
  })

  it('has secret headers that no stored request has', async () => {
    await using both = await served(answers(200), {
      secretHeaders: { Authorization: 'Bearer sesame-123' },
      headers: { 'x-shop': 'books' },
    })
    const request = outgoing(both.destination, { a: 1 })
    const stored = new TextDecoder().decode(request.request)
    expect(stored).not.toContain('sesame-123')
    expect(stored).toContain('x-shop')
    await both.destination.call(request, new AbortController().signal)
    expect(both.server.seen[0]?.headers).toMatchObject({
      authorization: 'Bearer sesame-123',
      'x-shop': 'books',
    })
  })

  it('opens a connection for each call where a repeated one would be done twice', async () => {
    await using both = await served(answers(200), { contract: { idempotency: 'none' } })
    for (let round = 0; round < 2; round++) await callWith(both.destination, {})
    expect(both.server.seen.map((request) => request.connection)).toEqual([1, 2])
    expect(both.server.seen[0]?.headers.connection).toBe('close')
  })
})

describe('the signature of a request', () => {
  it('is accepted by the official libraries, over the very bytes', async () => {
    await using both = await served(answers(200), { signingSecret: secret })
    await callWith(both.destination, { text: 'ü\u2028', n: 1.5 })
    const [request] = both.server.seen
    const headers = request?.headers as Record<string, string>
    const text = request?.body.toString('utf8') ?? ''
    expect(headers['webhook-id']).toBe(operationId)
    expect(new StandardWebhook(secret).verify(text, headers)).toEqual({ text: 'ü\u2028', n: 1.5 })
    expect(new SvixWebhook(secret).verify(text, headers)).toEqual({ text: 'ü\u2028', n: 1.5 })
    expect(() => new StandardWebhook(secret).verify(`${text} `, headers)).toThrow()
    expect(() => new StandardWebhook(older).verify(text, headers)).toThrow()
  })

  it('is one for each secret while they are rotated', async () => {
    await using both = await served(answers(200), { signingSecret: [secret, older] })
    await callWith(both.destination, { a: 1 })
    const [request] = both.server.seen
    const headers = request?.headers as Record<string, string>
    for (const known of [secret, older]) {
      expect(new StandardWebhook(known).verify(request?.body.toString() ?? '', headers)).toEqual({
        a: 1,
      })
    }
  })

  it('keeps the id through all attempts and takes the time of each', async () => {
    let now = Date.now()
    const server = await startServer(answers(500))
    const destination = http(
      { url: server.url, allow: [server.host], signingSecret: secret },
      { nowMs: () => now },
    )
    await callWith(destination, { a: 1 })
    now += 60_000
    await callWith(destination, { a: 1 })
    const [first, second] = server.seen.map((request) => request.headers)
    expect(second?.['webhook-id']).toBe(first?.['webhook-id'])
    expect(Number(second?.['webhook-timestamp']) - Number(first?.['webhook-timestamp'])).toBe(60)
    await destination.close?.()
    await server[Symbol.asyncDispose]()
  })
})

describe('what an answer means', () => {
  it.each([200, 201, 202, 204, 299])('%i: it was done', async (status) => {
    await using both = await served(answers(status))
    expect(await callWith(both.destination, {})).toMatchObject({ kind: 'sent', status })
  })

  it.each([300, 301, 302, 303, 304, 307, 308])(
    '%i: refused for good, not followed',
    async (status) => {
      await using both = await served(answers(status, '', { location: '/elsewhere' }))
      expect(await callWith(both.destination, {})).toMatchObject({
        kind: 'refused',
        status,
        settlesEarlier: false,
      })
      expect(both.server.seen).toHaveLength(1)
    },
  )

  it.each([408, 425, 429])('%i: certainly not done, to be tried again', async (status) => {
    await using both = await served(answers(status, '', { 'retry-after': '7' }))
    expect(await callWith(both.destination, {})).toMatchObject({
      kind: 'retry',
      status,
      retryAfterMs: 7000,
    })
  })

  it.each([401, 407])('%i: our credentials, which a person mends: tried again', async (status) => {
    await using both = await served(answers(status))
    const outcome = await callWith(both.destination, {})
    expect(outcome).toMatchObject({ kind: 'retry', status })
    expect('error' in outcome && outcome.error).toContain('credentials')
  })

  it.each([403, 404, 405, 413, 415])(
    '%i: refused before anybody looked, which says nothing of an earlier call',
    async (status) => {
      await using both = await served(answers(status))
      expect(await callWith(both.destination, {})).toMatchObject({
        kind: 'refused',
        status,
        settlesEarlier: false,
      })
    },
  )

  it.each([400, 402, 422, 499])(
    '%i: the word of the destination about the operation',
    async (status) => {
      await using both = await served(answers(status, '{"error":"no such address"}'))
      const outcome = await callWith(both.destination, {})
      expect(outcome).toMatchObject({ kind: 'refused', status, settlesEarlier: true })
      const answer = 'answer' in outcome ? outcome.answer : undefined
      expect(new TextDecoder().decode(answer)).toBe('{"error":"no such address"}')
    },
  )

  it('a refusal settles nothing where the destination honors no key', async () => {
    await using both = await served(answers(422), { contract: { idempotency: 'none' } })
    expect(await callWith(both.destination, {})).toMatchObject({ settlesEarlier: false })
  })

  it.each([409, 500, 502, 503, 504, 599])('%i: nobody knows', async (status) => {
    await using both = await served(answers(status, '', { 'retry-after': '3' }))
    expect(await callWith(both.destination, {})).toMatchObject({
      kind: 'uncertain',
      status,
      retryAfterMs: 3000,
    })
  })

  it('Retry-After is counted from the date of the answer and capped by the contract', async () => {
    const headers = {
      date: 'Tue, 01 Dec 2026 18:00:00 GMT',
      'retry-after': 'Tue, 01 Dec 2026 18:00:45 GMT',
    }
    await using both = await served(answers(429, '', headers))
    expect(await callWith(both.destination, {})).toMatchObject({ retryAfterMs: 45_000 })
    await using capped = await served(answers(429, '', { 'retry-after': '1000000000' }), {
      contract: { maxRetryMs: 60_000 },
    })
    expect(await callWith(capped.destination, {})).toMatchObject({ retryAfterMs: 60_000 })
  })

  it.each([
    [true, 'sent'],
    ['sent', 'sent'],
    [false, 'refused'],
    ['refused', 'refused'],
    ['retry', 'retry'],
    ['uncertain', 'uncertain'],
  ] as const)('a 200 with an error in it is what accepts() says: %j', async (says, kind) => {
    await using both = await served(answers(200, '{"ok":false}'), {
      accepts: (answer) => {
        expect(answer).toMatchObject({ status: 200, json: { ok: false }, isComplete: true })
        return says
      },
    })
    expect(await callWith(both.destination, {})).toMatchObject({ kind, status: 200 })
  })

  it('an accepts() that throws leaves it uncertain', async () => {
    await using both = await served(answers(200, 'x'), {
      accepts: (answer) => (answer.json as { ok: boolean }).ok,
    })
    expect(await callWith(both.destination, {})).toMatchObject({ kind: 'uncertain' })
  })

  it('a body that proves the same operation makes a refusal sent', async () => {
    const script: Script = (request, response) => {
      response.writeHead(409, { 'content-type': 'application/json' })
      response.end(`{"existing":"${String(request.headers['idempotency-key'])}","id":"m_7"}`)
    }
    await using both = await served(script, {
      proves: (answer, { key }) => (answer.json as { existing?: string }).existing === key,
      receipt: (answer) => ({ message: (answer.json as { id: string }).id }),
    })
    expect(await callWith(both.destination, {})).toMatchObject({
      kind: 'sent',
      status: 409,
      receipt: { status: 409, message: 'm_7' },
    })
  })
})

describe('an answer that does not end well', () => {
  const head = { 'content-type': 'text/plain' }

  it('is read up to 4 KiB, and then the connection is gone', async () => {
    let sent = 0
    const script: Script = (_, response) => {
      response.writeHead(200, head)
      const chunk = Buffer.alloc(64 * 1024, 'x')
      const pour = (): void => {
        while (!response.destroyed && sent < 1e10) {
          sent += chunk.length
          if (!response.write(chunk)) {
            response.once('drain', pour)
            return
          }
        }
      }
      pour()
    }
    await using both = await served(script)
    const outcome = await callWith(both.destination, {})
    expect(outcome).toMatchObject({ kind: 'sent', status: 200 })
    expect('answer' in outcome && outcome.answer?.byteLength).toBe(4096)
    await expect.poll(() => both.server.connections().open).toBe(0)
    expect(sent).toBeLessThan(64 * 1024 * 1024)
  })

  it('that drips is over at the deadline; its 200 still says that it was done', async () => {
    const script: Script = (_, response) => {
      response.writeHead(200, head)
      const timer = setInterval(() => response.write('.'), 20)
      response.on('close', () => clearInterval(timer))
    }
    await using plain = await served(script, { contract: { callMs: 150 } })
    expect(await callWith(plain.destination, {})).toMatchObject({ kind: 'sent' })
    await expect.poll(() => plain.server.connections().open).toBe(0)
    await using asking = await served(script, { contract: { callMs: 150 }, accepts: () => true })
    expect(await callWith(asking.destination, {})).toMatchObject({ kind: 'uncertain' })
  })

  it('that never comes leaves it uncertain at the deadline', async () => {
    await using both = await served(() => undefined, { contract: { callMs: 100 } })
    expect(await callWith(both.destination, {})).toEqual({
      kind: 'uncertain',
      error: 'no answer in time',
    })
    await expect.poll(() => both.server.connections().open).toBe(0)
  })

  it('that is a reset leaves it uncertain', async () => {
    await using both = await served((_, response) => response.socket?.resetAndDestroy())
    expect(await callWith(both.destination, {})).toMatchObject({ kind: 'uncertain' })
  })

  it('that is no HTTP, or has endless headers, leaves it uncertain', async () => {
    await using garbage = await served((_, response) => response.socket?.end('SSH-2.0-nope\r\n'))
    expect(await callWith(garbage.destination, {})).toMatchObject({ kind: 'uncertain' })
    await using huge = await served(
      answers(200, '', { 'x-huge': 'x'.repeat(12_000), 'x-more': 'y'.repeat(12_000) }),
    )
    expect(await callWith(huge.destination, {})).toMatchObject({ kind: 'uncertain' })
  })
})

describe('a request that was never written', () => {
  it('is a retry where nothing listens', async () => {
    const server = await startServer()
    const { url, host } = server
    await server[Symbol.asyncDispose]()
    const destination = http({ url, allow: [host] })
    expect(await callWith(destination, {})).toEqual({ kind: 'retry', error: 'connection refused' })
    await destination.close?.()
  })

  it('is a retry where the name does not exist', async () => {
    const destination = http(
      { url: 'https://nowhere.example/' },
      { resolve: () => Promise.reject(Object.assign(new Error('x'), { code: 'ENOTFOUND' })) },
    )
    expect(await callWith(destination, {})).toMatchObject({
      kind: 'retry',
      error: /does not exist/,
    })
    await destination.close?.()
  })

  it('is a retry where resolving outlasts the deadline, and nothing is sent later', async () => {
    await using server = await startServer()
    let answer: (addresses: readonly string[]) => void = () => undefined
    const destination = http(
      {
        url: `http://slow.example:${server.port}`,
        allow: ['slow.example'],
        contract: { callMs: 50 },
      },
      { resolve: () => new Promise((resolve) => (answer = resolve)) },
    )
    expect(await callWith(destination, {})).toEqual({ kind: 'retry', error: 'not sent in time' })
    answer(['127.0.0.1'])
    await expect.poll(() => server.connections().accepted).toBe(1)
    await expect.poll(() => server.connections().open).toBe(0)
    expect(server.seen).toEqual([])
    await destination.close?.()
  })

  it('is a retry where the connection is taken and TLS never begins', async () => {
    const silent = createTcpServer((socket) => socket.on('error', () => undefined))
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
    const { port } = silent.address() as AddressInfo
    const destination = http({
      url: `https://127.0.0.1:${port}`,
      allow: ['127.0.0.1'],
      contract: { callMs: 100 },
    })
    expect(await callWith(destination, {})).toEqual({ kind: 'retry', error: 'not sent in time' })
    await destination.close?.()
    silent.close()
  })
})

describe('looking an operation up over HTTP', () => {
  it('asks the destination under the rules of a call and believes only a clear word', async () => {
    const script: Script = (request, response) => {
      response.writeHead(request.path.endsWith('/known') ? 200 : 404)
      response.end('{"id":"m_9","to":"ada"}')
    }
    await using both = await served(script, {
      secretHeaders: { authorization: 'Bearer sesame-123' },
      lookup: async ({ get, body }) => {
        const answer = await get(`/${(JSON.parse(body) as { at: string }).at}`)
        if (answer.status === 404) return { kind: 'absent' }
        return { kind: 'present', receipt: { id: (answer.json as { id: string }).id } }
      },
    })
    const { destination, server } = both
    expect(await lookUpWith(destination, outgoing(destination, { at: 'known' }))).toEqual({
      kind: 'present',
      receipt: { id: 'm_9' },
    })
    expect(await lookUpWith(destination, outgoing(destination, { at: 'other' }))).toEqual({
      kind: 'absent',
    })
    expect(server.seen[0]).toMatchObject({ method: 'GET', path: '/mail/known' })
    expect(server.seen[0]?.headers.authorization).toBe('Bearer sesame-123')
    await server[Symbol.asyncDispose]()
    expect(await lookUpWith(destination, outgoing(destination, { at: 'known' }))).toMatchObject({
      kind: 'no_answer',
    })
  })
})
