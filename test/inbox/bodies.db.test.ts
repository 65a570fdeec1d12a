import { Buffer } from 'node:buffer'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { signStripe } from '../../src/testing/sign.ts'
import { checkoutSessionCompleted, stripeBody } from '../../src/testing/stripe-events.ts'
import { createShop, shopSecret, type Shop } from '../support/shop.ts'

let shop: Shop
beforeAll(async () => {
  shop = await createShop()
})
afterAll(() => shop.close())

const send = async (body: Buffer): Promise<void> => {
  const headers = signStripe(body, shopSecret)
  expect((await shop.hookledger.ingest({ source: 'stripe', headers, rawBody: body })).status).toBe(
    200,
  )
}

describe('reading bodies', () => {
  it('decides each event of a large batch by its own body', async () => {
    const numbers = Array.from({ length: 400 }, (_, index) => index)
    await Promise.all(
      numbers.map((n) =>
        shop.deliver(checkoutSessionCompleted({ order: `own-${n}`, email: `b${n}@example.com` })),
      ),
    )
    await shop.work()
    const rows = await shop.rows<{ order_id: string; subject: string }>(
      `select order_id, subject from entitlements where active and order_id like 'own-%'`,
    )
    expect(new Map(rows.map((row) => [row.order_id, row.subject]))).toEqual(
      new Map(numbers.map((n) => [`own-${n}`, `email:b${n}@example.com`])),
    )
  })

  it('reads a body with a replacement character of its own exactly', async () => {
    const event = checkoutSessionCompleted({ order: 'replaced-\ufffd', email: 'r@example.com' })
    await send(Buffer.from(stripeBody(event)))
    await shop.work()
    expect(
      await shop.rows(`select state from orders where order_id = 'replaced-' || chr(65533)`),
    ).toEqual([{ state: 'paid' }])
  })

  it('ends an event whose bytes are not UTF-8 as dead, and the ones beside it are decided', async () => {
    const good = checkoutSessionCompleted({ order: 'beside' })
    const bad = Buffer.from(
      stripeBody(checkoutSessionCompleted({ order: 'latin', email: 'xyz@example.com' })),
    )
    bad[bad.indexOf('xyz@')] = 0xe9
    await send(bad)
    await shop.deliver(good)
    await shop.work()
    expect(await shop.rows(`select last_error from webhook_inbox where state = 'dead'`)).toEqual([
      { last_error: 'unreadable: the body is not UTF-8' },
    ])
    expect(await shop.rows(`select state from orders where order_id = 'beside'`)).toEqual([
      { state: 'paid' },
    ])
  })
})
