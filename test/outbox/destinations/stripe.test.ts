import type Stripe from 'stripe'
import { describe, expect, it } from 'vitest'
import { isPermanent } from '../../../src/core/errors.ts'
import type { CallOutcome, Destination } from '../../../src/outbox/destination.ts'
import type { StripeCall } from '../../../src/outbox/destinations/stripe-call.ts'
import { stripeCalls, type StripeCallsOptions } from '../../../src/outbox/destinations/stripe.ts'
import type { StripeDoubleOptions } from '../../../src/testing/stripe-double/stripe-double.ts'
import {
  manualClock,
  paidSession,
  serveWithClient,
  type ServedClient,
} from '../../testing/stripe-double/stripe-client.ts'
import { callWith, lookUpWith, operationId, outgoing } from './outgoing.ts'
import { startServer } from './scripted-server.ts'

const hour = 3_600_000
const apiKey = 'sk_test_123456789'

interface Served extends ServedClient {
  readonly destination: Destination<StripeCall>
}

/** The double on a port, and the destination that calls it. */
async function serve(
  options: Partial<StripeDoubleOptions> = {},
  calls: Partial<StripeCallsOptions> = {},
): Promise<Served> {
  const served = await serveWithClient(options)
  const destination = stripeCalls({ apiKey, apiBase: served.url, ...calls })
  return {
    ...served,
    destination,
    async [Symbol.asyncDispose]() {
      await destination.close?.()
      await served[Symbol.asyncDispose]()
    },
  }
}

const refundOf = (intent: string, amount?: number): StripeCall => ({
  call: 'refunds.create',
  params: { payment_intent: intent, ...(amount !== undefined && { amount }) },
})

/** Without what differs between a first answer and its repetition. */
const kindAndReceipt = (outcome: CallOutcome): unknown => [
  outcome.kind,
  outcome.kind === 'sent' ? outcome.receipt : outcome.error,
]

describe('a call of Stripe’s SDK', () => {
  it('is made once under its key, however often it is sent', async () => {
    await using served = await serve()
    const { double, destination } = served
    const { intent } = paidSession(double)
    const first = await callWith(destination, refundOf(intent, 900))
    const again = await callWith(destination, refundOf(intent, 900))
    const [refund, ...others] = double.all('refund')
    expect(others).toEqual([])
    expect(first).toEqual({
      kind: 'sent',
      status: 200,
      receipt: {
        id: refund?.id,
        object: 'refund',
        status: 'succeeded',
        amount: 900,
        currency: refund?.currency,
      },
    })
    expect(again).toEqual(first)
    expect(
      double.log.entries('api_call').map((call) => [call.idempotencyKey, call.replayed]),
    ).toEqual([
      [operationId, false],
      [operationId, true],
    ])
  })

  it('comes back in the event with its key, and carries the operation in its metadata', async () => {
    await using served = await serve()
    const { double, destination } = served
    const { intent } = paidSession(double)
    await callWith(destination, {
      ...refundOf(intent),
      params: { payment_intent: intent, metadata: { why: 'ask' } },
    })
    expect(double.all('refund')[0]?.metadata).toEqual({
      why: 'ask',
      hookledger_operation: operationId,
    })
    const event = double.all('event').find(({ type }) => type === 'refund.created')
    expect(event?.request?.idempotency_key).toBe(operationId)
  })

  it('is done anew under a later generation', async () => {
    await using served = await serve()
    const { double, destination } = served
    const { intent } = paidSession(double)
    await callWith(destination, refundOf(intent, 100))
    await callWith(destination, refundOf(intent, 100), { generation: 2 })
    expect(double.all('refund')).toHaveLength(2)
    expect(double.log.entries('api_call').at(-1)?.idempotencyKey).toBe(`${operationId}:2`)
  })

  it('goes to the connected account that it was recorded with', async () => {
    await using served = await serve(
      { connectedAccounts: ['acct_2', 'acct_3'] },
      { account: 'acct_2' },
    )
    const { double, destination } = served
    const call = { call: 'customers.create', params: { email: 'a@example.com' } }
    const request = outgoing(destination, call)
    const moved = stripeCalls({ apiKey, apiBase: served.url, account: 'acct_3' })
    await moved.call(request, new AbortController().signal)
    await moved.close?.()
    expect(double.forAccount('acct_2').all('customer')).toHaveLength(1)
    expect(double.forAccount('acct_3').all('customer')).toHaveLength(0)
    await callWith(
      destination,
      { ...call, account: 'acct_3' },
      { id: operationId.replace('0', '1') },
    )
    expect(double.forAccount('acct_3').all('customer')).toHaveLength(1)
  })
})

