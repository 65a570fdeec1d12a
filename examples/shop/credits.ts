/**
 * Credits for subscriptions, in the shop's own tables: one for each whole unit of currency of every invoice
 * paid. The invoice is the key, so that no redelivery and no second event can credit it twice; a refund takes
 * back the credits of the invoice that it refunds, and of no other.
 */
import { addCredits, keepCredits, takeCredits } from './credit-entries.ts'
import { creditHistories } from './histories.ts'
import {
  defer,
  defineWorkflow,
  effect,
  fulfill,
  idOf,
  money,
  name,
  notOurs,
  orderId,
  paymentOf,
  paymentsOf,
  reverse,
  skip,
  stripeNames,
  subscriptionMetadataOf,
  subscriptionOf,
  waitFor,
  wholeUnits,
} from 'hookledger'

export const credits = defineWorkflow('credits', {
  sources: ['stripe'],
  initial: 'open',
  opens: 'event',
  states: { open: {} },
  transitions: {},
  // whatever an invoice of ours says was paid is good: it is credited as it is
  accepts: () => true,
  histories: creditHistories,
  effects: {
    // run in the same transaction as the effect's row: both or none
    credits: { apply: addCredits },
    payment: {},
    refund: { apply: takeCredits, reverse: keepCredits },
  },
})
  .on('invoice.paid', {
    order: ({ event: { data } }) => {
      const subscription = subscriptionOf(data.object)
      if (subscription === null) return notOurs('it is not of a subscription')
      if (accountOf(data.object) === undefined) return notOurs('it names no account of the shop')
      return orderId(subscription)
    },
    learn: ({ event: { data } }) => stripeNames(data.object),
    decide: ({ event: { data } }) => {
      const paid = money(data.object.amount_paid, data.object.currency)
      // invoices of older versions of Stripe's API name what paid them; `invoice_payment.paid` does today
      const payments = paymentsOf(data.object).map((id) => paidBy(id, data.object.id))
      if (wholeUnits(paid) === 0n) {
        return payments.length === 0 ? skip('nothing was paid') : fulfill({ effects: payments })
      }
      const account = accountOf(data.object)
      const credited = wholeUnits(paid).toString()
      const facts = { account, credits: credited }
      const { id: reference } = data.object
      return fulfill({
        to: 'open',
        effects: [{ type: 'credits', reference, amount: paid, data: facts }, ...payments],
      })
    },
  })
  .on('invoice_payment.paid', {
    order: ({ event: { data } }) => waitFor([name('invoice', data.object.invoice)]),
    learn: ({ event: { data } }) => stripeNames(data.object),
    // invoices that are none of the shop's have payments too
    unclaimed: 'ignore',
    unclaimedAfterMs: 60_000,
    decide: ({ event: { data } }) => {
      const invoice = idOf(data.object.invoice)
      const payment = paymentOf({ payment: data.object.payment })
      if (invoice === null || payment === null) return skip('it was paid outside of Stripe')
      return fulfill({ effects: [paidBy(payment, invoice)] })
    },
  })
  .on(['refund.created', 'refund.updated', 'refund.failed'], {
    order: ({ event: { data } }) => waitFor(stripeNames(data.object)),
    unclaimed: 'ignore',
    decide: ({ event: { data }, effects }) => {
      const { id: reference, status, amount, currency } = data.object
      if (status === 'failed' || status === 'canceled')
        return reverse({ of: { type: 'refund', reference } })
      if (status !== 'succeeded') return skip(`the refund is ${status ?? 'not decided yet'}`)
      const payment = paymentOf(data.object) ?? ''
      const paid = effects.find((each) => each.type === 'payment' && each.reference === payment)
      if (paid === undefined) return defer({ missing: effect('payment', payment) })
      const { invoice } = paid.data
      return fulfill({
        effects: [
          { type: 'refund', reference, amount: money(amount, currency), data: { invoice } },
        ],
      })
    },
  })

/** The fact that connects a payment with the invoice that it paid. */
function paidBy(payment: string, invoice: string) {
  return { type: 'payment', reference: payment, data: { invoice } } as const
}

function accountOf(
  invoice: Parameters<typeof subscriptionMetadataOf>[0] & {
    readonly metadata?: Readonly<Record<string, string>> | null
  },
): string | undefined {
  return invoice.metadata?.['account_id'] ?? subscriptionMetadataOf(invoice)['account_id']
}
