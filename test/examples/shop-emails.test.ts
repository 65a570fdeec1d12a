/** What the demo shop writes to its customers, and that each effect does it once. */
import { describe, expect, test } from 'vitest'
import {
  chargeDisputeClosed,
  chargeDisputeCreated,
  checkoutSessionCompleted,
  everyOrder,
  paymentIntentSucceeded,
  play,
  refundCreated,
  refundFailed,
  type Play,
} from 'hookledger/testing'
import { emailDestination } from '../../examples/shop/email-destination.ts'
import { license } from '../../examples/shop/license.ts'

const order = '1001'
const bought = checkoutSessionCompleted({ order, email: 'Ada@Example.com' })
const intent = paymentIntentSucceeded({ order, metadata: { order_id: order } })

function after(...events: readonly object[]): Play {
  const app = play([license])
  for (const event of events) app.deliver(event)
  return app
}

describe('the emails of the shop', () => {
  test('a license sends one, to the buyer, whatever comes how often', () => {
    const again = checkoutSessionCompleted({ order, email: 'Ada@Example.com', attempt: 2 })
    const sent = after(bought, intent, bought, again).sent(order)
    expect(sent).toMatchObject([
      {
        destination: 'email',
        name: 'license',
        effect: { type: 'license', reference: '' },
        body: { to: 'ada@example.com', template: 'license', order, bought: 'License' },
      },
    ])
  })

  test('a payment intent with an address sends the license; the session that follows sends no other', () => {
    const named = paymentIntentSucceeded({
      order,
      metadata: { order_id: order, email: 'ada@example.com' },
    })
    const sent = after(
      named,
      checkoutSessionCompleted({ order, email: 'other@example.com' }),
    ).sent()
    expect(sent.map(({ body }) => body)).toMatchObject([{ to: 'ada@example.com' }])
  })

  test('a payment intent without an address sends nothing yet', () => {
    expect(after(intent).sent()).toEqual([])
    expect(after(intent, bought).sent()).toHaveLength(1)
  })

  test('goes to the address that the shop knows, where it opened the order', () => {
    const app = play([license])
    app.open({ id: order, subject: 'email:grace@example.com' })
    app.deliver(bought)
    expect(app.sent().map(({ body }) => body)).toMatchObject([{ to: 'grace@example.com' }])
    const byUser = play([license])
    byUser.open({ id: order, subject: 'user:42' })
    byUser.deliver(bought)
    expect(byUser.sent().map(({ body }) => body)).toMatchObject([{ to: 'ada@example.com' }])
  })

  test('goes to the shop itself where nobody knows the buyer, and the finding says which order it is', () => {
    const nameless = checkoutSessionCompleted({ order, email: '' })
    const app = after(nameless)
    expect(app.sent().map(({ body }) => body)).toMatchObject([{ to: 'orders@shop.example', order }])
    expect(app.findings()).toMatchObject([{ kind: 'buyer_unknown' }])
  })

  test('each refund sends one of its own, with what is on its way back', () => {
    const first = refundCreated({ order, id: 're_1', amount: 1900 })
    const second = refundCreated({ order, id: 're_2', amount: 3000 })
    const sent = after(bought, first, first, second).sent()
    expect(sent.map(({ name, effect, body }) => [name, effect.reference, body])).toMatchObject([
      ['license', '', {}],
      ['refund', 're_1', { to: 'ada@example.com', order, refund: 're_1', amount: '19.00 USD' }],
      ['refund', 're_2', { to: 'ada@example.com', order, refund: 're_2', amount: '30.00 USD' }],
    ])
    expect(new Set(sent.map(({ operationId }) => operationId)).size).toBe(3)
  })

  test('a refund before anybody knows the buyer counts at once, and is told to the shop itself', () => {
    const whole = refundCreated({ order, id: 're_1' })
    const app = after(intent, whole)
    expect(app.order(order).state).toBe('refunded')
    expect(app.sent().map(({ body }) => body)).toMatchObject([{ to: 'orders@shop.example' }])
    app.deliver(bought)
    expect(app.sent().map(({ name, body }) => [name, body])).toMatchObject([
      ['refund', { to: 'orders@shop.example' }],
      ['license', { to: 'ada@example.com' }],
    ])
    // to whom it is told is all that the order of these events decides
    const destinations = { email: { encode: () => new Uint8Array() } }
    const rest = refundCreated({ order, id: 're_2', amount: 3000 })
    const part = refundCreated({ order, id: 're_1', amount: 1900 })
    const events = [intent, bought, part, rest]
    expect(everyOrder(events, license, { destinations })).toMatchObject({ orders: 24 })
  })

  test('a refund of what paid too little goes to the shop itself: nobody else is known', () => {
    const little = checkoutSessionCompleted({ order, amount: 1900, email: 'ada@example.com' })
    const sent = after(little, refundCreated({ order, id: 're_1', amount: 1900 })).sent()
    expect(sent.map(({ name, body }) => [name, body])).toMatchObject([
      ['refund', { to: 'orders@shop.example', order }],
    ])
  })

  test('what pays less than it costs sends nothing', () => {
    expect(after(checkoutSessionCompleted({ order, amount: 1900 })).sent()).toEqual([])
  })

  test('stay due in every state, since a dispute can be won and a refund can fail', () => {
    const disputed = after(bought, chargeDisputeCreated({ order, id: 'du_1' }))
    expect(disputed.order(order).state).toBe('disputed')
    expect(disputed.sent().map(({ name }) => name)).toEqual(['license'])
    disputed.deliver(chargeDisputeClosed({ order, id: 'du_1', status: 'won' }))
    expect(disputed.order(order).state).toBe('paid')
    expect(disputed.sent().map(({ name }) => name)).toEqual(['license'])

    const refunded = after(bought, refundCreated({ order, id: 're_1' }))
    expect(refunded.order(order).state).toBe('refunded')
    expect(refunded.sent().map(({ name }) => name)).toEqual(['license', 'refund'])
    refunded.deliver(refundFailed({ order, id: 're_1' }))
    expect(refunded.order(order).state).toBe('paid')
    expect(refunded.sent().map(({ name }) => name)).toEqual(['license', 'refund'])
  })

  test('hold no secret: an id, an address, what was bought', () => {
    const bodies = after(bought, refundCreated({ order, id: 're_1' })).sent()
    expect(bodies.flatMap(({ body }) => Object.keys(body as object)).sort()).toEqual([
      'amount',
      'bought',
      'bought',
      'order',
      'order',
      'refund',
      'template',
      'template',
      'to',
      'to',
    ])
  })
})

describe('where they go', () => {
  test('SHOP_EMAIL_URL is trusted wherever it leads, without https too; its key is honored for 24 hours', () => {
    const destination = emailDestination('http://127.0.0.1:4025/emails')
    expect(destination.problem).toBeUndefined()
    expect(destination).toMatchObject({
      kind: 'http',
      contract: { idempotency: 'key', retentionMs: 86_400_000 },
    })
    expect(destination.lookup).toBeUndefined()
  })

  test('a URL that is none is a problem of the start, not of the import', () => {
    expect(emailDestination('not a url').problem).toMatch(/url is not a URL/)
  })

  test('without a URL they are shown, and done at least once', () => {
    for (const url of [undefined, '']) {
      expect(emailDestination(url)).toMatchObject({
        kind: 'function',
        contract: { idempotency: 'none' },
      })
    }
  })
})