describe('a call with an id before its parameters', () => {
  it('goes to the object of that id, for calls and lookups alike', async () => {
    await using server = await startServer((request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      const made = `{"id":"trr_1","object":"transfer_reversal","amount":5,"metadata":{"hookledger_operation":"${operationId}"}}`
      response.end(request.method === 'GET' ? `{"data":[${made}],"has_more":false}` : made)
    })
    const destination = stripeCalls({ apiKey, apiBase: server.url, account: 'acct_2' })
    const call = { call: 'transfers.createReversal', ids: ['tr_1'], params: { amount: 5 } }
    expect(await callWith(destination, call)).toMatchObject({
      kind: 'sent',
      receipt: { id: 'trr_1', amount: 5 },
    })
    expect(await lookUpWith(destination, outgoing(destination, call))).toMatchObject({
      kind: 'present',
      receipt: { id: 'trr_1' },
    })
    const [posted, listed] = server.seen
    expect([posted?.method, posted?.path]).toEqual(['POST', '/v1/transfers/tr_1/reversals'])
    expect(new URLSearchParams(posted?.body.toString()).get('metadata[hookledger_operation]')).toBe(
      operationId,
    )
    expect(posted?.headers).toMatchObject({
      'idempotency-key': operationId,
      'stripe-account': 'acct_2',
    })
    expect(listed?.path).toBe('/v1/transfers/tr_1/reversals?limit=100')
    expect(listed?.headers).toMatchObject({ 'stripe-account': 'acct_2' })
    expect(listed?.headers['stripe-version']).toBe(posted?.headers['stripe-version'])
    await destination.close?.()
  })
})

describe('what Stripe answers', () => {
  it('a 500 is uncertain, and so is its repetition, whether or not the work was done', async () => {
    for (const phase of ['during', 'done'] as const) {
      await using served = await serve()
      const { double, destination } = served
      const { intent } = paidSession(double)
      double.fault({ match: { method: 'POST' }, phase, respond: { status: 500 }, once: true })
      for (let attempt = 0; attempt < 2; attempt++) {
        expect(await callWith(destination, refundOf(intent))).toMatchObject({
          kind: 'uncertain',
          status: 500,
        })
      }
      expect(double.all('refund')).toHaveLength(phase === 'done' ? 1 : 0)
    }
  })

  it('other parameters under the same key are refused, and settle nothing of the earlier call', async () => {
    await using served = await serve()
    const { double, destination } = served
    const { intent } = paidSession(double)
    await callWith(destination, refundOf(intent, 900))
    expect(await callWith(destination, refundOf(intent, 901))).toMatchObject({
      kind: 'refused',
      status: 400,
      settlesEarlier: false,
      error: expect.stringContaining('StripeIdempotencyError') as string,
    })
  })

  it('a call beside one that still runs is uncertain, and the refund is made once', async () => {
    await using served = await serve()
    const { double, destination } = served
    const { intent } = paidSession(double)
    const fault = double.fault({
      match: { path: '/v1/refunds' },
      phase: 'during',
      delayMs: 300,
      once: true,
    })
    const first = callWith(destination, refundOf(intent))
    await expect.poll(() => fault.hits).toBe(1)
    expect(await callWith(destination, refundOf(intent))).toMatchObject({
      kind: 'uncertain',
      status: 409,
      error: expect.stringContaining('idempotency_key_in_use') as string,
    })
    expect(await first).toMatchObject({ kind: 'sent' })
    expect(kindAndReceipt(await callWith(destination, refundOf(intent)))).toEqual(
      kindAndReceipt(await first),
    )
    expect(double.all('refund')).toHaveLength(1)
  })

  it('after 24 hours the key is forgotten, which the window of the contract never reaches', async () => {
    const clock = manualClock()
    await using served = await serve({ clock: clock.now })
    const { double, destination } = served
    const { intent } = paidSession(double)
    const { contract } = destination
    await callWith(destination, refundOf(intent, 100))
    clock.move(contract.retentionMs - contract.marginMs)
    await callWith(destination, refundOf(intent, 100))
    expect(double.all('refund')).toHaveLength(1)
    clock.move(contract.marginMs)
    await callWith(destination, refundOf(intent, 100))
    expect(double.all('refund')).toHaveLength(2)
  })

  it('429 is a retry after the time that it names', async () => {
    await using served = await serve()
    const { double, destination } = served
    const { intent } = paidSession(double)
    const headers = { 'retry-after': '4' }
    double.fault({ match: { method: 'POST' }, respond: { status: 429, headers }, once: true })
    expect(await callWith(destination, refundOf(intent))).toMatchObject({
      kind: 'retry',
      status: 429,
      retryAfterMs: 4000,
    })
    expect(double.all('refund')).toEqual([])
  })

  it('a refusal of the operation settles it; one at the door does not', async () => {
    await using served = await serve({ apiKey })
    const { double, destination } = served
    const { intent } = paidSession(double)
    double.refund({ paymentIntent: intent })
    const settled = await callWith(destination, refundOf(intent))
    expect(settled).toMatchObject({
      kind: 'refused',
      status: 400,
      settlesEarlier: true,
      error: expect.stringContaining('charge_already_refunded') as string,
    })
    const stranger = stripeCalls({ apiKey: 'sk_test_of_somebody_else', apiBase: served.url })
    const atTheDoor = await callWith(stranger, refundOf(intent))
    expect(atTheDoor).toMatchObject({ kind: 'retry', status: 401 })
    expect(JSON.stringify(atTheDoor)).not.toContain('sk_test')
    await stranger.close?.()
    const lost = stripeCalls({ apiKey, apiBase: served.url, account: 'acct_nobody' })
    expect(await callWith(lost, refundOf(intent))).toMatchObject({
      kind: 'refused',
      status: 403,
      settlesEarlier: false,
    })
    await lost.close?.()
  })

  it('what cannot be found for the operation settles it; an address that Stripe lacks does not', async () => {
    await using served = await serve()
    const { destination } = served
    const missing = { call: 'refunds.cancel', ids: ['re_nobody'] }
    expect(await callWith(destination, missing)).toMatchObject({
      kind: 'refused',
      status: 404,
      settlesEarlier: true,
    })
    const unknown = { call: 'topups.create', params: { amount: 1, currency: 'eur' } }
    expect(await callWith(destination, unknown)).toMatchObject({
      kind: 'refused',
      status: 404,
      settlesEarlier: false,
    })
  })
})

