/**
 * The verbs of the state machine as methods, bound to one account: what a test or the simulation calls
 * to make something happen at the provider.
 */
import type Stripe from 'stripe'
import * as billing from './billing-verbs.ts'
import * as catalog from './catalog-verbs.ts'
import * as checkout from './checkout-verbs.ts'
import * as disputes from './dispute-verbs.ts'
import * as invoices from './invoice-verbs.ts'
import type { ObjectKind, ObjectKinds } from './object-kinds.ts'
import type { ObjectState } from './object-state.ts'
import * as payments from './payment-verbs.ts'
import * as refunds from './refund-verbs.ts'
import * as changes from './subscription-changes.ts'
import type { Transaction } from './transaction.ts'

type Bound<Verb> = Verb extends (tx: Transaction, ...rest: infer Rest) => infer Result
  ? (...rest: Rest) => Result
  : never

/** Everything that can happen in one account, and what can be read of it. */
export interface StripeVerbs {
  /** The id of the account. */
  readonly account: string
  /** The object as it is now, frozen. */
  find<K extends ObjectKind>(kind: K, id: string): ObjectKinds[K] | undefined
  /** All objects of a kind as they are now, oldest first, without the lag of the API's lists. */
  all<K extends ObjectKind>(kind: K): ObjectKinds[K][]
  createCustomer: Bound<typeof catalog.createCustomer>
  updateCustomer: Bound<typeof catalog.updateCustomer>
  createProduct: Bound<typeof catalog.createProduct>
  createPrice: Bound<typeof catalog.createPrice>
  createSession: Bound<typeof checkout.createSession>
  completeSession: Bound<typeof checkout.completeSession>
  asyncPaymentSucceeded: Bound<typeof checkout.asyncPaymentSucceeded>
  asyncPaymentFailed: Bound<typeof checkout.asyncPaymentFailed>
  expireSession: Bound<typeof checkout.expireSession>
  createPaymentIntent: Bound<typeof payments.createPaymentIntent>
  payPaymentIntent: Bound<typeof payments.payPaymentIntent>
  settlePaymentIntent: Bound<typeof payments.settlePaymentIntent>
  cancelPaymentIntent: Bound<typeof payments.cancelPaymentIntent>
  updatePaymentIntent: Bound<typeof payments.updatePaymentIntent>
  refund: Bound<typeof refunds.refund>
  succeedRefund: Bound<typeof refunds.succeedRefund>
  failRefund: Bound<typeof refunds.failRefund>
  cancelRefund: Bound<typeof refunds.cancelRefund>
  referenceRefund: Bound<typeof refunds.referenceRefund>
  updateRefund: Bound<typeof refunds.updateRefund>
  openDispute: Bound<typeof disputes.openDispute>
  closeDispute: Bound<typeof disputes.closeDispute>
  createSubscription: Bound<typeof billing.createSubscription>
  renewSubscription: Bound<typeof billing.renewSubscription>
  changeSubscription: Bound<typeof changes.changeSubscription>
  cancelAtPeriodEnd: Bound<typeof changes.cancelAtPeriodEnd>
  pauseSubscription: Bound<typeof changes.pauseSubscription>
  resumeSubscription: Bound<typeof changes.resumeSubscription>
  announceTrialEnd: Bound<typeof billing.announceTrialEnd>
  giveUpPayment: Bound<typeof billing.giveUpPayment>
  expireSubscription: Bound<typeof billing.expireSubscription>
  cancelSubscription: Bound<typeof billing.cancelSubscription>
  payInvoice: Bound<typeof invoices.payInvoice>
  voidInvoice: Bound<typeof invoices.voidInvoice>
  /** Makes an event of any type about any object: what the provider invents, or what nobody handles. */
  emit: Bound<typeof emit>
}

type Verb = (tx: Transaction, ...rest: never[]) => unknown

const verbs: { [Name in Exclude<keyof StripeVerbs, 'account' | 'find' | 'all'>]: Verb } = {
  createCustomer: catalog.createCustomer,
  updateCustomer: catalog.updateCustomer,
  createProduct: catalog.createProduct,
  createPrice: catalog.createPrice,
  createSession: checkout.createSession,
  completeSession: checkout.completeSession,
  asyncPaymentSucceeded: checkout.asyncPaymentSucceeded,
  asyncPaymentFailed: checkout.asyncPaymentFailed,
  expireSession: checkout.expireSession,
  createPaymentIntent: payments.createPaymentIntent,
  payPaymentIntent: payments.payPaymentIntent,
  settlePaymentIntent: payments.settlePaymentIntent,
  cancelPaymentIntent: payments.cancelPaymentIntent,
  updatePaymentIntent: payments.updatePaymentIntent,
  refund: refunds.refund,
  succeedRefund: refunds.succeedRefund,
  failRefund: refunds.failRefund,
  cancelRefund: refunds.cancelRefund,
  referenceRefund: refunds.referenceRefund,
  updateRefund: refunds.updateRefund,
  openDispute: disputes.openDispute,
  closeDispute: disputes.closeDispute,
  createSubscription: billing.createSubscription,
  renewSubscription: billing.renewSubscription,
  changeSubscription: changes.changeSubscription,
  cancelAtPeriodEnd: changes.cancelAtPeriodEnd,
  pauseSubscription: changes.pauseSubscription,
  resumeSubscription: changes.resumeSubscription,
  announceTrialEnd: billing.announceTrialEnd,
  giveUpPayment: billing.giveUpPayment,
  expireSubscription: billing.expireSubscription,
  cancelSubscription: billing.cancelSubscription,
  payInvoice: invoices.payInvoice,
  voidInvoice: invoices.voidInvoice,
  emit,
}

/** Binds the verbs to an account of the state. */
export function bindVerbs(state: ObjectState, account: string): StripeVerbs {
  const bound: Record<string, unknown> = {
    account,
    find: (kind: ObjectKind, id: string) => state.find(account, kind, id),
    all: (kind: ObjectKind) => state.records(account, kind).map((record) => record.object),
  }
  const byItself = { requestId: null, idempotencyKey: null }
  for (const [name, verb] of Object.entries(verbs)) {
    const call = verb as (tx: Transaction, ...rest: unknown[]) => unknown
    bound[name] = (...rest: unknown[]) =>
      state.transact(account, byItself, (tx) => call(tx, ...rest))
  }
  return bound as unknown as StripeVerbs
}

function emit(
  tx: Transaction,
  type: string,
  object: { id?: string; object: string },
): Stripe.Event {
  return tx.emit(type, object)
}
