import Stripe from 'stripe'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  createStripeDouble,
  createTestClock,
  createWebhookSender,
  deliverEvents,
  serveStripeDouble,
  type ServedDouble,
  type StripeDouble,
} from 'hookledger/testing'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

const clock = createTestClock()
let double: StripeDouble
let served: ServedDouble
let stripe: Stripe

beforeEach(async () => {
  double = createStripeDouble({ signingSecret: 'whsec_alone', seed: 'alone', clock: clock.now })
  served = await serveStripeDouble(double)
  stripe = new Stripe('sk_test_alone', {
    host: '127.0.0.1',
    port: served.port,
    protocol: 'http',
    maxNetworkRetries: 0,
    telemetry: false,
  })
})
afterEach(async () => {
  await served.close()
  double.close()
})

function sell(order: string): string {
  const session = double.createSession({ clientReferenceId: order })
  return String(double.completeSession(session.id).payment_intent)
}

describe('the simulated provider, by what the package exports alone', () => {
  it('lists what happened, newest first, and forgets events after 30 days of its clock', async () => {
    sell('1001')
    clock.advance(1000)
    sell('1002')
    const { data } = await stripe.events.list({ type: 'checkout.session.completed' })
    const orders = data.map(
      ({ data: { object } }) => (object as Stripe.Checkout.Session).client_reference_id,
    )
    expect(orders).toEqual(['1002', '1001'])
    clock.advance(31 * 86_400_000)
    expect((await stripe.events.list()).data).toEqual([])
    expect((await stripe.checkout.sessions.list()).data).toHaveLength(2)
  })

  it('makes one refund under one key, also where the first answer was an error that lied', async () => {
    const payment_intent = sell('1001')
    double.fault({
      match: { method: 'POST', path: '/v1/refunds' },
      phase: 'answer',
      respond: { status: 500 },
      once: true,
    })
    const refund = () =>
      stripe.refunds.create({ payment_intent }, { idempotencyKey: 'refund-1001' })
    await expect(refund()).rejects.toMatchObject({ statusCode: 500 })
    const answered = await refund()
    expect((await stripe.refunds.list()).data.map(({ id }) => id)).toEqual([answered.id])
    await expect(
      stripe.refunds.create({ payment_intent, amount: 1 }, { idempotencyKey: 'refund-1001' }),
    ).rejects.toMatchObject({ type: 'StripeIdempotencyError' })
  })

  it('writes down every call as it was, with the answer that the caller got', async () => {
    const payment_intent = sell('1001')
    double.fault({ phase: 'answer', reset: true, match: { path: '/v1/refunds' }, once: true })
    const cut = fetch(`${served.url}/v1/refunds`, {
      method: 'POST',
      headers: { authorization: 'Bearer sk_test_alone', 'idempotency-key': 'k' },
      body: new URLSearchParams({ payment_intent }),
    })
    await expect(cut).rejects.toThrow()
    await stripe.refunds.create({ payment_intent }, { idempotencyKey: 'k' })
    expect(double.log.entries('api_call')).toMatchObject([
      { method: 'POST', status: null, idempotencyKey: 'k', executed: true, replayed: false },
      { method: 'POST', status: 200, idempotencyKey: 'k', executed: false, replayed: true },
    ])
    expect(double.all('refund')).toHaveLength(1)
    expect(JSON.stringify(double.log.entries())).not.toMatch(/sk_test_alone|whsec_alone/)
  })

  it('delivers what happens, signed, until it is acknowledged, and says so', async () => {
    const bodies: string[] = []
    let refusing = 1
    const receiver: Server = createServer((request, response) => {
      let text = ''
      request.on('data', (chunk: Buffer) => (text += chunk.toString()))
      request.on('end', () => {
        if (refusing-- > 0) return response.writeHead(503).end()
        const signature = String(request.headers['stripe-signature'])
        bodies.push(stripe.webhooks.constructEvent(text, signature, 'whsec_alone').type)
        return response.end()
      })
    })
    await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
    const { port } = receiver.address() as AddressInfo
    const sender = createWebhookSender({
      url: `http://127.0.0.1:${port}`,
      signingSecret: double.signingSecret,
      log: double.log,
      firstRetryMs: 1,
      concurrency: 1,
    })
    const stop = deliverEvents(double, sender)
    double.createCustomer({ email: 'ada@example.com' })
    await sender.idle()
    stop()
    await sender.close()
    await new Promise((resolve) => receiver.close(resolve))
    expect(bodies).toEqual(['customer.created'])
    const statuses = double.log.entries('delivery').map(({ status }) => status)
    expect(statuses).toEqual([503, 200])
    expect(double.unacknowledged()).toEqual([])
  })
})