describe('an answer that gets lost', () => {
  it.each([
    ['is cut off', { reset: true }, 10_000],
    ['comes too late', { delayMs: 400 }, 100],
  ] as const)(
    'and %s leaves it uncertain; the SDK repeats nothing by itself',
    async (_, fault, callMs) => {
      await using served = await serve({}, { contract: { callMs } })
      const { double, destination } = served
      const { intent } = paidSession(double)
      double.fault({ match: { path: '/v1/refunds' }, phase: 'answer', ...fault, once: true })
      expect(await callWith(destination, refundOf(intent))).toMatchObject({ kind: 'uncertain' })
      await expect.poll(() => double.log.entries('api_call').length).toBe(1)
      expect(double.all('refund')).toHaveLength(1)
      expect(await callWith(destination, refundOf(intent))).toMatchObject({ kind: 'sent' })
      expect(double.all('refund')).toHaveLength(1)
    },
  )

  it('is a retry where Stripe was never reached', async () => {
    const server = await startServer()
    const { url } = server
    await server[Symbol.asyncDispose]()
    const destination = stripeCalls({ apiKey, apiBase: url })
    expect(await callWith(destination, refundOf('pi_1'))).toEqual({
      kind: 'retry',
      error: 'connection refused',
    })
    await destination.close?.()
  })

  it('is uncertain where a proxy answers in its place', async () => {
    await using server = await startServer((_, response) => {
      response.writeHead(200, { 'content-type': 'text/html' })
      response.end('<html>sign in</html>')
    })
    const destination = stripeCalls({ apiKey, apiBase: server.url })
    expect(await callWith(destination, refundOf('pi_1'))).toMatchObject({ kind: 'uncertain' })
    await destination.close?.()
  })
})

