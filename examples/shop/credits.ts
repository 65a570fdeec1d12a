/**
 * Credits for subscriptions, in the shop's own table: one for each whole unit of currency of every
 * invoice paid. The invoice is the key, so that no redelivery and no second event can credit it twice.
 */
import { creditHistories } from './histories.ts'
import {
  defineWorkflow,
  fulfill,
  idOf,
  money,
  notOurs,
  orderId,
  skip,
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
    credits: {
      // runs in the same transaction as the effect's row: both or none
      apply: async ({ db, effect }) => {
        await db.query(
          `insert into shop.accounts as a (account_id, credits) values ($1, $2::bigint)
           on conflict (account_id) do update set credits = a.credits + excluded.credits`,
          [effect.data['account'], effect.data['credits']],
        )
      },
    },
  },
}).on('invoice.paid', {
  order: ({ event: { data } }) => {
    const subscription = subscriptionOf(data.object)
    if (subscription === null) return notOurs('it is not of a subscription')
    if (accountOf(data.object) === undefined) return notOurs('it names no account of the shop')
    return orderId(subscription)
  },
  decide: ({ event: { data } }) => {
    const paid = money(data.object.amount_paid, data.object.currency)
    const earned = wholeUnits(paid)
    if (earned === 0n) return skip('nothing was paid')
    return fulfill({
      to: 'open',
      effects: [
        {
          type: 'credits',
          reference: data.object.id,
          amount: paid,
          data: { account: accountOf(data.object), credits: earned.toString() },
        },
      ],
    })
  },
})

interface InvoiceLike {
  readonly parent?: {
    readonly subscription_details?: {
      readonly subscription?: Parameters<typeof idOf>[0]
      readonly metadata?: Readonly<Record<string, string>> | null
    } | null
  } | null
  readonly metadata?: Readonly<Record<string, string>> | null
}

/** Today's invoices name their subscription in `parent`, older ones on top. */
function subscriptionOf(invoice: InvoiceLike): string | null {
  const older =
    'subscription' in invoice ? (invoice.subscription as Parameters<typeof idOf>[0]) : null
  return idOf(invoice.parent?.subscription_details?.subscription) ?? idOf(older)
}

function accountOf(invoice: InvoiceLike): string | undefined {
  return (
    invoice.metadata?.['account_id'] ??
    invoice.parent?.subscription_details?.metadata?.['account_id']
  )
}
