import Stripe from 'stripe'
import { describe, expect, test } from 'vitest'
import { manualClock, paidSession, serveWithClient } from './stripe-client.ts'

describe('retrieve', () => {
  test('the official SDK reads every kind of object as it is now', async () => {
    await using served = await serveWithClient()
    const { double, stripe } = served
    const { session, intent } = paidSession(double)
    const refund = double.refund({ paymentIntent: intent, amount: 900 })
    const dispute = double.openDispute({ paymentIntent: intent })
    const customer = double.createCustomer({ email: 'ada@example.com' })
    const product = double.createProduct({ name: 'Team' })
    const price = double.createPrice({ product: product.id, unitAmount: 2000, interval: 'month' })
    const subscription = double.createSubscription({ customer: customer.id, price: price.id })
    const payment = double.all('invoice_payment')[0]!

    expect(await stripe.checkout.sessions.retrieve(session.id)).toMatchObject({
      payment_status: 'paid',
    })
    const paid = await stripe.paymentIntents.retrieve(intent)
    expect(paid).toMatchObject({ status: 'succeeded', amount_received: 4900 })
    expect(await stripe.charges.retrieve(paid.latest_charge as string)).toMatchObject({
      amount_refunded: 900,
      disputed: true,
    })
    expect(await stripe.refunds.retrieve(refund.id)).toMatchObject({
      amount: 900,
      payment_intent: intent,
    })
    expect(await stripe.disputes.retrieve(dispute.id)).toMatchObject({ status: 'needs_response' })
    expect(await stripe.customers.retrieve(customer.id)).toMatchObject({ email: 'ada@example.com' })
    expect(await stripe.products.retrieve(product.id)).toMatchObject({ name: 'Team' })
    const read = await stripe.prices.retrieve(price.id)
    expect(read.unit_amount_decimal?.toString()).toBe('2000')
    expect(await stripe.subscriptions.retrieve(subscription.id)).toMatchObject({ status: 'active' })
    expect(await stripe.invoices.retrieve(subscription.latest_invoice as string)).toMatchObject({
      status: 'paid',
      parent: { subscription_details: { subscription: subscription.id } },
    })
    expect(await stripe.invoicePayments.retrieve(payment.id)).toMatchObject({ status: 'paid' })
  })

  test('an unknown id is refused as a missing resource', async () => {
    await using served = await serveWithClient()
    const refused = await served.stripe.refunds.retrieve('re_none').catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(Stripe.errors.StripeInvalidRequestError)
    expect(refused).toMatchObject({ statusCode: 404, code: 'resource_missing' })
  })

  test('a path that is not simulated says so instead of pretending', async () => {
    await using served = await serveWithClient()
    const refused = await served.stripe.payouts.list().catch((error: unknown) => error)
    expect(refused).toMatchObject({ statusCode: 404 })
    expect(String(refused)).toContain('GET: /v1/payouts')
  })
})

