/** What `hookledger init` writes: a configuration and a first workflow, small and right. */

/** A file to be written, relative to the project. */
export interface InitFile {
  readonly path: string
  readonly content: string
}

const config = `/** Hookledger's configuration: one object, used by your app and by the command line alike. */
import { createHookledger, stripe } from 'hookledger'
import { purchase } from './workflows/purchase.ts'

export const hookledger = createHookledger({
  // database: your own pg.Pool; without it DATABASE_URL, or the database of a running \`hookledger dev\`
  environment: 'test',
  sources: {
    // deliveries go to /webhooks/stripe; \`hookledger dev\` has a secret of its own
    stripe: stripe({ signingSecrets: [process.env['STRIPE_WEBHOOK_SECRET']] }),
  },
  workflows: [purchase],
})

export default hookledger
`

const workflow = `/** A purchase: paid once, however many events say so; refunded when refunds reach what was paid. */
import { byName, defineWorkflow, fulfill, idOf, money, move, names, notOurs, orderId, skip } from 'hookledger'

export const purchase = defineWorkflow('purchase', {
  sources: ['stripe'],
  initial: 'pending',
  opens: 'event',
  states: { pending: {}, paid: { entitles: true }, refunded: {} },
  transitions: { pending: ['paid'], paid: ['refunded'] },
  effects: { license: {}, refund: {} },
  // asked of every payment of an order that your app opened without a price
  accepts: ({ paid }) => paid.currency === 'USD' && paid.amount >= 4900n,
})
  .on('checkout.session.completed', {
    order: ({ event }) => {
      const id = event.data.object.client_reference_id
      return id ? orderId(id) : notOurs('the session names no order')
    },
    learn: ({ event }) => names({ payment_intent: event.data.object.payment_intent }),
    decide: ({ event }) => {
      const session = event.data.object
      const email = session.customer_details?.email
      if (session.payment_status !== 'paid') return skip('the session is not paid')
      if (!email) return skip('nobody to give the license to')
      return fulfill({
        to: 'paid',
        payment: {
          id: idOf(session.payment_intent) ?? session.id,
          money: money(session.amount_total ?? 0, session.currency ?? ''),
        },
        effects: [{ type: 'license' }],
        entitle: [{ subject: \`email:\${email.toLowerCase()}\`, entitlement: 'pro' }],
      })
    },
  })
  .on('refund.created', {
    // waits until a session has told which order the payment belongs to
    order: ({ event }) => byName('payment_intent', event.data.object.payment_intent),
    decide: ({ event, payments, effects }) => {
      const refund = event.data.object
      const payment = idOf(refund.payment_intent) ?? ''
      if (refund.status !== 'succeeded') return skip(\`the refund is \${refund.status}\`)
      const captured = payments.find((each) => each.id === payment)?.amount ?? 0n
      const before = effects
        .filter((each) => each.type === 'refund' && each.payment === payment && !each.reversed && each.reference !== refund.id)
        .reduce((sum, each) => sum + (each.amount ?? 0n), 0n)
      return move({
        to: before + BigInt(refund.amount) >= captured ? 'refunded' : 'paid',
        once: { type: 'refund', reference: refund.id, amount: money(refund.amount, refund.currency), payment },
      })
    },
  })
`

/** The files, the configuration first. */
export const initFiles: readonly InitFile[] = [
  { path: 'hookledger.config.ts', content: config },
  { path: 'workflows/purchase.ts', content: workflow },
]
