/** The workflow that all contestants of `process` stand for: a paid order becomes a license. */
import {
  createHookledger,
  defineWorkflow,
  fulfill,
  money,
  orderId,
  stripe,
  type Hookledger,
} from '../src/index.ts'
import type { PoolLike } from '../src/postgres/pool.ts'
import type { ApplyInput, Workflow } from '../src/workflow/workflow.ts'

/** What deliveries are signed with. */
export const benchSecret = 'whsec_bench_0123456789abcdef'

const source = stripe({ environment: 'test', account: 'acct_bench', signingSecrets: [benchSecret] })

/** What an effect's `apply` may be given. */
export type Apply = (input: ApplyInput) => Promise<void>

/** A license for a paid order; orders are opened by the shop's checkout, and the event pays. */
export function defineLicense(apply?: Apply): Workflow {
  return defineWorkflow('license', {
    sources: ['stripe'],
    initial: 'pending',
    states: { pending: {}, paid: { entitles: true } },
    transitions: { pending: ['paid'] },
    effects: { license: apply === undefined ? {} : { apply } },
  }).on('checkout.session.completed', {
    order: ({ event }) => orderId(event.data.object.client_reference_id),
    decide: ({ event, order }) => {
      const session = event.data.object
      return fulfill({
        to: 'paid',
        payment: {
          id: String(session.payment_intent),
          money: money(session.amount_total ?? 0, session.currency ?? ''),
        },
        effects: [{ type: 'license' }],
        entitle: [{ subject: order.subject, entitlement: 'pro' }],
      })
    },
  })
}

/** Hookledger with the bench's source over a pool. */
export function benchHookledger(
  pool: PoolLike,
  schema: string,
  options: Partial<Parameters<typeof createHookledger>[0]> = {},
): Hookledger {
  return createHookledger({
    database: pool,
    schema,
    environment: 'test',
    sources: { stripe: source },
    workflows: [defineLicense()],
    ...options,
  })
}
