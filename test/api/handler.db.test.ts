/** What the API answers to what it does not expect, with routes of the test's own beside those of the table. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Door } from '../../src/api/door.ts'
import { createApi, type Api } from '../../src/api/handler.ts'
import { defineRoute } from '../../src/api/route.ts'
import { apiRoutes } from '../../src/api/routes.ts'
import { HookledgerError } from '../../src/core/errors.ts'
import { partsOf } from '../../src/hookledger.ts'
import { createConsoleHistory, type ConsoleHistory } from '../support/console-history.ts'
import { startApi, type TestApi } from '../support/console-api.ts'

const canary = 'sk_live_canary_4711'

/** Somebody who may do everything; the token is `token`. */
const door: Door = {
  kind: 'app',
  signInPath: null,
  origins: [],
  visitor: async () => ({
    identity: { actor: 'ada', roles: ['admin'] },
    csrf: 'token',
    session: null,
  }),
  signOut: async () => new Headers(),
  sessions: null,
}

let fail: () => unknown = () => ({ ok: true })
const ownRoutes = [
  defineRoute({
    method: 'GET',
    path: '/own',
    permission: 'read',
    summary: 'Fails as the test says.',
    shape: { answer: z.strictObject({ ok: z.boolean() }) },
    handle: async () => (await fail()) as { ok: boolean },
  }),
  defineRoute({
    method: 'POST',
    path: '/own',
    permission: 'operate',
    summary: 'Says what it was given.',
    shape: {
      query: z.strictObject({ q: z.string().optional() }),
      body: z.strictObject({ reason: z.string().min(3), when: z.number().optional() }),
      answer: z.looseObject({}),
    },
    handle: async (_, input) => ({ given: input.body }),
  }),
]

let history: ConsoleHistory
let api: TestApi
let own: Api
const failures: { readonly route: string; readonly message: string; readonly requestId: string }[] =
  []
beforeAll(async () => {
  history = await createConsoleHistory()
  api = await startApi(history.hookledger)
  const parts = partsOf(history.hookledger)
  own = createApi({ parts, door, routes: [...apiRoutes, ...ownRoutes] })
  parts.signals.on('api.request.failed', (failure) => failures.push(failure))
})
afterAll(() => history.close())
afterEach(() => {
  fail = () => ({ ok: true })
  failures.length = 0
})

const get = (path: string): Promise<Response> => own(new Request(`https://ops.test/api${path}`))

function post(
  body: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  return own(
    new Request('https://ops.test/api/own', {
      method: 'POST',
      headers: {
        'content-type': 'application/json; charset=utf-8',
        origin: 'https://ops.test',
        'x-hookledger-csrf': 'token',
        ...headers,
      },
      body,
      ...(body instanceof ReadableStream && { duplex: 'half' }),
    }),
  )
}

const problem = async (response: Response): Promise<[number, string | undefined]> => [
  response.status,
  ((await response.json()) as { error?: { code: string } }).error?.code,
]

describe('a path', () => {
  it.each(['/', '/nothing', '/session/', '/SESSION', '/orders/a/b/c/d', '/own/x', '/%00', '/%ff'])(
    '%s that is no route is 404, with where to look',
    async (path) => {
      expect(await api.ask('GET', path)).toMatchObject({
        status: 404,
        code: 'HKL_API_UNKNOWN_ROUTE',
      })
    },
  )

  it.each(['PUT', 'PATCH', 'DELETE', 'OPTIONS'])(
    'answers %s 405, with what it takes instead',
    async (method) => {
      const answer = await api.ask(method, '/session')
      expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'GET'])
    },
  )

  it.each(['GET', 'PUT'])('of an act does nothing for %s', async (method) => {
    const answer = await api.ask(method, '/grants')
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST'])
  })

  it('with an encoded slash names one thing, and not a path below it', async () => {
    expect((await api.ask('GET', '/orders/..%2Fsession')).status).toBe(404)
  })
})

describe('every answer', () => {
  it.each([
    ['an answer', '/session', 200],
    ['a refusal', '/orders?no_such=1', 400],
    ['an unknown path', '/nothing', 404],
    ['a wrong method', '/grants', 405],
    ['a download', '/export/orders.csv', 200],
  ])('of %s is kept by nobody and is no page', async (_, path, status) => {
    const response = await get(path)
    expect(response.status).toBe(status)
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      'cross-origin-resource-policy': 'same-origin',
      'referrer-policy': 'no-referrer',
    })
    for (const name of ['server', 'x-powered-by', 'access-control-allow-origin', 'etag'])
      expect(response.headers.has(name), name).toBe(false)
  })

  it('lets no other origin read it, even where its browser asks first', async () => {
    const response = await own(
      new Request('https://ops.test/api/orders', {
        method: 'OPTIONS',
        headers: { origin: 'https://evil.test', 'access-control-request-method': 'GET' },
      }),
    )
    expect(response.headers.has('access-control-allow-origin')).toBe(false)
  })
})