describe('looking up what a call made', () => {
  it('finds it by the operation, whichever generation made it', async () => {
    await using served = await serve()
    const { double, destination } = served
    const { intent } = paidSession(double)
    for (let other = 0; other < 3; other++) double.refund({ paymentIntent: intent, amount: 1 })
    await callWith(destination, refundOf(intent, 100), { generation: 2 })
    const made = double.all('refund').find((refund) => refund.amount === 100)
    expect(await lookUpWith(destination, outgoing(destination, refundOf(intent, 100)))).toEqual({
      kind: 'present',
      receipt: expect.objectContaining({ id: made?.id, amount: 100 }) as object,
    })
  })

  it('proves absence by the whole list only, over all its pages', async () => {
    const clock = manualClock()
    await using served = await serve({ clock: clock.now })
    const { double, destination } = served
    const { intent } = paidSession(double)
    for (let made = 0; made < 230; made++) double.refund({ paymentIntent: intent, amount: 1 })
    const request = outgoing(destination, refundOf(intent, 7))
    expect(await lookUpWith(destination, request)).toEqual({ kind: 'absent' })
    const lists = double.log.entries('api_call').filter((call) => call.method === 'GET')
    expect(lists).toHaveLength(3)
    expect(lists.every((call) => call.idempotencyKey === null)).toBe(true)
    const fault = double.fault({ match: { method: 'GET' }, respond: { status: 500 } })
    expect(await lookUpWith(destination, request)).toMatchObject({ kind: 'no_answer' })
    fault.remove()
    double.fault({
      match: { method: 'GET' },
      respond: { status: 429, headers: { 'retry-after': '2' } },
    })
    expect(await lookUpWith(destination, request)).toMatchObject({
      kind: 'no_answer',
      retryAfterMs: 2000,
    })
  })

  it('begins the list shortly before the operation was recorded', async () => {
    const clock = manualClock()
    await using served = await serve({ clock: clock.now })
    const { double, destination } = served
    for (let old = 0; old < 120; old++) double.createPaymentIntent({ amount: 100, currency: 'eur' })
    clock.move(48 * hour)
    const call = { call: 'paymentIntents.create', params: { amount: 100, currency: 'eur' } }
    const recordedAt = new Date(clock.now())
    const before = double.log.entries('api_call').length
    expect(await lookUpWith(destination, outgoing(destination, call, { recordedAt }))).toEqual({
      kind: 'absent',
    })
    expect(double.log.entries('api_call').length - before).toBe(1)
    await callWith(destination, call)
    expect(
      await lookUpWith(destination, outgoing(destination, call, { recordedAt })),
    ).toMatchObject({ kind: 'present' })
  })

  it('finds a subscription that was canceled since', async () => {
    await using served = await serve()
    const { double, destination, stripe } = served
    const product = await stripe.products.create({ name: 'Pro' })
    const price = await stripe.prices.create({
      product: product.id,
      currency: 'eur',
      unit_amount: 900,
      recurring: { interval: 'month' },
    })
    const customer = await stripe.customers.create({ email: 'a@example.com' })
    const call = {
      call: 'subscriptions.create',
      params: { customer: customer.id, items: [{ price: price.id }] },
    }
    expect(await callWith(destination, call)).toMatchObject({ kind: 'sent' })
    const [made] = double.all('subscription')
    double.cancelSubscription(made?.id ?? '')
    expect(await lookUpWith(destination, outgoing(destination, call))).toMatchObject({
      kind: 'present',
      receipt: { id: made?.id, status: 'canceled' },
    })
  })

  it('never takes a list that hides deleted objects for a proof', async () => {
    await using served = await serve()
    const { destination } = served
    const call = { call: 'customers.create', params: { email: 'a@example.com' } }
    expect(await lookUpWith(destination, outgoing(destination, call))).toMatchObject({
      kind: 'no_answer',
      error: expect.stringContaining('deleted') as string,
    })
    await callWith(destination, call)
    expect(await lookUpWith(destination, outgoing(destination, call))).toMatchObject({
      kind: 'present',
    })
  })

  it('says that it cannot where a call makes nothing of its own', async () => {
    await using served = await serve()
    const { destination } = served
    const call = { call: 'refunds.cancel', ids: ['re_1'] }
    expect(await lookUpWith(destination, outgoing(destination, call))).toMatchObject({
      kind: 'no_answer',
    })
    expect(served.double.log.entries('api_call')).toEqual([])
  })
})

