/**
 * A ready part of a workflow for Stripe's subscriptions: an order is one subscription, its state is Stripe's
 * status as it is now, and what it entitles to follows its prices. What is not known leaves access as it was.
 */
import type Stripe from 'stripe'
import type { FetchInput } from '../../workflow/gathering.ts'
import type { Name } from '../../workflow/order.ts'
import { name, notOurs, orderId, waitFor, type Resolution } from '../../workflow/resolution.ts'
import {
  stripeNames,
  subscriptionMetadataOf,
  subscriptionOf,
  type InvoiceLike,
  type InvoicePaymentLike,
  type PaymentLike,
} from '../stripe-names.ts'
import {
  customerToLink,
  decideSubscription,
  type SubscriptionDecision,
  type SubscriptionInput,
} from './decide.ts'
import { fetchSubscription } from './look.ts'
import {
  checkSubscriptionOptions,
  type StripeSubscriptionOptions,
  type SubscriptionHint,
} from './options.ts'
import { subscriptionStates, type SubscriptionStates } from './states.ts'

/** An event of Stripe's, also where the source's name gives it no types. */
export interface Carrying {
  readonly event: { readonly data: unknown }
}

/** How events find their order: to be spread into a handler, beside its `decide`. */
export interface Correlation {
  readonly order: (input: Carrying) => Resolution
  readonly learn: (input: Carrying) => readonly Name[]
  readonly unclaimed: 'ignore'
  readonly unclaimedAfterMs?: number
}

/** The events that say "look again". */
export type SubscriptionEventType =
  | 'customer.subscription.created'
  | 'customer.subscription.updated'
  | 'customer.subscription.deleted'
  | 'customer.subscription.paused'
  | 'customer.subscription.resumed'
  | 'customer.subscription.pending_update_applied'
  | 'customer.subscription.pending_update_expired'

/** The mirror of a subscription, for `.mirror(types, mirror)`. */
export interface SubscriptionMirror extends Correlation {
  readonly object: (input: Carrying) => Name
  readonly fetch: (input: FetchInput) => Promise<Stripe.Subscription | null>
  readonly customer: (
    input: Carrying & { readonly current: Stripe.Subscription | null },
  ) => string | null
  readonly decide: (input: SubscriptionInput) => SubscriptionDecision
}

/** What `stripeSubscription()` answers: the parts of a workflow. */
export interface StripeSubscription {
  /** States and transitions, to be spread into `defineWorkflow`. */
  readonly workflow: SubscriptionStates
  readonly types: readonly SubscriptionEventType[]
  readonly mirror: SubscriptionMirror
  /** For `invoice.…`: the order is the subscription that the invoice bills. */
  readonly invoices: Correlation
  /** For `invoice_payment.paid`: which payment paid which invoice. */
  readonly invoicePayments: Correlation
  /** For refunds, disputes, charges and payment intents: the order is the one whose payment it was. */
  readonly payments: Correlation
}

const types: readonly SubscriptionEventType[] = Object.freeze([
  'customer.subscription.created',
  'customer.subscription.updated',
  'customer.subscription.deleted',
  'customer.subscription.paused',
  'customer.subscription.resumed',
  'customer.subscription.pending_update_applied',
  'customer.subscription.pending_update_expired',
] satisfies SubscriptionEventType[])

/**
 * The parts of a workflow that follows Stripe's subscriptions.
 *
 * @throws HookledgerError HKL_WORKFLOW_INVALID naming the option that cannot be
 * @example
 * const subscription = stripeSubscription({ plans: { pro_monthly: 'pro' }, grace: { days: 3 } })
 * defineWorkflow('saas', { sources: ['stripe'], opens: 'event', ...subscription.workflow, effects: {} })
 *   .mirror(subscription.types, subscription.mirror)
 */
export function stripeSubscription(options: StripeSubscriptionOptions): StripeSubscription {
  checkSubscriptionOptions(options)
  const claimed = (hint: SubscriptionHint): Resolution =>
    options.claims === undefined || options.claims(hint)
      ? orderId(hint.id)
      : // without its mark it may be ours all the same: it had one before, or got one since
        waitFor([name('subscription', hint.id)])
  return Object.freeze({
    workflow: subscriptionStates,
    types,
    mirror: mirrorOf(options, claimed),
    invoices: foreignSoon<InvoiceLike>((invoice) => {
      const id = subscriptionOf(invoice)
      if (id === null) return notOurs('it bills no subscription')
      return claimed({ id, metadata: subscriptionMetadataOf(invoice) })
    }),
    invoicePayments: foreignSoon<InvoicePaymentLike>(({ invoice }) =>
      waitFor([name('invoice', invoice)]),
    ),
    payments: correlation<PaymentLike>((payment) => waitFor(stripeNames(payment))),
  })
}

function mirrorOf(
  options: StripeSubscriptionOptions,
  claimed: (hint: SubscriptionHint) => Resolution,
): SubscriptionMirror {
  return Object.freeze({
    ...foreignSoon<Stripe.Subscription>(({ id, metadata }) =>
      claimed({ id, metadata: metadata ?? {} }),
    ),
    object: ({ event }: Carrying) => name('subscription', objectOf<Stripe.Subscription>(event).id),
    fetch: (input: FetchInput) => fetchSubscription(input as FetchInput<Stripe>),
    customer: ({ current }: { readonly current: Stripe.Subscription | null }) =>
      customerToLink(options, current),
    decide: (input: SubscriptionInput) => decideSubscription(options, input),
  })
}

/**
 * An account has many subscriptions that are none of ours: their events are soon ignored, and woken all the same
 * by a name that comes later.
 */
function foreignSoon<Object extends object>(resolve: (object: Object) => Resolution): Correlation {
  return Object.freeze({ ...correlation(resolve), unclaimedAfterMs: 60_000 })
}

function correlation<Object extends object>(resolve: (object: Object) => Resolution): Correlation {
  return Object.freeze({
    order: ({ event }: Carrying) => resolve(objectOf<Object>(event)),
    learn: ({ event }: Carrying) => stripeNames(objectOf(event)),
    unclaimed: 'ignore' as const,
  })
}

function objectOf<Object extends object>({ data }: Carrying['event']): Object {
  return (data as { readonly object: Object }).object
}