describe('lists', () => {
  test('autopagination walks all events newest first over more than one page', async () => {
    await using served = await serveWithClient()
    const { double, stripe } = served
    for (let order = 0; order < 50; order++) paidSession(double, String(order))
    const made = double.all('event').map((event) => event.id)
    expect(made.length).toBe(250)

    const seen: string[] = []
    for await (const event of stripe.events.list({ limit: 100 })) seen.push(event.id)
    expect(seen).toEqual([...made].reverse())
    expect(double.log.entries('api_call')).toHaveLength(3)
  })

  test('paging before an id walks in the order of creation', async () => {
    await using served = await serveWithClient()
    const { double, stripe } = served
    for (let order = 0; order < 30; order++) paidSession(double, String(order))
    const made = double.all('event').map((event) => event.id)

    const seen: string[] = []
    for await (const event of stripe.events.list({ limit: 20, ending_before: made[0]! }))
      seen.push(event.id)
    expect(seen).toEqual(made.slice(1))
  })

  test('events are filtered by types, by a group, by time and by delivery', async () => {
    const clock = manualClock()
    await using served = await serveWithClient({ clock: clock.now })
    const { double, stripe } = served
    const { intent } = paidSession(double, '1')
    clock.move(60_000)
    const border = Math.floor(clock.now() / 1000)
    double.refund({ paymentIntent: intent })
    const types = async (filter: Stripe.EventListParams) =>
      (await stripe.events.list(filter)).data.map((event) => event.type)

    expect(await types({ types: ['charge.refunded', 'charge.succeeded'] })).toEqual([
      'charge.refunded',
      'charge.succeeded',
    ])
    expect(await types({ type: 'refund.*' })).toEqual(['refund.created'])
    expect(await types({ created: { gte: border } })).toEqual(['charge.refunded', 'refund.created'])
    expect(await types({ created: { lt: border }, type: 'charge.*' })).toEqual([
      'charge.updated',
      'charge.succeeded',
    ])
    expect(await types({ created: { gt: border } })).toEqual([])
    expect(await types({ created: border })).toHaveLength(2)

    const [newest] = (await stripe.events.list({ limit: 1 })).data
    double.log.append({
      kind: 'delivery',
      at: clock.now(),
      eventId: newest!.id,
      copy: 0,
      attempt: 1,
      status: 200,
      error: null,
      durationMs: 1,
    })
    expect(await types({ delivery_success: true })).toEqual(['charge.refunded'])
    expect(await types({ delivery_success: false })).toHaveLength(6)
    expect(await stripe.events.retrieve(newest!.id)).toMatchObject({ pending_webhooks: 0 })
  })

  test('events older than thirty days are gone, objects stay', async () => {
    const clock = manualClock()
    await using served = await serveWithClient({ clock: clock.now })
    const { intent } = paidSession(served.double)
    const [event] = served.double.all('event')
    clock.move(30 * 24 * 3600_000)
    expect((await served.stripe.events.list()).data).toEqual([])
    await expect(served.stripe.events.retrieve(event!.id)).rejects.toMatchObject({
      statusCode: 404,
    })
    expect((await served.stripe.paymentIntents.retrieve(intent)).id).toBe(intent)
  })

  test('a record shows in lists only after the lag and can be retrieved at once', async () => {
    const clock = manualClock()
    await using served = await serveWithClient({ clock: clock.now, listLagMs: 5_000 })
    const { double, stripe } = served
    const { intent } = paidSession(double)
    const refund = double.refund({ paymentIntent: intent })

    expect((await stripe.refunds.list()).data).toEqual([])
    expect((await stripe.events.list()).data).toEqual([])
    expect(await stripe.refunds.retrieve(refund.id)).toMatchObject({ id: refund.id })
    clock.move(4_999)
    expect((await stripe.refunds.list()).data).toEqual([])
    clock.move(1)
    expect((await stripe.refunds.list()).data.map((found) => found.id)).toEqual([refund.id])
  })

  test('with a lag of its own a record can appear behind newer ones', async () => {
    const clock = manualClock()
    await using served = await serveWithClient({ clock: clock.now })
    const { double, stripe } = served
    const first = double.createCustomer({ email: 'first@example.com' })
    const second = double.createCustomer({ email: 'second@example.com' })
    double.setListLag((object) => (object.id === first.id ? 60_000 : 0))
    const ids = async () => (await stripe.customers.list()).data.map((customer) => customer.id)
    expect(await ids()).toEqual([second.id])
    clock.move(60_000)
    expect(await ids()).toEqual([second.id, first.id])
  })

  test('objects are listed by what they belong to', async () => {
    await using served = await serveWithClient()
    const { double, stripe } = served
    const one = paidSession(double, '1')
    const other = paidSession(double, '2')
    const refund = double.refund({ paymentIntent: other.intent, amount: 100 })
    const dispute = double.openDispute({ paymentIntent: one.intent })
    const open = double.createSession({ clientReferenceId: '3' })

    expect(
      (await stripe.refunds.list({ payment_intent: other.intent })).data.map((x) => x.id),
    ).toEqual([refund.id])
    expect((await stripe.refunds.list({ payment_intent: one.intent })).data).toEqual([])
    expect(
      (await stripe.disputes.list({ payment_intent: one.intent })).data.map((x) => x.id),
    ).toEqual([dispute.id])
    expect((await stripe.charges.list({ payment_intent: one.intent })).data).toHaveLength(1)
    const sessions = await stripe.checkout.sessions.list({ payment_intent: one.intent })
    expect(sessions.data.map((x) => x.id)).toEqual([one.session.id])
    expect((await stripe.checkout.sessions.list({ status: 'open' })).data.map((x) => x.id)).toEqual(
      [open.id],
    )
  })

  test('canceled subscriptions are listed only when asked for', async () => {
    await using served = await serveWithClient()
    const { double, stripe } = served
    const customer = double.createCustomer({ email: 'ada@example.com' })
    const product = double.createProduct({ name: 'Team' })
    const price = double.createPrice({
      product: product.id,
      unitAmount: 2000,
      interval: 'month',
      lookupKey: 'team',
    })
    const { id } = double.createSubscription({ customer: customer.id, price: price.id })
    double.cancelSubscription(id)
    expect((await stripe.subscriptions.list()).data).toEqual([])
    expect((await stripe.subscriptions.list({ status: 'all' })).data.map((x) => x.id)).toEqual([id])
    expect((await stripe.prices.list({ lookup_keys: ['team'] })).data.map((x) => x.id)).toEqual([
      price.id,
    ])
    expect((await stripe.invoices.list({ subscription: id })).data).toHaveLength(1)
  })

  test('a limit out of range, an unknown cursor and an unknown filter are refused', async () => {
    await using served = await serveWithClient()
    const { stripe } = served
    await expect(stripe.events.list({ limit: 101 })).rejects.toMatchObject({
      statusCode: 400,
      param: 'limit',
    })
    await expect(stripe.events.list({ starting_after: 'evt_none' })).rejects.toMatchObject({
      statusCode: 400,
      code: 'resource_missing',
      param: 'starting_after',
    })
    await expect(
      stripe.refunds.list({ customer: 'cus_1' } as Stripe.RefundListParams),
    ).rejects.toMatchObject({
      code: 'parameter_unknown',
    })
  })
})

