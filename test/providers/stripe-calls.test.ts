import type Stripe from 'stripe'
import { describe, expect, test } from 'vitest'
import { stripe } from '../../src/providers/stripe.ts'
import { stripeFailure } from '../../src/providers/stripe-calls.ts'
import { fetchSubscription } from '../../src/providers/stripe-subscription/look.ts'
import type { StripeOptions } from '../../src/providers/stripe.ts'
import type { ProviderApi } from '../../src/workflow/provider-api.ts'
import { RecordsError } from '../../src/workflow/records.ts'
import { serveWithClient, type ServedClient } from '../testing/stripe-double/stripe-client.ts'

const secret = 'whsec_0123456789abcdef'
const going = new AbortController().signal

/** The API of a source that asks the double. */
function callsOf(apiBase: string, more: Partial<StripeOptions> = {}): ProviderApi {
  const apiKey = 'sk_test_123'
  const { calls } = stripe({ signingSecrets: [secret], apiKey, apiBase, ...more })
  if (calls === undefined) throw new Error('it has no API')
  return calls
}

const client = (calls: ProviderApi, account = 'stripe', signal = going): Stripe =>
  calls.client(account, signal) as Stripe

/** What the promise was rejected with, as the source reads it. */
async function failureOf(calls: ProviderApi, promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise
  } catch (error) {
    return calls.failureOf(error)
  }
  throw new Error('it was answered')
}

const requests = ({ double }: ServedClient): unknown[] => [...double.log.entries('api_call')]

describe('calls', () => {
  test('are there with a key for the API, and only then; nothing shows the key', () => {
    expect(stripe({ signingSecrets: [secret] }).calls).toBeUndefined()
    const source = stripe({ signingSecrets: [secret], apiKey: 'rk_test_1234567890' })
    expect(source.calls).toBeDefined()
    expect(JSON.stringify(source)).not.toContain('rk_test_1234567890')
  })

  test('answer with the object as it is now', async () => {
    await using served = await serveWithClient()
    const customer = served.double.createCustomer({ email: 'ada@example.com' })
    const found = await client(callsOf(served.url)).customers.retrieve(customer.id)
    expect(found).toMatchObject({ id: customer.id, email: 'ada@example.com' })
  })

  test('name the connected account, and never the own one', async () => {
    await using served = await serveWithClient({ connectedAccounts: ['acct_2'] })
    const customer = served.double.forAccount('acct_2').createCustomer({ email: 'b@example.com' })
    const calls = callsOf(served.url, { connect: ['acct_2'], account: 'acct_1' })
    const found = await client(calls, 'acct_2').customers.retrieve(customer.id)
    expect(found.id).toBe(customer.id)
    const own = client(calls, 'acct_1').customers.retrieve(customer.id)
    expect(await failureOf(calls, own)).toMatchObject({ kind: 'gone' })
  })

  test('are asked in the version that is given', async () => {
    await using served = await serveWithClient()
    const calls = callsOf(served.url, { apiVersion: '2024-06-20' })
    const api = client(calls)
    expect(api.getApiField('version')).toBe('2024-06-20')
  })

  test('are made once, whatever comes back', async () => {
    await using served = await serveWithClient()
    const calls = callsOf(served.url)
    for (const respond of [{ status: 500 }, { status: 503 }, { status: 429 }, { status: 409 }]) {
      const before = requests(served).length
      served.double.fault({ match: { path: /customers/ }, respond, once: true })
      await failureOf(calls, client(calls).customers.retrieve('cus_1'))
      expect(requests(served).length - before).toBe(1)
    }
    served.double.fault({ match: { path: /customers/ }, reset: true })
    const before = requests(served).length
    const cut = client(calls).customers.retrieve('cus_1')
    expect(await failureOf(calls, cut)).toMatchObject({ kind: 'later' })
    expect(requests(served).length - before).toBe(1)
  })

  test('end by the signal', async () => {
    await using served = await serveWithClient()
    served.double.fault({ match: { path: /customers/ }, phase: 'before', delayMs: 20_000 })
    const calls = callsOf(served.url)
    const ending = new AbortController()
    const asking = client(calls, 'stripe', ending.signal).customers.retrieve('cus_1')
    setTimeout(() => ending.abort(), 50)
    expect(await failureOf(calls, asking)).toMatchObject({ kind: 'later', isRateLimit: false })
  })
})

