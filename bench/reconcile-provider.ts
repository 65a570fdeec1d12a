/**
 * The provider of `reconcile`, in a process of its own: lists payment intents and their events as Stripe
 * does, newest first, by cursor, in windows of `created`. Nothing is stored: record n is made when it is
 * asked for, so that any number of them costs no memory. One in every `oddEvery` was paid with another
 * amount than the shop knows.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** What it has; sent as JSON. */
export interface ProviderSettings {
  readonly records: number
  /** Seconds since 1970 of the first record, and of the moment after the last. */
  readonly from: number
  readonly to: number
  readonly oddEvery: number
}

const settings = JSON.parse(process.argv[2] ?? '{}') as ProviderSettings
let calls = 0

function createdOf(n: number): number {
  return settings.from + Math.floor(((n - 1) * (settings.to - settings.from)) / settings.records)
}

function intent(n: number): object {
  const amount = n % settings.oddEvery === 0 ? 4800 : 4900
  return {
    id: `pi_${n}`,
    object: 'payment_intent',
    amount,
    amount_capturable: 0,
    amount_received: amount,
    capture_method: 'automatic_async',
    created: createdOf(n),
    currency: 'usd',
    customer: null,
    description: 'License',
    latest_charge: charge(n, amount),
    livemode: false,
    metadata: { order_id: `order-${n}` },
    payment_method_types: ['card'],
    status: 'succeeded',
  }
}

function charge(n: number, amount: number): object {
  return {
    id: `ch_${n}`,
    object: 'charge',
    amount,
    amount_captured: amount,
    amount_refunded: 0,
    captured: true,
    created: createdOf(n),
    currency: 'usd',
    disputed: false,
    livemode: false,
    metadata: { order_id: `order-${n}` },
    paid: true,
    payment_intent: `pi_${n}`,
    refunded: false,
    refunds: { object: 'list', data: [], has_more: false, url: `/v1/charges/ch_${n}/refunds` },
    status: 'succeeded',
  }
}

function event(n: number): object {
  return {
    id: `evt_${n}`,
    object: 'event',
    api_version: '2026-10-28.endive',
    created: createdOf(n),
    data: { object: { ...intent(n), latest_charge: `ch_${n}` } },
    livemode: false,
    pending_webhooks: 0,
    request: { id: null, idempotency_key: null },
    type: 'payment_intent.succeeded',
  }
}

const lists: Readonly<Record<string, (n: number) => object>> = {
  '/v1/payment_intents': intent,
  '/v1/events': event,
}

/** The number in an id such as `pi_17`. */
function numberOf(id: string): number {
  return Number(id.slice(id.lastIndexOf('_') + 1))
}

/** The first record made at or after this second; one past the last where there is none. */
function firstFrom(second: number): number {
  let [low, high] = [1, settings.records + 1]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (createdOf(middle) < second) low = middle + 1
    else high = middle
  }
  return low
}

function list(path: string, query: URLSearchParams): object {
  const make = lists[path]
  const limit = Number(query.get('limit') ?? 10)
  const least = firstFrom(Number(query.get('created[gte]') ?? 0))
  const past = firstFrom(Number(query.get('created[lt]') ?? Number.MAX_SAFE_INTEGER))
  const after = query.get('starting_after')
  const start = Math.min(past, after === null ? past : numberOf(after)) - 1
  const data: object[] = []
  if (make !== undefined)
    for (let n = start; n >= least && data.length < limit; n--) data.push(make(n))
  const more = make !== undefined && start - data.length >= least
  return { object: 'list', data, has_more: more, url: path }
}

const endpoints = {
  object: 'list',
  data: [
    {
      id: 'we_1',
      object: 'webhook_endpoint',
      api_version: '2026-10-28.endive',
      enabled_events: ['*'],
      status: 'enabled',
      url: 'https://shop.example/webhooks/stripe',
    },
  ],
  has_more: false,
  url: '/v1/webhook_endpoints',
}

function answer(url: URL): object | null {
  if (url.pathname === '/v1/webhook_endpoints') return endpoints
  const [, collection, id] = /^(\/v1\/(?:checkout\/)?\w+)\/(\w+_\w+)$/.exec(url.pathname) ?? []
  if (collection === undefined || id === undefined) return list(url.pathname, url.searchParams)
  const make = lists[collection]
  const n = numberOf(id)
  return make === undefined || !(n >= 1 && n <= settings.records) ? null : make(n)
}

const server = createServer((request, response) => {
  calls += 1
  request.resume()
  const found = answer(new URL(request.url ?? '/', 'http://provider'))
  const body = JSON.stringify(
    found ?? {
      error: { type: 'invalid_request_error', code: 'resource_missing', message: 'none' },
    },
  )
  response.writeHead(found === null ? 404 : 200, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    'request-id': `req_${calls}`,
  })
  response.end(body)
})
server.keepAliveTimeout = 60_000
process.on('message', () => process.send?.({ calls }))
process.once('disconnect', () => process.exit(0))
server.listen(0, '127.0.0.1', () => {
  process.send?.({ port: (server.address() as AddressInfo).port })
})