describe('expand', () => {
  test('ids become objects, and lists that are left out are put in', async () => {
    await using served = await serveWithClient()
    const { double, stripe } = served
    const { session, intent } = paidSession(double)
    const refund = double.refund({ paymentIntent: intent, amount: 100 })

    const read = await stripe.checkout.sessions.retrieve(session.id, {
      expand: ['payment_intent.latest_charge', 'line_items'],
    })
    const charge = (read.payment_intent as Stripe.PaymentIntent).latest_charge as Stripe.Charge
    expect(charge).toMatchObject({ object: 'charge', amount_refunded: 100 })
    expect(charge.refunds).toBeUndefined()
    expect(read.line_items?.data[0]).toMatchObject({ amount_total: 4900, quantity: 1 })

    const charges = await stripe.charges.list({ expand: ['data.refunds'] })
    expect(charges.data[0]?.refunds?.data.map((found) => found.id)).toEqual([refund.id])
    await expect(stripe.charges.retrieve(charge.id, { expand: ['nothing'] })).rejects.toMatchObject(
      { statusCode: 400 },
    )
  })

  test('an answer to a change is expanded from what the change left', async () => {
    await using served = await serveWithClient()
    const { intent } = paidSession(served.double)
    const refund = await served.stripe.refunds.create({
      payment_intent: intent,
      amount: 900,
      expand: ['charge'],
    })
    expect(refund.charge).toMatchObject({ object: 'charge', amount_refunded: 900 })
  })
})

