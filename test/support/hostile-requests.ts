/**
 * Requests as an enemy, a broken proxy or a broken sender might send them: bytes on a socket, made from a seed.
 * Every one carries the canary where a body, a header or a path would carry a secret.
 */
import { signStripe } from '../../src/testing/sign.ts'

/** One request. */
export interface HostileRequest {
  /** What was done to it, for a report. */
  readonly kind: string
  readonly bytes: Buffer
  /** The body that must be stored where it is answered 200; null: none of ours was whole. */
  readonly body: Buffer | null
  /** The sender goes away after so many bytes. */
  readonly cutAt?: number
}

/** What is made. */
export interface HostileOptions {
  readonly path: string
  readonly secret: string
  /** A text that stands for a secret. */
  readonly canary: string
  readonly random: () => number
}

/** An endless row of them. */
export function* hostileRequests(options: HostileOptions): Generator<HostileRequest> {
  for (let at = 0; ; at += 1) {
    const body = Buffer.from(bodyOf(options, at))
    const make = pick(options.random, makers)
    yield make({ ...options, body, at })
  }
}

interface Given extends HostileOptions {
  readonly body: Buffer
  readonly at: number
}

const makers: readonly ((given: Given) => HostileRequest)[] = [
  // as it should be: what is answered 200 is stored
  (given) => request(given, 'signed', {}, given.body),
  (given) => request(given, 'signed', {}, given.body),
  (given) => {
    const signed = signStripe(given.body, given.secret)
    const bytes = flipped(given.random, given.body)
    return request({ ...given, body: bytes }, 'a byte of the body changed', signed, null)
  },
  (given) => {
    const { 'stripe-signature': signature = '' } = signStripe(given.body, given.secret)
    return request(
      given,
      'a signature that is damaged',
      {
        'stripe-signature': damaged(given.random, signature),
      },
      null,
    )
  },
  (given) => request(given, 'headers without sense', junkHeaders(given), given.body),
  (given) => {
    const signed = signStripe(given.body, given.secret)
    const length = pick(given.random, [
      '-1',
      '1e3',
      '0x10',
      '99999999999999999999',
      ' 3',
      '3,3',
      'NaN',
      '',
    ])
    return request(given, `length ${length}`, { ...signed, 'content-length': length }, null)
  },
  (given) => ({ ...chunked(given), kind: 'chunks', body: null }),
  (given) => {
    const whole = request(given, 'cut', {}, null)
    return {
      ...whole,
      kind: 'the sender goes away',
      cutAt: Math.floor(given.random() * whole.bytes.length),
    }
  },
  (given) => ({
    kind: 'no HTTP',
    bytes: Buffer.from(
      Array.from({ length: 1 + Math.floor(given.random() * 600) }, () =>
        Math.floor(given.random() * 256),
      ),
    ),
    body: null,
  }),
  (given) => {
    const method = pick(given.random, [
      'GET',
      'PUT',
      'TRACE',
      'CONNECT',
      'PATCH',
      'DELETE',
      'post',
      'PRI',
      'X'.repeat(300),
    ])
    return request(given, `method ${method.slice(0, 8)}`, {}, null, { method })
  },
  (given) => {
    const path = pick(given.random, [
      '/webhooks/',
      '/webhooks/none',
      '/webhooks/stripe/more',
      '/webhooks/%00',
      '/webhooks/%ff',
      '/webhooks/..%2f',
      `/webhooks/${'a'.repeat(5000)}`,
      '//webhooks/stripe',
      '/webhooks/__proto__',
      '/webhooks/constructor',
      `/${given.canary}`,
      '/webhooks/stripe?' + 'x=1&'.repeat(500),
      '*',
      'http://[::1',
      '/\\..\\',
    ])
    return request(given, 'another path', {}, null, { path })
  },
  (given) =>
    request(
      given,
      'compressed',
      {
        ...signStripe(given.body, given.secret),
        'content-encoding': pick(given.random, ['gzip', 'br', 'identity, gzip']),
      },
      null,
    ),
  (given) => {
    const time = pick(given.random, [
      0,
      -1,
      1e15,
      Math.floor(Date.now() / 1000) - 4000,
      Math.floor(Date.now() / 1000) + 4000,
    ])
    return request(given, 'another time', signStripe(given.body, given.secret, time), null)
  },
  (given) =>
    request(
      { ...given, body: Buffer.alloc(70_000 + Math.floor(given.random() * 70_000), 120) },
      'too large',
      {},
      null,
    ),
]

