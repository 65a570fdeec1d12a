import { describe, expect, it } from 'vitest'
import { isPermanent } from '../../../src/core/errors.ts'
import { http } from '../../../src/outbox/destinations/http.ts'
import type { HttpOptions } from '../../../src/outbox/destinations/http-options.ts'
import { readHttpRequest, writeHttpRequest } from '../../../src/outbox/destinations/http-request.ts'
import { callWith, operationId } from './outgoing.ts'

const url = 'https://example.com/hooks'
const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'

const wrong: readonly (readonly [what: string, options: object, problem: RegExp])[] = [
  ['no url', { url: undefined }, /url is not set/],
  ['an empty url', { url: '' }, /url is not set/],
  ['an option that does not exist', { url, adress: 1 }, /adress is not an option/],
  ['a method without a body', { url, method: 'GET' }, /method must be one of/],
  ['a secret among the stored headers', { url, headers: { Authorization: 'x' } }, /secretHeaders/],
  [
    'a header for the key that frames the request',
    { url, key: { header: 'Content-Length' } },
    /key\.header/,
  ],
  ['an API key among the stored headers', { url, headers: { 'X-Api-Key': 'x' } }, /secretHeaders/],
  [
    'a header that frames the request',
    { url, headers: { 'Content-Length': '1' } },
    /set by Hookledger/,
  ],
  [
    'the header of the key',
    { url, secretHeaders: { 'idempotency-key': 'x' } },
    /set by Hookledger/,
  ],
  ['a header with a line end', { url, headers: { 'x-a': 'a\r\nb: c' } }, /without line ends/],
  ['a header with a bad name', { url, headers: { 'x a': 'a' } }, /no header can have/],
  [
    'a secret header that is not set',
    { url, secretHeaders: { authorization: undefined } },
    /not set/,
  ],
  ['an unset signing secret', { url, signingSecret: [undefined] }, /signingSecret is not set/],
  ['no signing secret at all', { url, signingSecret: [] }, /empty array/],
  ['a short signing secret', { url, signingSecret: 'whsec_c2hvcnQ=' }, /24 to 64 bytes/],
  ['a signing secret that is no base64', { url, signingSecret: 'whsec_!' }, /not base64/],
  ['a public key', { url, signingSecret: 'whpk_abc' }, /another scheme/],
  ['a key in two places', { url, key: {} }, /key must be/],
  ['a lookup that is no function', { url, lookup: 'GET' }, /lookup must be a function/],
  [
    'a lease as short as the call',
    { url, contract: { callMs: 9, leaseMs: 9 } },
    /leaseMs must be longer/,
  ],
  [
    'a margin as long as the retention',
    { url, contract: { retentionMs: 5, marginMs: 5 } },
    /longer than/,
  ],
  [
    'a contract with a typo',
    { url, contract: { retention: 5 } },
    /contract.retention is not an option/,
  ],
  ['a contract with text', { url, contract: { callMs: '10s' } }, /callMs must be a whole number/],
  ['a retention of nothing', { url, contract: { retentionMs: 0 } }, /idempotency: 'none'/],
  [
    'a retention without keys',
    { url, contract: { idempotency: 'none', retentionMs: 5 } },
    /has no retention/,
  ],
  [
    'a second key that a field cannot carry',
    { url, key: { field: 'ref' }, contract: { replaysFailures: true } },
    /cannot carry a second key/,
  ],
]

describe('a bad option of http()', () => {
  it.each(wrong)('is its problem and not an exception: %s', async (_, options, problem) => {
    const destination = http(options as HttpOptions)
    expect(destination.problem).toMatch(problem)
    expect(destination.problem).toMatch(/^http\(\): /)
    expect(() => destination.encode({ operationId, body: {}, orderId: null })).toThrow(problem)
    const request = { operationId, key: operationId, request: new Uint8Array() }
    expect(await destination.call(request, new AbortController().signal)).toMatchObject({
      kind: 'retry',
    })
  })

  it('never shows a secret', () => {
    const destination = http({ url: 'http://x.example/SECRETPATH', signingSecret: 'whsec_SECRET!' })
    expect(destination.problem).not.toMatch(/SECRET/)
    expect(JSON.stringify(http({ url, signingSecret: secret }))).not.toContain('MfKQ9r8')
  })
})

describe('the contract of http()', () => {
  it('is the default, with what is declared over it', () => {
    const { contract, problem } = http({ url, contract: { callMs: 20_000, concurrency: 2 } })
    expect(problem).toBeUndefined()
    expect(contract).toMatchObject({
      idempotency: 'key',
      retentionMs: 24 * 3_600_000,
      callMs: 20_000,
      leaseMs: 60_000,
      concurrency: 2,
    })
  })

  it('has no window where the destination honors no key', () => {
    expect(http({ url, contract: { idempotency: 'none' } }).contract).toMatchObject({
      retentionMs: 0,
      marginMs: 0,
      replaysFailures: false,
    })
  })
})

