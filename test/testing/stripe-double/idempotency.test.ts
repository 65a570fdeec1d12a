import Stripe from 'stripe'
import { describe, expect, test } from 'vitest'
import { manualClock, paidSession, serveWithClient } from './stripe-client.ts'

const day = 24 * 3600_000

describe('idempotency keys', () => {
  test('the same key and parameters give the first answer again and do the work once', async () => {
    await using served = await serveWithClient()
    const { double, stripe } = served
    const { intent } = paidSession(double)
    const first = await stripe.refunds.create(
      { payment_intent: intent, amount: 900 },
      { idempotencyKey: 'k' },
    )
    double.refund({ paymentIntent: intent, amount: 100 })
    const again = await stripe.refunds.create(
      { amount: 900, payment_intent: intent },
      { idempotencyKey: 'k' },
    )

    expect(again).toEqual(first)
    expect(again.lastResponse.headers['idempotent-replayed']).toBe('true')
    expect(again.lastResponse.headers['original-request']).toBe(first.lastResponse.requestId)
    expect(again.lastResponse.requestId).not.toBe(first.lastResponse.requestId)
    expect(first.lastResponse.headers['idempotent-replayed']).toBeUndefined()
    expect(double.all('refund')).toHaveLength(2)
  })

  test('other parameters or another endpoint under the same key are refused', async () => {
    await using served = await serveWithClient()
    const { double, stripe } = served
    const { intent } = paidSession(double)
    await stripe.refunds.create({ payment_intent: intent, amount: 900 }, { idempotencyKey: 'k' })
    const other = stripe.refunds.create(
      { payment_intent: intent, amount: 901 },
      { idempotencyKey: 'k' },
    )
    await expect(other).rejects.toBeInstanceOf(Stripe.errors.StripeIdempotencyError)
    await expect(other).rejects.toMatchObject({ statusCode: 400 })
    const elsewhere = stripe.customers.create({ email: 'a@example.com' }, { idempotencyKey: 'k' })
    await expect(elsewhere).rejects.toMatchObject({
      statusCode: 400,
      type: 'StripeIdempotencyError',
    })
    expect(double.all('refund')).toHaveLength(1)
    expect(double.all('customer')).toHaveLength(0)
  })

  test('a stored 500 is given again although the next try would succeed', async () => {
    await using served = await serveWithClient()
    const { double, stripe } = served
    const { intent } = paidSession(double)
    double.fault({
      match: { path: '/v1/refunds' },
      phase: 'during',
      respond: { status: 500 },
      once: true,
    })
    const create = () => stripe.refunds.create({ payment_intent: intent }, { idempotencyKey: 'k' })
    await expect(create()).rejects.toMatchObject({ statusCode: 500 })
    await expect(create()).rejects.toMatchObject({ statusCode: 500 })
    expect(double.all('refund')).toEqual([])
    await stripe.refunds.create({ payment_intent: intent }, { idempotencyKey: 'other' })
    expect(double.all('refund')).toHaveLength(1)
  })

  test('a 500 after the work was done is stored, and the work stays done', async () => {
    await using served = await serveWithClient()
    const { double, stripe } = served
    const { intent } = paidSession(double)
    double.fault({ match: { method: 'POST' }, phase: 'done', respond: { status: 500 }, once: true })
    const create = () => stripe.refunds.create({ payment_intent: intent }, { idempotencyKey: 'k' })
    await expect(create()).rejects.toMatchObject({ statusCode: 500 })
    await expect(create()).rejects.toMatchObject({ statusCode: 500 })
    expect(double.all('refund')).toHaveLength(1)
  })

  test('a refusal by the state of the objects is stored', async () => {
    await using served = await serveWithClient()
    const { double, stripe } = served
    const { intent } = paidSession(double)
    const pending = double.refund({ paymentIntent: intent, status: 'pending' })
    const create = () => stripe.refunds.create({ payment_intent: intent }, { idempotencyKey: 'k' })
    await expect(create()).rejects.toMatchObject({ code: 'charge_already_refunded' })
    double.failRefund(pending.id)
    await expect(create()).rejects.toMatchObject({ code: 'charge_already_refunded' })
  })

  test('a failed validation is not stored: the corrected request goes through', async () => {
    await using served = await serveWithClient()
    const { double, stripe } = served
    const { intent } = paidSession(double)
    const wrong = { payment_intent: intent, amount: 'all' } as unknown as Stripe.RefundCreateParams
    await expect(stripe.refunds.create(wrong, { idempotencyKey: 'k' })).rejects.toMatchObject({
      statusCode: 400,
    })
    const refund = await stripe.refunds.create({ payment_intent: intent }, { idempotencyKey: 'k' })
    expect(refund.status).toBe('succeeded')
  })

  test('a call beside one that still runs is refused and not stored', async () => {
    await using served = await serveWithClient()
    const { double, stripe } = served
    const { intent } = paidSession(double)
    const fault = double.fault({
      match: { path: '/v1/refunds' },
      phase: 'during',
      delayMs: 300,
      once: true,
    })
    const create = () => stripe.refunds.create({ payment_intent: intent }, { idempotencyKey: 'k' })
    const first = create()
    await expect.poll(() => fault.hits).toBe(1)
    await expect(create()).rejects.toMatchObject({
      statusCode: 409,
      code: 'idempotency_key_in_use',
    })
    const refund = await first
    expect((await create()).id).toBe(refund.id)
    expect(double.all('refund')).toHaveLength(1)
  })

  test('after 24 hours the same key does the work anew', async () => {
    const clock = manualClock()
    await using served = await serveWithClient({ clock: clock.now })
    const { double, stripe } = served
    const { intent } = paidSession(double)
    const create = () =>
      stripe.refunds.create({ payment_intent: intent, amount: 100 }, { idempotencyKey: 'k' })
    const first = await create()
    clock.move(day - 1)
    expect((await create()).id).toBe(first.id)
    clock.move(1)
    expect((await create()).id).not.toBe(first.id)
    expect(double.all('refund')).toHaveLength(2)
  })

  test('keys belong to an account', async () => {
    await using served = await serveWithClient({ connectedAccounts: ['acct_2'] })
    const { double, stripe } = served
    await stripe.customers.create({ email: 'a@example.com' }, { idempotencyKey: 'k' })
    await stripe.customers.create(
      { email: 'a@example.com' },
      { idempotencyKey: 'k', stripeAccount: 'acct_2' },
    )
    expect(double.all('customer')).toHaveLength(1)
    expect(double.forAccount('acct_2').all('customer')).toHaveLength(1)
  })

  test('keys mean nothing outside of POST, and a key over 255 characters is refused', async () => {
    await using served = await serveWithClient()
    const headers = { 'idempotency-key': 'k' }
    const first = await served.call('/v1/customers', { headers })
    served.double.createCustomer({ email: 'a@example.com' })
    const second = await served.call('/v1/customers', { headers })
    expect((await first.json()) as unknown).toMatchObject({ data: [] })
    expect((await second.json()) as { data: unknown[] }).toMatchObject({
      data: [{ object: 'customer' }],
    })
    const long = served.stripe.customers.create({}, { idempotencyKey: 'k'.repeat(256) })
    await expect(long).rejects.toMatchObject({ statusCode: 400 })
  })

  test('the SDK’s own retries after a lost answer do the work once', async () => {
    await using served = await serveWithClient()
    const { double } = served
    const { intent } = paidSession(double)
    const fault = double.fault({
      match: { path: '/v1/refunds' },
      phase: 'answer',
      reset: true,
      once: true,
    })
    const refund = await served
      .client({ maxNetworkRetries: 2 })
      .refunds.create({ payment_intent: intent })
    expect(fault.hits).toBe(1)
    expect(double.all('refund').map((made) => made.id)).toEqual([refund.id])
    expect(
      double.log.entries('api_call').map((call) => [call.status, call.executed, call.replayed]),
    ).toEqual([
      [null, true, false],
      [200, false, true],
    ])
  })
})