function request(
  given: Given,
  kind: string,
  headers: Readonly<Record<string, string>>,
  body: Buffer | null,
  line: { readonly method?: string; readonly path?: string } = {},
): HostileRequest {
  const { method = 'POST', path = given.path } = line
  const all: Record<string, string> = {
    host: 'localhost',
    'content-length': String(given.body.length),
    ...signStripe(given.body, given.secret),
    ...headers,
  }
  const text = Object.entries(all)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')
  const head = Buffer.from(`${method} ${path} HTTP/1.1\r\n${text}\r\n`, 'latin1')
  return { kind, bytes: Buffer.concat([head, given.body]), body }
}

function chunked({ path, secret, body, random }: Given): { readonly bytes: Buffer } {
  const signed = Object.entries(signStripe(body, secret)).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  )
  const parts = [
    `POST ${path} HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n${signed.join('')}\r\n`,
  ]
  for (let from = 0; from < body.length;) {
    const size = 1 + Math.floor(random() * 300)
    const said =
      random() < 0.1
        ? pick(random, ['zz', '-1', 'ffffffffffffffffff', ''])
        : Math.min(size, body.length - from).toString(16)
    parts.push(`${said}\r\n${body.subarray(from, from + size).toString('latin1')}\r\n`)
    from += size
  }
  parts.push(random() < 0.2 ? '' : '0\r\n\r\n')
  return { bytes: Buffer.from(parts.join(''), 'latin1') }
}

/** A body: an event most of the time, with everything that JSON may hold; sometimes no JSON at all. */
function bodyOf({ random, canary }: HostileOptions, at: number): string {
  const odd = pick(random, oddBodies)
  if (random() < 0.2) return odd
  const values = Array.from({ length: Math.floor(random() * 6) }, () => pick(random, oddValues))
  const inner = values.map((value, index) => `"k${index}":${value}`).join(',')
  return `{"id":"evt_fuzz_${at}","object":"event","type":"pay","livemode":false,"order":"o${at}","secret":"${canary}"${inner === '' ? '' : `,${inner}`},"data":{"object":{"id":"x"}}}`
}

const oddValues: readonly string[] = [
  '9007199254740993',
  '1e400',
  '-0',
  '"\\u0000"',
  '"\\ud800"',
  '"\\u202e\\u200b"',
  '{"__proto__":{"polluted":true}}',
  '{"constructor":{"prototype":{"polluted":true}}}',
  '['.repeat(60) + ']'.repeat(60),
  '{"a":1,"a":2}',
  `"${'x'.repeat(3000)}"`,
  'null',
  `{${Array.from({ length: 200 }, (_, at) => `"n${at}":${at}`).join(',')}}`,
]

const oddBodies: readonly string[] = [
  '',
  '{',
  'null',
  '[]',
  '"text"',
  '\u0000',
  '{"id":""}',
  '{"id":null,"type":1}',
  '{"id":"evt","type":{}}',
  '\ufeff{"id":"evt_bom","type":"pay"}',
  '['.repeat(5000),
  `{"id":"${'e'.repeat(3000)}","type":"pay"}`,
  '{"id":"evt_nul\\u0000","type":"pay"}',
  '{"id":"evt_lone\\ud800","type":"pay"}',
  '{"__proto__":{"polluted":true},"id":"evt_proto","type":"pay"}',
  '{"id":"evt_a","id":"evt_b","type":"pay"}',
]

function junkHeaders({ random, canary, body, secret }: Given): Record<string, string> {
  const junk: Record<string, string> = { ...signStripe(body, secret) }
  for (let count = Math.floor(random() * 12); count > 0; count -= 1) {
    const name = pick(random, [
      'x-a',
      'forwarded',
      'x-forwarded-for',
      'cookie',
      'authorization',
      'expect',
      'te',
      'trailer',
      'connection',
      'upgrade',
      'range',
      'x'.repeat(200),
    ])
    junk[name] = pick(random, [
      '',
      canary,
      '100-continue',
      'close',
      'h2c',
      '\u00e9\u00ff',
      'a'.repeat(2000),
      '"',
      'bytes=0-',
    ])
  }
  return junk
}

function flipped(random: () => number, body: Buffer): Buffer {
  const bytes = Buffer.from(body.length === 0 ? ' ' : body)
  const at = Math.floor(random() * bytes.length)
  bytes[at] = (bytes[at] ?? 0) ^ (1 << Math.floor(random() * 8))
  return bytes
}

function damaged(random: () => number, signature: string): string {
  return pick(random, [
    '',
    't=,v1=',
    signature.slice(0, -1),
    `${signature}0`,
    signature.replace('v1=', 'v0='),
    signature.toUpperCase(),
    signature.replace(/[0-9a-f]{64}/, (hex) => [...hex].reverse().join('')),
    `t=99999999999999999999999,${signature}`,
    'v1='.repeat(2000),
    signature.replace('=', '=='),
    'null',
  ])
}

function pick<T>(random: () => number, from: readonly T[]): T {
  return from[Math.floor(random() * from.length)] as T
}
