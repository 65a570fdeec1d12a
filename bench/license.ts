/** The workflow that all contestants of `process` stand for: a paid order becomes a license. */
import { createHookledger, defineWorkflow, fulfill, money, orderId, stripe, type Hookledger } from 'hookledger'
import type pg from 'pg'

/** What deliveries are signed with. */
export const benchSecret = 'whsec_bench_0123456789abcdef'

const source = stripe({ environment: 'test', account: 'acct_bench', signingSecrets: [benchSecret] })

/** Orders are opened by the shop's checkout; the event pays. */
export const license = licenseWorkflow('app')

function licenseWorkflow(opens: 'app' | 'event') {
  return defineWorkflow('license', {
    sources: ['stripe'],
    initial: 'pending',
    opens,
    states: { pending: {}, paid: { entitles: true } },
    transitions: { pending: ['paid'] },
    effects: { license: {} },
  }).on('checkout.session.completed', {
    order: ({ event }) => orderId(event.data.object.client_reference_id),
    decide: ({ event, order }) => {
      const session = event.data.object
      return fulfill({
        to: 'paid',
        payment: { id: String(session.payment_intent), money: money(session.amount_total ?? 0, session.currency ?? '') },
        effects: [{ type: 'license' }],
        entitle: [{ subject: order.subject ?? `order:${order.id}`, entitlement: 'pro' }],
      })
    },
  })
}

/** Hookledger with the bench's source over a pool. */
export function benchHookledger(
  pool: pg.Pool,
  schema: string,
  options: Partial<Parameters<typeof createHookledger>[0]> = {},
): Hookledger {
  return createHookledger({
    database: pool,
    schema,
    environment: 'test',
    sources: { stripe: source },
    workflows: [license],
    ...options,
  })
}
