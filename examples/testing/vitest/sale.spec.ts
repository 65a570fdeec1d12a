/** What the workflow decides: in memory, in milliseconds. */
import {
  checkoutSessionCompleted,
  everyOrder,
  play,
  refundCreated,
  shuffle,
} from 'hookledger/testing'
import { expect, test } from 'vitest'
import { sale } from './sale.ts'

test('two copies of a payment are one license', () => {
  const app = play([sale])
  const paid = checkoutSessionCompleted({ order: '1001', email: 'ada@example.com' })
  app.deliver([paid, paid])
  expect(app.order('1001').state).toBe('paid')
  expect(app.order('1001').effects.length).toBe(1)
  expect(app.entitlements('email:ada@example.com').length).toBe(1)
})

test('a refund takes the license away, in every order of the events', () => {
  const order = '1001'
  const events = [checkoutSessionCompleted({ order }), refundCreated({ order, id: 're_1' })]
  expect(everyOrder(events, sale).orders).toBe(2)
  for (let seed = 1; seed <= 10; seed++) {
    const app = play([sale])
    app.deliver(shuffle([...events, ...events], seed))
    expect(app.order(order).state).toBe('refunded')
  }
})
