/**
 * Subscriptions of organizations. Access is what the subscription says now, however late and in whatever order
 * its events come; what must happen once (credits of an invoice, a refund of them) is an effect under its own key.
 */
import { defineWorkflow, defer, effect, fulfill, reverse, skip } from 'hookledger'
import { contradict, idOf, money, paymentOf, paymentsOf, subscriptionMetadataOf } from 'hookledger'
import type { Effect } from 'hookledger'
import { addCredits, keepCredits, takeCredits } from './credits.ts'
import { receiptEmail, refundEmail } from './emails.ts'
import { histories } from './histories.ts'
import { subscription } from './plans.ts'

export const saas = defineWorkflow('saas', {
  sources: ['stripe'],
  opens: 'event',
  ...subscription.workflow,
  destinations: ['email'],
  effects: {
    payment: {},
    credits: { apply: addCredits },
    refund: { apply: takeCredits, reverse: keepCredits },
    chargeback: { apply: takeCredits },
  },
  // what Stripe collected for an invoice of ours is what it asked for
  accepts: () => true,
  histories,
})
  // any of these only says "look again"
  .mirror(subscription.types, subscription.mirror)
  .on('invoice.paid', {
    ...subscription.invoices,
    decide: ({ event, order }) => {
      const invoice = event.data.object
      const paid = money(invoice.amount_paid, invoice.currency)
      if (paid.amount === 0n) return skip('nothing was paid: a trial, or what was left over')
      const org = subscriptionMetadataOf(invoice)['org']
      if (org === undefined) return contradict('it names no organization', { invoice: invoice.id })
      const email = receiptEmail(order.id, invoice.customer_email, org, invoice.id, paid)
      const credited = {
        type: 'credits',
        reference: invoice.id,
        amount: paid,
        data: { org },
        send: [email],
      } as const
      // invoices of older API versions name their payment; today's `invoice_payment.paid` does
      const [payment] = paymentsOf(invoice)
      if (payment === undefined) return fulfill({ effects: [credited] })
      return fulfill({
        payment: { id: payment, money: paid },
        effects: [credited, paidBy(payment, invoice.id)],
      })
    },
  })
  .on('invoice_payment.paid', {
    ...subscription.invoicePayments,
    decide: ({ event }) => {
      const { invoice, amount_paid: amount, currency, ...rest } = event.data.object
      const payment = paymentOf(rest)
      const id = idOf(invoice)
      if (payment === null || id === null) return skip('it was paid outside of Stripe')
      return fulfill({
        payment: { id: payment, money: money(amount ?? 0, currency) },
        effects: [paidBy(payment, id)],
      })
    },
  })
  .on(['refund.created', 'refund.updated', 'refund.failed'], {
    ...subscription.payments,
    decide: ({ event, order, effects }) => {
      const { id, status, amount, currency } = event.data.object
      if (status === 'failed' || status === 'canceled')
        return reverse({ of: { type: 'refund', reference: id } })
      if (status !== 'succeeded') return skip(`the refund is ${status ?? 'not decided yet'}`)
      const bought = boughtBy(effects, paymentOf(event.data.object))
      if ('missing' in bought) return defer({ missing: effect(bought.missing, bought.of) })
      const refunded = money(amount, currency)
      const { org, invoice, payment } = bought
      const data = { org, invoice }
      const send = [refundEmail(order.id, org, invoice, id, refunded)]
      return fulfill({
        effects: [{ type: 'refund', reference: id, amount: refunded, payment, data, send }],
      })
    },
  })
  .on('charge.refunded', {
    ...subscription.payments,
    decide: () => skip('each refund has an event of its own'),
  })
  .on(['charge.dispute.created', 'charge.dispute.closed'], {
    ...subscription.payments,
    decide: ({ event, effects }) => {
      const { id, status, amount, currency } = event.data.object
      if (status !== 'lost') return skip(`the dispute is ${status}`)
      const bought = boughtBy(effects, paymentOf(event.data.object))
      if ('missing' in bought) return defer({ missing: effect(bought.missing, bought.of) })
      const lost = money(amount, currency)
      const { org, invoice } = bought
      const data = { org, invoice }
      return fulfill({ effects: [{ type: 'chargeback', reference: id, amount: lost, data }] })
    },
  })

/** The fact that connects a payment with the invoice that it paid. */
function paidBy(payment: string, invoice: string) {
  return { type: 'payment', reference: payment, data: { invoice } } as const
}

/** Whose credits a payment has bought, with which invoice. */
interface Bought {
  readonly org: string
  readonly invoice: string
  readonly payment: string
}

/** What has to be known first. */
interface Missing {
  readonly missing: 'payment' | 'credits'
  readonly of: string
}

/** The credits of the one invoice that a payment paid: no other invoice's are touched. */
function boughtBy(effects: readonly Effect[], payment: string | null): Bought | Missing {
  if (payment === null) throw new Error('it names no payment')
  const paid = effects.find((each) => each.type === 'payment' && each.reference === payment)
  if (paid === undefined) return { missing: 'payment', of: payment }
  const invoice = String(paid.data['invoice'])
  const credited = effects.find((each) => each.type === 'credits' && each.reference === invoice)
  if (credited === undefined) return { missing: 'credits', of: invoice }
  return { org: String(credited.data['org']), invoice, payment }
}
