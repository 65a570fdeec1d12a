/** The shop of `reconcile`: an order that a payment intent pays, and Hookledger that can ask the provider. */
import {
  createHookledger,
  defineWorkflow,
  fulfill,
  money,
  name,
  orderId,
  stripe,
  type Hookledger,
} from '../src/index.ts'
import type { PoolLike } from '../src/postgres/pool.ts'
import { benchSecret } from './license.ts'

const license = defineWorkflow('license', {
  sources: ['stripe'],
  initial: 'pending',
  states: { pending: {}, paid: { entitles: true } },
  transitions: { pending: ['paid'] },
  effects: { license: {} },
}).on('payment_intent.succeeded', {
  order: ({ event }) => orderId(event.data.object.metadata['order_id']),
  learn: ({ event }) => [name('payment_intent', event.data.object.id)],
  decide: ({ event, order }) => {
    const intent = event.data.object
    return fulfill({
      to: 'paid',
      payment: { id: intent.id, money: money(intent.amount_received, intent.currency) },
      effects: [{ type: 'license' }],
      entitle: [{ subject: order.subject, entitlement: 'pro' }],
    })
  },
})

/** Hookledger over a pool, asking the provider at this address as fast as it answers. */
export function reconcileHookledger(pool: PoolLike, schema: string, apiBase: string): Hookledger {
  return createHookledger({
    database: pool,
    schema,
    environment: 'test',
    sources: {
      stripe: stripe({
        environment: 'test',
        account: 'acct_bench',
        signingSecrets: [benchSecret],
        apiKey: 'sk_test_bench',
        apiBase,
      }),
    },
    workflows: [license],
    reconcile: { callsPerSecond: 100_000, callsPerPass: 1_000_000 },
  })
}