describe('a query', () => {
  it('that names a thing twice is refused, since two readers could take two of them', async () => {
    const response = await get('/orders?state=paid&state=pending')
    expect(await problem(response)).toEqual([400, 'HKL_API_INPUT_INVALID'])
  })

  it('with an empty field is no filter', async () => {
    expect((await get('/orders?state=')).status).toBe(200)
  })

  it.each([
    'limit=0',
    'limit=201',
    'limit=x',
    'cursor=!',
    'cursor=e30',
    `state=${'x'.repeat(3000)}`,
  ])('of a list that cannot be (%#) is 400', async (query) => {
    expect(await problem(await get(`/orders?${query}`))).toEqual([400, 'HKL_API_INPUT_INVALID'])
  })

  it.each(['__proto__', 'constructor', 'toString'])('%s changes nothing here', async (name) => {
    expect((await get(`/orders?${name}=1`)).status).toBe(400)
    expect((await get(`/orders?${name}[polluted]=1`)).status).toBe(400)
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
  })
})

describe('a body', () => {
  it('is taken when it is small, strict JSON', async () => {
    const response = await post('{"reason":"because"}')
    expect(await response.json()).toEqual({ given: { reason: 'because' } })
  })

  it.each([
    ['no JSON', '{"reason":'],
    ['two of them', '{"reason":"because"}{}'],
    ['a list', '[]'],
    ['a text', '"because"'],
    ['null', 'null'],
    ['a key that nobody knows', '{"reason":"because","as":"admin"}'],
    ['a prototype', '{"reason":"because","__proto__":{"polluted":true}}'],
    ['a wrong type', '{"reason":7}'],
    ['nothing', ''],
  ])('that is %s is 400 and names the field', async (_, body) => {
    const response = await post(body)
    expect(await problem(response)).toEqual([400, 'HKL_API_INPUT_INVALID'])
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
  })

  it('of bytes that are no text is 400', async () => {
    const bytes = Buffer.concat([Buffer.from('{"reason":"'), Buffer.from([0xff, 0xfe, 0xff]), Buffer.from('"}')]) // prettier-ignore
    expect(await problem(await post(bytes))).toEqual([400, 'HKL_API_INPUT_INVALID'])
  })

  it('larger than 64 KiB is 413, by what it says', async () => {
    const response = await post(JSON.stringify({ reason: 'x'.repeat(70_000) }))
    expect(await problem(response)).toEqual([413, 'HKL_API_INPUT_INVALID'])
  })

  it('larger than 64 KiB is 413 where it does not say so, and is not read to its end', async () => {
    let sent = 0
    const endless = new ReadableStream<Uint8Array>({
      pull(controller) {
        sent += 1024
        controller.enqueue(new Uint8Array(1024).fill(32))
      },
    })
    expect(await problem(await post(endless))).toEqual([413, 'HKL_API_INPUT_INVALID'])
    expect(sent).toBeLessThan(128 * 1024)
  })
})

describe('a failure', () => {
  it.each<[string, () => unknown]>([
    ['an error of the code', () => Promise.reject(new TypeError(`cannot read ${canary}`))],
    ['something thrown that is no error', () => Promise.reject(canary)],
    [
      'an error of Hookledger that is about no input',
      () => Promise.reject(new HookledgerError('HKL_TRANSACTION_UNKNOWN', canary)),
    ],
  ])('by %s tells the log where, and the answer nothing', async (_, failing) => {
    fail = failing
    const response = await get('/own')
    const text = await response.clone().text()
    expect(await problem(response)).toEqual([500, 'HKL_API_FAILED'])
    expect(text).not.toContain(canary)
    expect(text).not.toMatch(/\bat .*\.ts/)
    expect(failures).toMatchObject([
      { route: 'GET /own', requestId: response.headers.get('x-request-id') },
    ])
  })

  it('of the database by its statement timeout says to ask for less', async () => {
    const { pool } = history
    const holder = await pool.connect()
    try {
      await holder.query('begin; lock table hookledger.orders in access exclusive mode')
      const answer = await api.ask('GET', '/orders')
      expect([answer.status, answer.code]).toEqual([503, 'HKL_API_TOO_SLOW'])
      expect(answer.headers.get('retry-after')).toBe('5')
    } finally {
      await holder.query('rollback')
      holder.release()
    }
    expect((await api.ask('GET', '/orders')).status).toBe(200)
  })

  it('of a statement tells nothing of it', async () => {
    fail = () =>
      partsOf(history.hookledger)
        .database()
        .query({ text: `select '${canary}'::integer` })
    const response = await get('/own')
    expect(response.status).toBe(500)
    expect(await response.text()).not.toContain(canary)
    expect(JSON.stringify(failures)).not.toContain(canary)
  })
})

describe('without its database', () => {
  it('answers 503 and says so, and is there again with it', async () => {
    fail = () => Promise.reject(Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }))
    const response = await get('/own')
    expect(response.headers.get('retry-after')).toBe('5')
    expect(await problem(response)).toEqual([503, 'HKL_API_UNAVAILABLE'])
    fail = () => ({ ok: true })
    expect((await get('/own')).status).toBe(200)
  })

  it('lets nobody in when it cannot be asked who that is', async () => {
    const parts = partsOf(history.hookledger)
    const lost: Door = { ...door, visitor: () => Promise.reject(new Error(`no ${canary}`)) }
    const closed = createApi({ parts, door: lost, routes: apiRoutes })
    for (const path of ['/session', '/orders']) {
      const response = await closed(new Request(`https://ops.test/api${path}`))
      expect(response.status).toBe(500)
      expect(await response.text()).not.toContain(canary)
    }
  })
})