describe('a failure', () => {
  const key = 'sk_test_123'
  const cases: readonly [
    string,
    { status: number; body?: object | string; headers?: Record<string, string> },
    object,
  ][] = [
    [
      '429 with the time to wait',
      {
        status: 429,
        body: { error: { type: 'invalid_request_error', code: 'rate_limit' } },
        headers: { 'retry-after': '7' },
      },
      { kind: 'later', isRateLimit: true, retryAfterMs: 7000 },
    ],
    [
      '429 for a lock',
      { status: 429, body: { error: { type: 'invalid_request_error', code: 'lock_timeout' } } },
      { kind: 'later', isRateLimit: false, retryAfterMs: null },
    ],
    [
      "500 in Stripe's words",
      { status: 500, body: { error: { type: 'api_error', message: `key ${key}` } } },
      { kind: 'later', isRateLimit: false },
    ],
    [
      '502 of something on the way',
      { status: 502, body: '<html>bad gateway</html>' },
      { kind: 'later' },
    ],
    [
      '401',
      {
        status: 401,
        body: { error: { type: 'invalid_request_error', message: `Invalid ${key}` } },
      },
      { kind: 'refused' },
    ],
    [
      '403 for a key without the right',
      { status: 403, body: { error: { type: 'invalid_request_error', code: 'account_invalid' } } },
      { kind: 'refused' },
    ],
    [
      '404 of something on the way',
      { status: 404, body: { message: 'no route' } },
      { kind: 'unknown' },
    ],
    ['404 as HTML', { status: 404, body: '<html>not found</html>' }, { kind: 'unknown' }],
    ['200 as HTML', { status: 200, body: '<html>please sign in</html>' }, { kind: 'unknown' }],
    [
      '404 for an object of the other mode',
      {
        status: 404,
        body: {
          error: {
            type: 'invalid_request_error',
            code: 'resource_missing',
            message:
              "No such customer: 'cus_1'; a similar object exists in live mode, but a test mode key was used to make this request.",
          },
        },
      },
      { kind: 'refused' },
    ],
    [
      '400, where another object is missing',
      {
        status: 400,
        body: {
          error: { type: 'invalid_request_error', code: 'resource_missing', param: 'expand' },
        },
      },
      { kind: 'unknown' },
    ],
  ]

  test.each(cases)('%s', async (_, respond, expected) => {
    await using served = await serveWithClient()
    const calls = callsOf(served.url)
    served.double.fault({ match: { path: /customers/ }, respond })
    const failure = await failureOf(calls, client(calls).customers.retrieve('cus_1'))
    expect(failure).toMatchObject(expected)
    expect(JSON.stringify(failure)).not.toContain(key)
  })

  test('no such object is gone, in the words of Stripe and of nobody else', async () => {
    await using served = await serveWithClient()
    const calls = callsOf(served.url)
    const failure = await failureOf(calls, client(calls).subscriptions.retrieve('sub_none'))
    expect(failure).toMatchObject({ kind: 'gone' })
  })

  test('a connection that fails is for later', async () => {
    const calls = callsOf('http://127.0.0.1:9')
    const failure = await failureOf(calls, client(calls).customers.retrieve('cus_1'))
    expect(failure).toMatchObject({ kind: 'later', retryAfterMs: null })
  })

  test('of the code that asks says nothing of what it was given', () => {
    const failure = stripeFailure(new TypeError('cannot read secret sk_live_1'))
    expect(failure).toEqual({ kind: 'unknown', text: 'TypeError in the code that asks Stripe' })
    expect(stripeFailure('sk_live_1')).toMatchObject({ kind: 'unknown' })
    expect(stripeFailure(null)).toMatchObject({ kind: 'unknown' })
  })

  test('a missing package is refused, and garbage is told', () => {
    expect(stripeFailure(new RecordsError('refused', 'install it'))).toEqual({
      kind: 'refused',
      text: 'install it',
    })
    expect(stripeFailure(new RecordsError('garbage', 'no'))).toMatchObject({ kind: 'unknown' })
    const waiting = new RecordsError('unavailable', 'later', { retryAfterMs: 5 })
    expect(stripeFailure(waiting)).toMatchObject({ kind: 'later', retryAfterMs: 5 })
  })
})

