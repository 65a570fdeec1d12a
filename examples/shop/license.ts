/**
 * One license an order, whichever of Stripe's events come, how often and in which order: the order's
 * state is a function of the facts that the ledger holds, so their order cannot matter.
 */
import {
  byName,
  contradict,
  defer,
  defineWorkflow,
  effect,
  fulfill,
  idOf,
  money,
  move,
  names,
  notOurs,
  orderId,
  reverse,
  skip,
  waitFor,
} from 'hookledger'
import { licenseEmail, refundEmail } from './emails.ts'
import { histories } from './histories.ts'
import { isFree, isListPrice } from './prices.ts'
import {
  isPaidAgain,
  stateOf,
  subjectOf,
  withEffect,
  withPayment,
  withReversal,
  type Facts,
} from './order-facts.ts'

/** `email:ada@example.com`, or nothing where no address was given. */
function emailSubject(email: string | null | undefined): string | undefined {
  return email === null || email === undefined || email === ''
    ? undefined
    : `email:${email.toLowerCase()}`
}

export const license = defineWorkflow('license', {
  sources: ['stripe'],
  initial: 'pending',
  opens: 'event',
  states: {
    pending: {},
    paid: { entitles: true },
    disputed: {},
    refunded: {},
    lost: {},
    canceled: {},
  },
  transitions: {
    pending: ['paid', 'disputed', 'lost', 'canceled'],
    canceled: ['paid', 'disputed', 'lost'],
    paid: ['disputed', 'refunded', 'lost'],
    disputed: ['paid', 'refunded', 'lost'],
    refunded: ['paid', 'disputed', 'lost'],
    lost: ['paid', 'disputed'],
  },
  destinations: ['email'],
  effects: {
    license: {},
    buyer: {},
    refund: {},
    disputeOpened: {},
    disputeClosed: {},
    expired: {},
  },
  accepts: ({ event, paid }) => isFree(event) || isListPrice(paid),
  compare: ({ event, paid, expected }) =>
    isFree(event) ||
    (isListPrice(paid) && paid.currency === expected.currency && paid.amount >= expected.amount),
  histories,
})
  .on(['checkout.session.completed', 'checkout.session.async_payment_succeeded'], {
    order: ({ event: { data } }) => orderOfSession(data.object),
    learn: ({ event: { data } }) =>
      names({ session: data.object.id, payment_intent: data.object.payment_intent }),
    decide: ({ event, order, payments, effects }) => {
      const session = event.data.object
      if (session.payment_status === 'unpaid') return skip('not paid yet')
      const email = emailSubject(session.customer_details?.email)
      const paid = {
        id: idOf(session.payment_intent) ?? session.id,
        money: money(session.amount_total ?? 0, session.currency ?? ''),
      }
      const buyer = {
        type: 'buyer',
        reference: session.id,
        data: { by: 'session', subject: email ?? null },
      } as const
      const facts = withEffect(withPayment({ payments, effects }, paid), buyer)
      const subject = order.subject ?? subjectOf(facts)
      return fulfill({
        to: stateOf(facts),
        payment: paid,
        effects: [{ type: 'license', send: [licenseEmail(order.id, subject, email)] }, buyer],
        ...(isPaidAgain({ payments, effects }, paid)
          ? { flag: { kind: 'paid_twice', figures: { payment: paid.id } } }
          : subject === undefined && {
              flag: { kind: 'buyer_unknown', figures: { session: session.id } },
            }),
        ...(subject !== undefined && { entitle: [{ subject, entitlement: 'pro' }] }),
      })
    },
  })
  .on('payment_intent.succeeded', {
    order: ({ event: { data } }) => {
      const intent = data.object
      if ('invoice' in intent && intent.invoice !== null) return notOurs('it pays an invoice')
      const id = intent.metadata['order_id']
      return id === undefined || id === '' ? byName('payment_intent', intent.id) : orderId(id)
    },
    learn: ({ event: { data } }) =>
      names({ payment_intent: data.object.id, charge: data.object.latest_charge }),
    unclaimed: 'ignore',
    decide: ({ event, order, payments, effects }) => {
      const intent = event.data.object
      const paid = { id: intent.id, money: money(intent.amount_received, intent.currency) }
      const known = { payments, effects }
      const email = emailSubject(intent.metadata['email'])
      // without an address the payment is recorded, and the session does the rest
      if (email === undefined)
        return fulfill({ to: stateOf(withPayment(known, paid)), payment: paid })
      const buyer = {
        type: 'buyer',
        reference: intent.id,
        data: { by: 'intent', subject: email },
      } as const
      const facts = withEffect(withPayment(known, paid), buyer)
      const subject = order.subject ?? subjectOf(facts) ?? email
      return fulfill({
        to: stateOf(facts),
        payment: paid,
        effects: [{ type: 'license', send: [licenseEmail(order.id, subject, email)] }, buyer],
        ...(isPaidAgain(known, paid) && {
          flag: { kind: 'paid_twice', figures: { payment: paid.id } },
        }),
        entitle: [{ subject, entitlement: 'pro' }],
      })
    },
  })
  .on('checkout.session.expired', {
    order: ({ event: { data } }) => orderOfSession(data.object),
    learn: ({ event: { data } }) => names({ session: data.object.id }),
    decide: ({ event, payments, effects }) => {
      const expired = { type: 'expired', reference: event.data.object.id } as const
      return move({ to: stateOf(withEffect({ payments, effects }, expired)), once: expired })
    },
  })
  .on(['refund.created', 'refund.updated', 'refund.failed'], {
    order: ({ event: { data } }) => orderOfCharge(data.object),
    learn: ({ event: { data } }) => names({ charge: data.object.charge }),
    decide: ({ event, order, payments, effects }) => {
      const { id, status, amount, currency, payment_intent: intent } = event.data.object
      const known = { payments, effects }
      if (status === 'failed' || status === 'canceled') {
        return reverse({
          of: { type: 'refund', reference: id },
          to: stateOf(withReversal(known, id)),
        })
      }
      if (status !== 'succeeded') return skip(`the refund is ${status ?? 'not decided yet'}`)
      const payment = idOf(intent) ?? onlyPayment(known)
      if (payment === undefined) return contradict('the refund names no payment', { refund: id })
      const refund = {
        type: 'refund',
        reference: id,
        amount: money(amount, currency),
        payment,
      } as const
      const email = refundEmail(order.id, order.subject ?? subjectOf(known), id, refund.amount)
      return fulfill({
        to: stateOf(withEffect(known, refund)),
        effects: [{ ...refund, send: [email] }],
      })
    },
  })
  .on('charge.refunded', {
    order: ({ event: { data } }) =>
      waitFor(names({ charge: data.object.id, payment_intent: data.object.payment_intent })),
    decide: () => skip('each refund has an event of its own'),
  })
  .on('charge.dispute.created', {
    order: ({ event: { data } }) => orderOfCharge(data.object),
    learn: ({ event: { data } }) => names({ charge: data.object.charge }),
    decide: ({ event, payments, effects }) => {
      const { id, payment_intent: intent } = event.data.object
      const opened = {
        type: 'disputeOpened',
        reference: id,
        data: { payment: idOf(intent) },
      } as const
      return move({ to: stateOf(withEffect({ payments, effects }, opened)), once: opened })
    },
  })
  .on('charge.dispute.closed', {
    order: ({ event: { data } }) => orderOfCharge(data.object),
    learn: ({ event: { data } }) => names({ charge: data.object.charge }),
    decide: ({ event, payments, effects }) => {
      const { id, status, payment_intent: intent } = event.data.object
      const opened = effects.some((each) => each.type === 'disputeOpened' && each.reference === id)
      if (!opened) return defer({ missing: effect('disputeOpened', id) })
      const closed = {
        type: 'disputeClosed',
        reference: id,
        data: { outcome: status === 'lost' ? 'lost' : 'won', payment: idOf(intent) },
      } as const
      return move({ to: stateOf(withEffect({ payments, effects }, closed)), once: closed })
    },
  })

interface SessionLike {
  readonly id: string
  readonly mode?: string
  readonly client_reference_id: string | null
  readonly metadata: Readonly<Record<string, string>> | null
  readonly payment_intent: Parameters<typeof idOf>[0]
}

function orderOfSession(session: SessionLike): ReturnType<typeof orderId> {
  if (session.mode !== undefined && session.mode !== 'payment')
    return notOurs(`its mode is ${session.mode}`)
  const id = session.client_reference_id ?? session.metadata?.['order_id']
  if (id !== undefined && id !== '') return orderId(id)
  return waitFor(names({ session: session.id, payment_intent: session.payment_intent }))
}

/** Refunds and disputes name their charge and, mostly, its payment intent. */
function orderOfCharge(of: {
  readonly charge?: Parameters<typeof idOf>[0]
  readonly payment_intent?: Parameters<typeof idOf>[0]
}): ReturnType<typeof orderId> {
  return waitFor(names({ payment_intent: of.payment_intent, charge: of.charge }))
}

function onlyPayment({ payments }: Facts): string | undefined {
  return payments.length === 1 ? payments[0]?.id : undefined
}
