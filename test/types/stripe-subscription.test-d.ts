/**
 * The ready part for Stripe's subscriptions fits into a workflow as its guide shows it: checked by the compiler.
 */
import {
  defineWorkflow,
  fulfill,
  move,
  skip,
  stripeSubscription,
  paymentOf,
  type SubscriptionState,
} from 'hookledger'
import { check, type Equal } from './expect.ts'

const subscription = stripeSubscription({
  plans: {
    team_monthly: ({ quantity }) => ({ entitlement: 'team', quantity }),
    pro_monthly: 'pro',
  },
  grace: { days: 3 },
  subject: ({ subscription: { metadata } }) => metadata['org'] && `org:${metadata['org']}`,
  claims: ({ metadata }) => metadata['org'] !== undefined,
})

defineWorkflow('saas', {
  sources: ['stripe'],
  opens: 'event',
  ...subscription.workflow,
  effects: { credits: {}, refund: {} },
})
  .mirror(subscription.types, subscription.mirror)
  .on('invoice.paid', {
    ...subscription.invoices,
    decide: ({ event, order: { state } }) => {
      check<Equal<typeof state, SubscriptionState>>()
      if (state === 'unseen') return skip('not looked at yet')
      return fulfill({ effects: [{ type: 'credits', reference: event.data.object.id }] })
    },
  })
  .on('invoice_payment.paid', { ...subscription.invoicePayments, decide: () => skip('known') })
  .on(['refund.created', 'refund.updated'], {
    ...subscription.payments,
    decide: ({ event, order }) =>
      move({
        to: order.state,
        once: {
          type: 'refund',
          reference: event.data.object.id,
          data: { payment: paymentOf(event.data.object) },
        },
      }),
  })

// states of the app's own may stand beside
defineWorkflow('more', {
  sources: ['stripe'],
  opens: 'event',
  initial: 'unseen',
  states: { ...subscription.workflow.states, frozen: {} },
  transitions: { ...subscription.workflow.transitions, active: ['frozen'] },
  effects: {},
}).mirror(subscription.types, subscription.mirror)

// @ts-expect-error a plan is an entitlement or a function
stripeSubscription({ plans: { pro_monthly: 1 } })
// @ts-expect-error Stripe has no such behavior
stripeSubscription({ plans: { pro_monthly: 'pro' }, pausedBy: ['voided'] })

// a source of another name has untyped events: the part fits all the same
defineWorkflow('second', {
  sources: ['stripe_eu'],
  opens: 'event',
  ...subscription.workflow,
  effects: { credits: {} },
})
  .mirror(subscription.types, subscription.mirror)
  .on('invoice.paid', { ...subscription.invoices, decide: () => skip('nothing') })