describe('a look at a subscription', () => {
  const subscribed = ({ double }: ServedClient): Stripe.Subscription => {
    const customer = double.createCustomer({ email: 'ada@example.com' })
    const product = double.createProduct({ name: 'Team' })
    const price = double.createPrice({ product: product.id, unitAmount: 2000, interval: 'month' })
    return double.createSubscription({ customer: customer.id, price: price.id })
  }
  const look = (served: ServedClient, id: string): Promise<Stripe.Subscription> => {
    const calls = callsOf(served.url)
    const object = { kind: 'subscription', value: id }
    const api = client(calls)
    return fetchSubscription({ object, source: 'stripe', account: 'stripe', api, signal: going })
  }

  test('sees the present, as plain data', async () => {
    await using served = await serveWithClient()
    const { id } = subscribed(served)
    const before = await look(served, id)
    expect(before).toMatchObject({ id, status: 'active' })
    served.double.cancelSubscription(id)
    const after = await look(served, id)
    expect(after.status).toBe('canceled')
    const plain = JSON.parse(JSON.stringify(after)) as Stripe.Subscription
    expect(plain.items.data[0]?.price.unit_amount_decimal).toBe('2000')
  })

  test('says since when it is unpaid, by its invoices, however often its period moved on', async () => {
    await using served = await serveWithClient()
    const { double } = served
    const { id, items } = subscribed(served)
    expect(await look(served, id)).not.toHaveProperty('unpaid_since')
    const january = items.data[0]!.current_period_end
    const periodOf = (each: Stripe.Subscription): number => each.items.data[0]!.current_period_start
    const first = double.renewSubscription(id, { outcome: 'failed' })
    expect(periodOf(first)).toBe(january)
    expect(await look(served, id)).toMatchObject({ status: 'past_due', unpaid_since: january })
    const second = double.renewSubscription(id, { outcome: 'failed' })
    expect(periodOf(second)).toBeGreaterThan(january)
    expect(await look(served, id)).toMatchObject({ status: 'past_due', unpaid_since: january })
    served.double.payInvoice(second.latest_invoice as string)
    served.double.payInvoice(first.latest_invoice as string)
    const third = double.renewSubscription(id, { outcome: 'failed' })
    expect(await look(served, id)).toMatchObject({ unpaid_since: periodOf(third) })
  })

  test('a change in the middle of a period that nobody pays is unpaid from the change', async () => {
    await using served = await serveWithClient()
    const { id, items } = subscribed(served)
    const { current_period_start: start, current_period_end: end } = items.data[0]!
    const change = { quantity: 5, proration: 'invoice', elapsed: 0.75, outcome: 'failed' } as const
    const changed = served.double.changeSubscription(id, change)
    expect(changed.items.data[0]).toMatchObject({ current_period_start: start })
    const since = start + Math.round((end - start) * 0.75)
    expect(await look(served, id)).toMatchObject({ status: 'past_due', unpaid_since: since })
  })

  test('a list that is missing does not say that the subscription is', async () => {
    await using served = await serveWithClient()
    const { id } = subscribed(served)
    served.double.renewSubscription(id, { outcome: 'failed' })
    served.double.fault({
      match: { path: /invoices/ },
      respond: {
        status: 404,
        body: { error: { code: 'resource_missing', type: 'invalid_request_error' } },
      },
    })
    const calls = callsOf(served.url)
    expect(await failureOf(calls, look(served, id))).toMatchObject({ kind: 'later' })
  })

  const invoices = {
    paid: { id: 'in_p', created: 900, status: 'paid', total: 2000, lines: { data: [] } },
    nothing: { id: 'in_0', created: 950, status: 'paid', total: 0, lines: { data: [] } },
    advance: {
      id: 'in_a',
      created: 200_000,
      status: 'open',
      total: 2000,
      lines: {
        data: [
          { period: { start: 100, end: 199_000 } },
          { period: { start: 199_990, end: 290_000 } },
        ],
      },
    },
    arrears: {
      id: 'in_b',
      created: 300_000,
      status: 'uncollectible',
      total: 2000,
      lines: { data: [{ period: { start: 100, end: 299_950 } }] },
    },
    bare: { id: 'in_e', created: 350_000, status: 'open', total: 2000, lines: { data: [] } },
    older: { id: 'in_o', created: 360_000, status: 'open', total: 2000 },
    draft: { id: 'in_d', created: 400_000, status: 'draft', total: 2000, lines: { data: [] } },
    void: { id: 'in_v', created: 500, status: 'void', total: 2000, lines: { data: [] } },
  }

  test.each([
    ['of an invoice in advance, the period that it bills', ['draft', 'advance', 'paid'], 199_990],
    ['of one that bills what was used, the end of that', ['arrears', 'paid', 'advance'], 299_950],
    ['of one without lines, its own moment', ['bare', 'paid'], 350_000],
    ['of one that knows no lines, its own moment', ['older', 'paid'], 360_000],
    ['of several, the oldest since the last paid one', ['arrears', 'advance', 'paid'], 199_990],
    ['an invoice about nothing pays for nothing', ['arrears', 'nothing', 'advance'], 199_990],
    ['a voided one is owed by nobody', ['void', 'paid', 'advance'], null],
    ['nothing, where the newest is paid', ['paid', 'advance'], null],
    ['nothing, where there is none', [], null],
  ] as const)('unpaid since: %s', async (_, names, since) => {
    await using served = await serveWithClient()
    const { id } = subscribed(served)
    served.double.renewSubscription(id, { outcome: 'failed' })
    served.double.fault({
      match: { path: /invoices/ },
      respond: {
        status: 200,
        body: { object: 'list', data: names.map((name) => invoices[name]), has_more: false },
      },
    })
    expect(await look(served, id)).toMatchObject({ status: 'past_due', unpaid_since: since })
  })

  test.each([
    ['no list', { object: 'list' }],
    ['a list of nothing', { object: 'list', data: [null], has_more: false }],
    ['a list that does not end', { object: 'list', data: [], has_more: true }],
    [
      'an invoice of no moment',
      { data: [{ ...invoices.arrears, created: null }], has_more: false },
    ],
  ])('takes %s of invoices for no answer', async (_, body) => {
    await using served = await serveWithClient()
    const { id } = subscribed(served)
    served.double.renewSubscription(id, { outcome: 'failed' })
    served.double.fault({ match: { path: /invoices/ }, respond: { status: 200, body } })
    await expect(look(served, id)).rejects.toMatchObject({ trouble: 'garbage' })
  })

  test('has all items, also those that the object itself leaves out', async () => {
    await using served = await serveWithClient()
    const { id, items } = subscribed(served)
    const first = { ...items.data[0]!, id: 'si_1' }
    const rest = { ...items.data[0]!, id: 'si_2' }
    served.double.fault({
      match: { path: /subscriptions/ },
      respond: {
        status: 200,
        body: {
          id,
          object: 'subscription',
          status: 'active',
          items: { data: [first], has_more: true },
        },
      },
    })
    served.double.fault({
      match: { path: /subscription_items/ },
      respond: { status: 200, body: { object: 'list', data: [first, rest], has_more: false } },
    })
    const found = await look(served, id)
    expect(found.items.has_more).toBe(false)
    expect(found.items.data.map((each) => each.id)).toEqual(['si_1', 'si_2'])
  })

  test.each([
    [
      'another subscription',
      { id: 'sub_other', object: 'subscription', status: 'active', items: { data: [] } },
    ],
    ['another object', { object: 'customer' }],
    ['no status', { object: 'subscription', items: { data: [] } }],
    ['no items', { object: 'subscription', status: 'active' }],
    ['nothing', {}],
  ])('takes %s for no answer', async (_, body) => {
    await using served = await serveWithClient()
    const { id } = subscribed(served)
    served.double.fault({
      match: { path: /subscriptions/ },
      respond: { status: 200, body: { id, ...body } },
    })
    await expect(look(served, id)).rejects.toMatchObject({ trouble: 'garbage' })
  })
})