describe('encoding a call', () => {
  const destination = stripeCalls({ apiKey })
  const encode = (body: unknown): Uint8Array =>
    destination.encode({ operationId, body: body as StripeCall, orderId: null })
  const params = { amount: 1 }
  const metadata = Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`k${at}`, 'v']))

  it.each<readonly [string, unknown, RegExp]>([
    ['no call', {}, /call must be a method/],
    ['a text', 'refunds.create', /must be a call/],
    ['a method that the SDK lacks', { call: 'refunds.creat' }, /SDK has no refunds\.creat/],
    ['a resource that the SDK lacks', { call: 'refund.create' }, /SDK has no refund\.create/],
    ['an inner part of the SDK', { call: '_requestSender._request' }, /must be a method/],
    ['what every object has', { call: 'refunds.constructor' }, /SDK has no/],
    ['a reading call', { call: 'refunds.list' }, /honors no idempotency key/],
    ['a deleting call', { call: 'customers.del', ids: ['cus_1'] }, /honors no idempotency key/],
    ['a call of API v2', { call: 'v2.core.accounts.create' }, /honors no idempotency key/],
    ['an id too few', { call: 'transfers.createReversal', params }, /takes 1 ids/],
    ['an id too many', { call: 'refunds.create', ids: ['x'], params }, /takes 0 ids/],
    ['an id that is none', { call: 'transfers.createReversal', ids: ['a/b'] }, /array of ids/],
    ['an unknown field', { call: 'refunds.create', parameters: {} }, /no field parameters/],
    ['parameters that are none', { call: 'refunds.create', params: [] }, /params must be/],
    ['an account that is none', { call: 'refunds.create', account: 'a b' }, /account must be/],
    ['a date', { call: 'refunds.create', params: { at: new Date(0) } }, /params\.at is a date/],
    [
      'our own metadata',
      { call: 'refunds.create', params: { metadata: { hookledger_operation: 'x' } } },
      /is written by Hookledger/,
    ],
    [
      'metadata without room',
      { call: 'refunds.create', params: { metadata } },
      /no room for hookledger_operation/,
    ],
    [
      'an update that empties metadata',
      { call: 'refunds.update', ids: ['re_1'], params: { metadata: '' } },
      /it would lose hookledger_operation/,
    ],
  ])('refuses %s for good', (_, body, why) => {
    expect(() => encode(body)).toThrow(why)
    try {
      encode(body)
    } catch (error) {
      expect(isPermanent(error)).toBe(true)
    }
  })

  it.each<StripeCall>([
    { call: 'refunds.create', params },
    { call: 'transfers.createReversal', ids: ['tr_1'], params },
    { call: 'checkout.sessions.expire', ids: ['cs_1'] },
    { call: 'subscriptions.update', ids: ['sub_1'], params: { cancel_at_period_end: true } },
    { call: 'testHelpers.testClocks.advance', ids: ['clock_1'], params: { frozen_time: 1 } },
  ])('takes $call', (call) => {
    expect(encode(call)).toBeInstanceOf(Uint8Array)
  })

  it('marks only what a call makes, and never an object that exists', () => {
    const read = (call: StripeCall): string => new TextDecoder().decode(encode(call))
    expect(read({ call: 'refunds.create', params })).toContain('"hookledger_operation"')
    const update = { call: 'refunds.update', ids: ['re_1'], params: { metadata: { a: 'b' } } }
    expect(read(update)).not.toContain('hookledger_operation')
  })

  it('fixes the API version, so that a newer SDK repeats the call as it was', async () => {
    await using server = await startServer((_, response) => response.end('{"id":"re_1"}'))
    const apiBase = server.url
    const older = stripeCalls({ apiKey, apiBase, apiVersion: '2025-01-27.acacia' })
    const newer = stripeCalls({ apiKey, apiBase })
    const signal = new AbortController().signal
    const request = outgoing(older, refundOf('pi_1'))
    expect(await newer.call(request, signal)).toMatchObject({ kind: 'sent' })
    expect(server.seen[0]?.headers['stripe-version']).toBe('2025-01-27.acacia')
    await newer.close?.()
    await older.close?.()
  })
})

describe('a bad option of stripeCalls()', () => {
  it.each<readonly [string, Partial<StripeCallsOptions>, RegExp]>([
    ['no key', { apiKey: undefined }, /apiKey is not set/],
    ['a key with a line end', { apiKey: 'sk_test_1\n' }, /apiKey is not set, or not a key/],
    ['an account that is none', { account: 'me' }, /account must be an id/],
    ['a base that is none', { apiBase: 'stripe' }, /is not a URL/],
    ['a contract with a typo', { contract: { margin: 1 } as object }, /contract\.margin/],
  ])('is its problem: %s', (_, options, problem) => {
    const destination = stripeCalls({ apiKey, ...options })
    expect(destination.problem).toMatch(problem)
    expect(destination.problem).not.toContain('sk_test')
  })

  it('prints no key', () => {
    expect(JSON.stringify(stripeCalls({ apiKey }))).not.toContain(apiKey)
  })
})

/** The types of the SDK's parameters fit a call's. */
const typed: StripeCall = {
  call: 'refunds.create',
  params: { payment_intent: 'pi_1', reason: 'duplicate' } satisfies Stripe.RefundCreateParams,
}

it('takes parameters that are typed by the SDK', () => {
  const destination = stripeCalls({ apiKey })
  expect(() => destination.encode({ operationId, body: typed, orderId: null })).not.toThrow()
})
