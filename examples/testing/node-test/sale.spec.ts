/** What the workflow decides: in memory, in milliseconds. */
import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import {
  checkoutSessionCompleted,
  everyOrder,
  play,
  refundCreated,
  shuffle,
} from 'hookledger/testing'
import { sale } from './sale.ts'

test('two copies of a payment are one license', () => {
  const app = play([sale])
  const paid = checkoutSessionCompleted({ order: '1001', email: 'ada@example.com' })
  app.deliver([paid, paid])
  equal(app.order('1001').state, 'paid')
  equal(app.order('1001').effects.length, 1)
  equal(app.entitlements('email:ada@example.com').length, 1)
})

test('a refund takes the license away, in every order of the events', () => {
  const order = '1001'
  const events = [checkoutSessionCompleted({ order }), refundCreated({ order, id: 're_1' })]
  equal(everyOrder(events, sale).orders, 2)
  for (let seed = 1; seed <= 10; seed++) {
    const app = play([sale])
    app.deliver(shuffle([...events, ...events], seed))
    equal(app.order(order).state, 'refunded')
  }
})
