/** A license for a payment; a refund takes it away. */
import {
  defineWorkflow,
  effect,
  fulfill,
  defer,
  money,
  name,
  names,
  orderId,
  waitFor,
} from 'hookledger'

export const sale = defineWorkflow('sale', {
  sources: ['stripe'],
  initial: 'pending',
  opens: 'event',
  accepts: ({ paid }) => paid.currency === 'USD' && paid.amount >= 4900n,
  states: { pending: {}, paid: { entitles: true }, refunded: {} },
  transitions: { pending: ['paid'], paid: ['refunded'] },
  effects: { license: {}, refund: {} },
})
  .on('checkout.session.completed', {
    order: ({ event }) => orderId(event.data.object.client_reference_id),
    learn: ({ event }) => [name('payment_intent', event.data.object.payment_intent)],
    decide: ({ event }) => {
      const { id, amount_total: amount, currency, customer_details: customer } = event.data.object
      return fulfill({
        to: 'paid',
        payment: { id, money: money(amount ?? 0, currency ?? '') },
        effects: [{ type: 'license' }],
        entitle: [{ subject: `email:${customer?.email ?? ''}`, entitlement: 'pro' }],
      })
    },
  })
  .on('refund.created', {
    order: ({ event }) => waitFor(names({ payment_intent: event.data.object.payment_intent })),
    decide: ({ event, effects }) => {
      if (!effects.some((each) => each.type === 'license'))
        return defer({ missing: effect('license') })
      const { id, amount, currency } = event.data.object
      return fulfill({
        to: 'refunded',
        effects: [{ type: 'refund', reference: id, amount: money(amount, currency) }],
      })
    },
  })
