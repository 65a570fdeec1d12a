/** Histories that Stripe can produce for one order: what the start check and the drills play in every order. */
import {
  chargeDisputeClosed,
  chargeDisputeCreated,
  checkoutSessionCompleted,
  checkoutSessionExpired,
  invoicePaid,
  invoicePaymentPaid,
  paymentIntentSucceeded,
  refundCreated,
  refundFailed,
} from 'hookledger/testing'

const order = 'h-1'
const first = { order, attempt: 1 }
const second = { order, attempt: 2 }

export const histories = [
  { name: 'bought', events: [paymentIntentSucceeded(first), checkoutSessionCompleted(first)] },
  {
    name: 'refunded in parts',
    events: [
      paymentIntentSucceeded(first),
      checkoutSessionCompleted(first),
      refundCreated({ ...first, id: 're_part_1', amount: 1900 }),
      refundCreated({ ...first, id: 're_part_2', amount: 3000 }),
    ],
  },
  {
    name: 'a refund that failed',
    events: [
      checkoutSessionCompleted(first),
      refundCreated({ ...first, id: 're_failed' }),
      refundFailed({ ...first, id: 're_failed' }),
    ],
  },
  {
    name: 'disputed and won',
    events: [
      paymentIntentSucceeded(first),
      checkoutSessionCompleted(first),
      chargeDisputeCreated({ ...first, id: 'du_won' }),
      chargeDisputeClosed({ ...first, id: 'du_won', status: 'won' }),
    ],
  },
  {
    name: 'disputed and lost',
    events: [
      checkoutSessionCompleted(first),
      chargeDisputeCreated({ ...first, id: 'du_lost' }),
      chargeDisputeClosed({ ...first, id: 'du_lost', status: 'lost' }),
    ],
  },
  {
    name: 'expired, then paid twice',
    events: [
      checkoutSessionExpired({ order, attempt: 3 }),
      checkoutSessionCompleted(first),
      paymentIntentSucceeded(first),
      checkoutSessionCompleted(second),
      paymentIntentSucceeded(second),
    ],
  },
]

const subscription = 'sub_h1'
const january = { id: 'in_january', subscription, metadata: { account_id: 'acc_1' }, amount: 2000 }

const february = { ...january, id: 'in_february' }
const paidBy = (invoice: string, paymentIntent: string) => ({
  invoice,
  paymentIntent,
  amount: 2000,
})
const refund = { id: 're_january', paymentIntent: 'pi_january', amount: 2000 }

/** Histories of one subscription's invoices. */
export const creditHistories = [
  {
    name: 'two months and a free one',
    events: [
      invoicePaid(january),
      invoicePaid({ ...january, id: 'in_february' }),
      invoicePaid({ ...january, id: 'in_march', amount: 0 }),
    ],
  },
  {
    name: 'one month of two refunded',
    events: [
      invoicePaid(january),
      invoicePaymentPaid(paidBy('in_january', 'pi_january')),
      invoicePaid(february),
      invoicePaymentPaid(paidBy('in_february', 'pi_february')),
      refundCreated(refund),
    ],
  },
  {
    name: 'refunded in parts, and one of them failed',
    events: [
      invoicePaid(january),
      invoicePaymentPaid(paidBy('in_january', 'pi_january')),
      refundCreated({ ...refund, amount: 950 }),
      refundCreated({ ...refund, id: 're_rest', amount: 1050 }),
      refundFailed({ ...refund, id: 're_rest', amount: 1050 }),
    ],
  },
]