describe('encoding an HTTP request', () => {
  const encode = (body: unknown, options: Partial<HttpOptions> = {}): Uint8Array =>
    http({ url, ...options }).encode({ operationId, body, orderId: null })
  const circle: Record<string, unknown> = {}
  circle['self'] = circle
  let deep: unknown = 1
  for (let level = 0; level < 70; level++) deep = [deep]

  it.each<readonly [string, unknown, RegExp]>([
    ['a function', { a: { f: () => 1 } }, /body\.a\.f is a function/],
    ['a symbol', [Symbol('x')], /body\[0\] is a symbol/],
    ['not a number', { n: Number.NaN }, /body\.n is NaN/],
    ['a circle', circle, /contains itself/],
    ['a map', { m: new Map() }, /no plain object/],
    ['bytes', { b: new Uint8Array(2) }, /no plain object/],
    ['an invalid date', { d: new Date(Number.NaN) }, /invalid date/],
    ['too deep a nest', deep, /more than 64 deep/],
    ['more than a megabyte', 'x'.repeat(1024 * 1024), /bytes, more than/],
  ])('refuses %s for good', (_, body, why) => {
    expect(() => encode(body)).toThrow(why)
    try {
      encode(body)
    } catch (error) {
      expect(isPermanent(error)).toBe(true)
    }
  })

  it.each([
    '/../admin',
    '/a/../../b',
    '/%2e%2e/b',
    '//evil.example/',
    '/\\evil.example',
    'evil',
    '/a b',
    '/a#b',
    '/ü',
    '@evil.example/',
  ])('refuses the path %j', (path) => {
    expect(() => encode({}, { request: () => ({ path, body: {} }) })).toThrow(/path must/)
  })

  it('refuses headers and types that cannot be sent, and a body that its type does not fit', () => {
    const shape = (given: object) => () => encode({}, { request: () => ({ body: 'x', ...given }) })
    expect(shape({ headers: { 'x-a': 'a\nb' } })).toThrow(/line ends/)
    expect(shape({ headers: { authorization: 'x' } })).toThrow(/secretHeaders/)
    expect(shape({ contentType: 'text/plain\r\nx: y' })).toThrow(/content type/)
    expect(shape({ contentType: 'text/plain', body: { a: 1 } })).toThrow(/must be a text/)
    expect(shape({ method: 'TRACE' })).toThrow(/method/)
  })

  it('refuses a body without room for the key where the key is a field', () => {
    const key = { field: 'ref' }
    expect(() => encode([1], { key })).toThrow(/JSON object/)
    expect(() => encode({ ref: 1 }, { key })).toThrow(/which is the key's/)
  })

  it('gives the same bytes for the same send', () => {
    const body = { b: 1, a: [1n, '\ud800', null] }
    expect(encode(body)).toEqual(encode(body))
  })
})

describe('a stored HTTP request', () => {
  const good = {
    method: 'POST',
    path: '',
    contentType: 'a/b',
    headers: { x: 'y' },
    body: 'z',
  } as const

  it('is read back as it was written', () => {
    expect(readHttpRequest(writeHttpRequest(good))).toEqual(good)
  })

  it.each([
    '',
    'null',
    '[]',
    '{}',
    '{"v":2,"method":"POST","path":"","type":"a/b","headers":{},"body":""}',
    '{"v":1,"method":"GET","path":"","type":"a/b","headers":{},"body":""}',
    '{"v":1,"method":"POST","path":1,"type":"a/b","headers":{},"body":""}',
    '{"v":1,"method":"POST","path":"","type":"a\\nb","headers":{},"body":""}',
    '{"v":1,"method":"POST","path":"","type":"a/b","headers":{"a b":"c"},"body":""}',
    '{"v":1,"method":"POST","path":"","type":"a/b","headers":{"a":1},"body":""}',
    '{"v":1,"method":"POST","path":"","type":"a/b","headers":[],"body":""}',
    '{"v":1,"method":"POST","path":"","type":"a/b","headers":{},"body":{}}',
  ])('that is %j is refused and never sent', async (text) => {
    const request = new TextEncoder().encode(text)
    expect(readHttpRequest(request)).toBeUndefined()
    const call = { operationId, key: operationId, request }
    expect(await http({ url }).call(call, new AbortController().signal)).toMatchObject({
      kind: 'refused',
      settlesEarlier: false,
    })
  })

  it('whose path leaves the configured URL is refused and never sent', async () => {
    const request = writeHttpRequest({ ...good, path: '/../admin' })
    const call = { operationId, key: operationId, request }
    expect(await http({ url }).call(call, new AbortController().signal)).toMatchObject({
      kind: 'refused',
    })
  })
})

describe('what a destination echoes', () => {
  it('is kept without the secrets that it was sent', async () => {
    const { startServer } = await import('./scripted-server.ts')
    await using server = await startServer((request, response) => {
      response.writeHead(422)
      response.end(JSON.stringify(request.headers))
    })
    const destination = http({
      url: `${server.url}/T00000000/B0123456789ABCDEF`,
      allow: [server.host],
      secretHeaders: { authorization: 'Bearer sesame-123456', 'x-api-key': 'open-the-door' },
    })
    const outcome = await callWith(destination, {})
    const answer = 'answer' in outcome ? new TextDecoder().decode(outcome.answer) : ''
    expect(answer).toContain('[redacted]')
    expect(answer).not.toMatch(/sesame|open-the-door/)
    await destination.close?.()
  })
})