describe('faults', () => {
  test('a fault before the call leaves nothing behind, and the same key works afterward', async () => {
    await using served = await serveWithClient()
    const { double, stripe } = served
    const { intent } = paidSession(double)
    double.fault({
      match: { path: /refunds$/g },
      respond: { status: 429, headers: { 'retry-after': '1' } },
      once: true,
    })
    const create = () => stripe.refunds.create({ payment_intent: intent }, { idempotencyKey: 'k' })
    await expect(create()).rejects.toMatchObject({ statusCode: 429 })
    expect(double.all('refund')).toEqual([])
    expect((await create()).status).toBe('succeeded')
  })

  test('a caller that gives up waiting does not undo the work', async () => {
    await using served = await serveWithClient()
    const { double } = served
    const { intent } = paidSession(double)
    double.fault({ match: { path: '/v1/refunds' }, phase: 'answer', delayMs: 400, once: true })
    const impatient = served.client({ timeout: 100 })
    const lost = impatient.refunds.create({ payment_intent: intent }, { idempotencyKey: 'k' })
    await expect(lost).rejects.toBeInstanceOf(Stripe.errors.StripeConnectionError)
    expect(double.all('refund')).toHaveLength(1)
    await expect.poll(() => double.log.entries('api_call').length).toBe(1)
    expect(double.log.entries('api_call')[0]).toMatchObject({ status: null, executed: true })
  })

  test('a fault stays until it is removed and meets only what it matches', async () => {
    await using served = await serveWithClient({ connectedAccounts: ['acct_2'] })
    const { double, stripe } = served
    const fault = double.fault({
      match: { method: 'GET', account: 'acct_2' },
      respond: { status: 503, body: 'busy' },
    })
    expect((await stripe.customers.list()).data).toEqual([])
    const theirs = () => stripe.customers.list({}, { stripeAccount: 'acct_2' })
    await expect(theirs()).rejects.toBeInstanceOf(Error)
    await expect(theirs()).rejects.toBeInstanceOf(Error)
    expect(fault.hits).toBe(2)
    fault.remove()
    expect((await theirs()).data).toEqual([])
  })
})