describe('writes', () => {
  test('a shop opens a session with the SDK and a customer pays it', async () => {
    await using served = await serveWithClient()
    const { double, stripe } = served
    const session = await stripe.checkout.sessions.create({
      mode: 'payment',
      client_reference_id: '1001',
      customer_email: 'buyer@example.com',
      metadata: { order_id: '1001' },
      payment_intent_data: { metadata: { order_id: '1001' } },
      line_items: [
        {
          quantity: 1,
          price_data: { currency: 'usd', unit_amount: 4900, product_data: { name: 'License' } },
        },
      ],
      success_url: 'https://shop.example/thanks',
    })
    expect(session).toMatchObject({ status: 'open', amount_total: 4900, payment_intent: null })
    const done = double.completeSession(session.id)
    const intent = double.find('payment_intent', done.payment_intent as string)
    expect(intent).toMatchObject({ status: 'succeeded', metadata: { order_id: '1001' } })
    expect(done.customer_details?.email).toBe('buyer@example.com')
  })

  test('an event of an API call names the call and its key', async () => {
    await using served = await serveWithClient()
    const { double, stripe } = served
    const { intent } = paidSession(double)
    const refund = await stripe.refunds.create(
      { payment_intent: intent },
      { idempotencyKey: 'op-1' },
    )
    const event = double.all('event').find((made) => made.type === 'refund.created')
    expect(event?.request).toEqual({ id: refund.lastResponse.requestId, idempotency_key: 'op-1' })
  })

  test('metadata is merged, single keys and the whole are removed by empty strings', async () => {
    await using served = await serveWithClient()
    const { stripe } = served
    const { id } = await stripe.customers.create({
      email: 'a@example.com',
      metadata: { a: '1', b: '2' },
    })
    expect((await stripe.customers.update(id, { metadata: { b: '', c: '3' } })).metadata).toEqual({
      a: '1',
      c: '3',
    })
    expect((await stripe.customers.update(id, { metadata: '' })).metadata).toEqual({})
  })

  test('refunds that the charge does not allow are refused with Stripe’s codes', async () => {
    await using served = await serveWithClient()
    const { double, stripe } = served
    const one = paidSession(double, '1')
    const other = paidSession(double, '2')
    await expect(
      stripe.refunds.create({ payment_intent: one.intent, amount: 5000 }),
    ).rejects.toMatchObject({
      param: 'amount',
    })
    await stripe.refunds.create({ payment_intent: one.intent })
    await expect(stripe.refunds.create({ payment_intent: one.intent })).rejects.toMatchObject({
      code: 'charge_already_refunded',
    })
    double.openDispute({ paymentIntent: other.intent })
    await expect(stripe.refunds.create({ payment_intent: other.intent })).rejects.toMatchObject({
      code: 'charge_disputed',
    })
  })

  test('missing, unknown and malformed parameters are refused', async () => {
    await using served = await serveWithClient()
    const { stripe } = served
    const wrong = { amount: 'many' } as unknown as Stripe.RefundCreateParams
    await expect(stripe.refunds.create({})).rejects.toMatchObject({ statusCode: 400 })
    await expect(stripe.refunds.create(wrong)).rejects.toMatchObject({
      code: 'parameter_invalid_integer',
    })
    await expect(
      stripe.products.create({ nmae: 'x' } as unknown as Stripe.ProductCreateParams),
    ).rejects.toMatchObject({
      code: 'parameter_unknown',
      param: 'nmae',
    })
    await expect(stripe.products.create({} as Stripe.ProductCreateParams)).rejects.toMatchObject({
      code: 'parameter_missing',
    })
  })

  test('the remaining verbs can be called over HTTP', async () => {
    await using served = await serveWithClient()
    const { double, stripe } = served
    const customer = await stripe.customers.create({ email: 'ada@example.com' })
    const product = await stripe.products.create({ name: 'Team' })
    const price = await stripe.prices.create({
      product: product.id,
      currency: 'usd',
      unit_amount: 2000,
      recurring: { interval: 'month' },
    })
    const subscription = await stripe.subscriptions.create({
      customer: customer.id,
      items: [{ price: price.id, quantity: 2 }],
      metadata: { account_id: 'acct-1' },
    })
    expect(subscription).toMatchObject({ status: 'active', metadata: { account_id: 'acct-1' } })
    const renewed = double.renewSubscription(subscription.id, { outcome: 'failed' })
    expect(renewed.status).toBe('past_due')
    const invoice = await stripe.invoices.pay(renewed.latest_invoice as string)
    expect(invoice).toMatchObject({ status: 'paid', amount_paid: 4000, attempt_count: 2 })
    expect(await stripe.subscriptions.retrieve(subscription.id)).toMatchObject({ status: 'active' })
    expect(await stripe.subscriptions.cancel(subscription.id)).toMatchObject({ status: 'canceled' })

    const { id } = double.createSession()
    expect(await stripe.checkout.sessions.expire(id)).toMatchObject({ status: 'expired' })
    const intent = await stripe.paymentIntents.create({
      amount: 500,
      currency: 'USD',
      metadata: { a: '1' },
    })
    expect(await stripe.paymentIntents.update(intent.id, { metadata: { b: '2' } })).toMatchObject({
      metadata: { a: '1', b: '2' },
    })
    expect(await stripe.paymentIntents.cancel(intent.id)).toMatchObject({ status: 'canceled' })
    const { intent: disputed } = paidSession(double)
    const dispute = double.openDispute({ paymentIntent: disputed })
    expect(await stripe.disputes.close(dispute.id)).toMatchObject({ status: 'lost' })
    const { intent: refunded } = paidSession(double)
    const pending = double.refund({ paymentIntent: refunded, status: 'pending' })
    expect(await stripe.refunds.update(pending.id, { metadata: { why: 'test' } })).toMatchObject({
      metadata: { why: 'test' },
    })
    expect(await stripe.refunds.cancel(pending.id)).toMatchObject({ status: 'canceled' })
  })
})

