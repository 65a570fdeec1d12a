/** Histories that Stripe can produce for one subscription: what the start check and the drills play in every order. */
import {
  chargeDisputeClosed,
  chargeDisputeCreated,
  chargeRefunded,
  invoicePaid,
  invoicePaymentPaid,
  refundCreated,
  refundFailed,
  subscription,
  subscriptionCreated,
  subscriptionDeleted,
  subscriptionUpdated,
} from 'hookledger/testing'

const metadata = { org: 'h1' }
const id = 'sub_h1'
const team = { id, metadata, price: 'team_monthly', quantity: 5 }

/** One invoice of it, and the payment that paid it. */
function paid(invoice: string, paymentIntent: string, amount = 2000): object[] {
  return [
    invoicePaid({ id: invoice, subscription: id, subscriptionMetadata: metadata, amount }),
    invoicePaymentPaid({ invoice, paymentIntent, amount }),
  ]
}

const refund = { id: 're_h1', paymentIntent: 'pi_january', amount: 2000 }
const present = (now: object | null) => ({ [`subscription ${id}`]: now })

export const histories = [
  {
    name: 'begun, and its first invoice refunded',
    events: [
      subscriptionCreated({ ...team, status: 'incomplete' }),
      ...paid('in_january', 'pi_january'),
      refundCreated(refund),
      chargeRefunded({ paymentIntent: 'pi_january', amount: 2000 }),
    ],
    // the event that said so is still on its way
    present: present(subscription(team)),
  },
  {
    name: 'a refund that failed',
    events: [...paid('in_january', 'pi_january'), refundCreated(refund), refundFailed(refund)],
  },
  {
    name: 'past due in the second it was renewed, and paid after all',
    events: [
      subscriptionUpdated(team),
      subscriptionUpdated({ ...team, status: 'past_due' }),
      ...paid('in_february', 'pi_february'),
      subscriptionUpdated({ ...team, eventId: 'evt_h1_paid' }),
    ],
  },
  {
    name: 'from a trial to another plan, canceled at the end of its period',
    events: [
      subscriptionCreated({ ...team, status: 'trialing', trialEnd: 1_768_435_200 }),
      subscriptionUpdated({ ...team, price: 'pro_monthly', quantity: 1 }),
      subscriptionUpdated({ ...team, price: 'pro_monthly', quantity: 1, cancelAtPeriodEnd: true }),
      subscriptionDeleted({ ...team, price: 'pro_monthly', quantity: 1, cancelAtPeriodEnd: true }),
    ],
  },
  {
    name: 'a dispute that was lost, and a subscription that is no more',
    events: [
      subscriptionUpdated(team),
      ...paid('in_january', 'pi_january'),
      chargeDisputeCreated({ id: 'du_h1', paymentIntent: 'pi_january', amount: 2000 }),
      chargeDisputeClosed({
        id: 'du_h1',
        paymentIntent: 'pi_january',
        amount: 2000,
        status: 'lost',
      }),
    ],
    present: present(null),
  },
]
