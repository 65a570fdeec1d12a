/** What a user's tests must compile to: checked by the compiler alone. */
import { defineWorkflow, money, skip, stripe, type History } from 'hookledger'
import {
  checkoutSessionCompleted,
  everyOrder,
  play,
  refundCreated,
  signStripe,
  stripeBody,
  type EveryOrderReport,
  type InboxEntry,
  type PlayedOrder,
  type SentOperation,
} from 'hookledger/testing'
import { check, type Equal } from './expect.ts'

const shop = defineWorkflow('shop', {
  sources: ['stripe'],
  initial: 'pending',
  states: { pending: {} },
  transitions: {},
  effects: {},
}).on('refund.created', { order: () => '1', decide: () => skip('no') })

const app = play([shop], {
  sources: { stripe: stripe({ account: 'acct_1', signingSecrets: ['whsec_0123456789abcdef'] }) },
  environment: 'test',
  now: new Date(0),
  entitlements: { seats: 'sum' },
})
check<Equal<ReturnType<typeof app.open>, 'created' | 'existed' | 'mismatch'>>()
check<Equal<ReturnType<typeof app.order>, PlayedOrder>>()
check<Equal<ReturnType<typeof app.deliver>, readonly InboxEntry[]>>()
app.open({ id: '1', workflow: 'shop', subject: 'user:1', expected: money(1, 'usd') })
app.deliver([checkoutSessionCompleted(), refundCreated()], { source: 'stripe' })
const body = stripeBody(refundCreated())
app.deliver({ body, headers: signStripe(body, 'whsec_0123456789abcdef') })
check<Equal<ReturnType<typeof app.sent>, readonly SentOperation[]>>()
app.answer(app.sent('1')[0]?.operationId ?? '', { id: 'msg_1' })
app.answer('an id')
play([shop], { destinations: { email: { encode: ({ body }) => Buffer.from(String(body)) } } })
// @ts-expect-error a destination encodes
play([shop], { destinations: { email: {} } })
// @ts-expect-error an order has an id
app.open({ subject: 'user:1' })
// @ts-expect-error entitlements combine in one of three ways
play([shop], { entitlements: { seats: 'add' } })
// @ts-expect-error workflows come in a list
play(shop)

const history: History = { name: 'refunded', events: [checkoutSessionCompleted(), refundCreated()] }
const events = [checkoutSessionCompleted(), refundCreated()]
const open = { id: '1', subject: 'user:1' }
check<Equal<ReturnType<typeof overWorkflow>, EveryOrderReport>>()
export const overWorkflow = () => everyOrder(history.events, shop, { open })
export const overFunction = everyOrder(events, (order) => {
  check<Equal<(typeof order)[number], (typeof events)[number]>>()
  return order.length
})
check<Equal<typeof overFunction, EveryOrderReport>>()
export const overPromises = everyOrder(events, async (order) => order.length)
check<Equal<typeof overPromises, Promise<EveryOrderReport>>>()