describe('keys and accounts', () => {
  test('a missing or wrong key is refused', async () => {
    await using served = await serveWithClient({ apiKey: 'sk_test_right' })
    await expect(served.client({}, 'sk_test_wrong').events.list()).rejects.toBeInstanceOf(
      Stripe.errors.StripeAuthenticationError,
    )
    expect((await served.client({}, 'sk_test_right').events.list()).data).toEqual([])
    const basic = Buffer.from('sk_test_right:').toString('base64')
    const answered = await served.call('/v1/events', {
      headers: { authorization: `Basic ${basic}` },
    })
    expect(answered.status).toBe(200)
    const without = await served.call('/v1/events', { headers: { authorization: '' } })
    expect(without.status).toBe(401)
  })

  test('each connected account is a world of its own', async () => {
    await using served = await serveWithClient({ account: 'acct_1', connectedAccounts: ['acct_2'] })
    const { double, stripe } = served
    const own = double.createCustomer({ email: 'own@example.com' })
    const theirs = double.forAccount('acct_2').createCustomer({ email: 'theirs@example.com' })
    const ids = async (options?: Stripe.RequestOptions) =>
      (await stripe.customers.list({}, options)).data.map((customer) => customer.id)

    expect(await ids()).toEqual([own.id])
    expect(await ids({ stripeAccount: 'acct_2' })).toEqual([theirs.id])
    expect(await ids({ stripeAccount: 'acct_1' })).toEqual([own.id])
    await expect(ids({ stripeAccount: 'acct_9' })).rejects.toMatchObject({
      statusCode: 403,
      code: 'account_invalid',
    })
    await expect(stripe.customers.retrieve(theirs.id)).rejects.toMatchObject({ statusCode: 404 })

    const event = double.forAccount('acct_2').all('event')[0]
    expect(event?.account).toBe('acct_2')
    expect(double.all('event')[0]?.account).toBeUndefined()
  })
})

describe('the log', () => {
  test('every call is written down with what the caller was told', async () => {
    await using served = await serveWithClient({ apiKey: 'sk_test_123' })
    const { double, stripe } = served
    await stripe.customers.create({ email: 'a@example.com' }, { idempotencyKey: 'k1' })
    await stripe.customers.create({ email: 'a@example.com' }, { idempotencyKey: 'k1' })
    await stripe.refunds.retrieve('re_none').catch(() => {})
    await served.call('/v1/events?limit=1', { headers: { authorization: 'Bearer sk_test_no' } })

    const calls = double.log.entries('api_call')
    expect(
      calls.map((c) => [c.method, c.path, c.status, c.idempotencyKey, c.replayed, c.executed]),
    ).toEqual([
      ['POST', '/v1/customers', 200, 'k1', false, true],
      ['POST', '/v1/customers', 200, 'k1', true, false],
      ['GET', '/v1/refunds/re_none', 404, null, false, false],
      ['GET', '/v1/events', 401, null, false, false],
    ])
    expect(new Set(calls.map((c) => c.requestId)).size).toBe(4)
    expect(JSON.stringify(double.log.entries())).not.toContain('sk_test')
    expect(JSON.stringify(double.log.entries())).not.toContain('a@example.com')
  })
})
