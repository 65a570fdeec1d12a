/** The shop on a database (DATABASE_URL, prepared by `hookledger migrate`): twice, and after a crash. */
import { expect, test } from '@jest/globals'
import { checkoutSessionCompleted, crashAt, deliverTwice, stripeDelivery } from 'hookledger/testing'
import { createShop, secret } from './shop.ts'

test('an event that comes twice at once is one license', async () => {
  const shop = createShop()
  const event = checkoutSessionCompleted({ order: 'twice', email: 'ada@example.com' })
  const [answers] = await deliverTwice([event], (each) =>
    shop.ingest(stripeDelivery(each, { secret })),
  )
  expect(answers?.map(({ status }) => status)).toEqual([200, 200])
  await shop.runOnce({ budgetMs: 5000 })
  expect((await shop.entitlements('email:ada@example.com')).length).toBe(1)
  await shop.stop()
})

test('a crash before, in and after the commit leaves what the next process finishes', async () => {
  for (const step of ['W3', 'W5', 'W7'] as const) {
    const event = checkoutSessionCompleted({ order: step, email: `${step}@example.com` })
    await crashAt(step, async () => {
      const dying = createShop()
      await dying.ingest(stripeDelivery(event, { secret }))
      await dying.runOnce({ budgetMs: 5000 })
    })
    const next = createShop()
    await next.runOnce({ budgetMs: 5000 })
    const granted = await next.entitlements(`email:${step}@example.com`)
    expect(granted.map(({ entitlement }) => entitlement)).toEqual(['pro'])
    await next.stop()
  }
})
