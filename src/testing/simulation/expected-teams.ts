/**
 * What the app's database must say of subscriptions in the end, worked out from the provider's own objects
 * alone: from their present state, and from every invoice, refund and dispute that there ever was.
 */
import type Stripe from 'stripe'
import type { StripeVerbs } from '../stripe-double/verbs.ts'

/** What must be true of one subscription. */
export interface ExpectedSubscription {
  readonly id: string
  readonly org: string
  /** Stripe's status. */
  readonly state: string
}

/** What must be true of one organization. */
export interface ExpectedTeam {
  readonly org: string
  /** Quantity by entitlement, over all of its subscriptions. */
  readonly entitlements: ReadonlyMap<string, number>
  /** Whole units of what is left of every paid invoice after refunds and lost disputes. */
  readonly credits: number
  /** Invoices that gave credits, and refunds that took some: an email each. */
  readonly receipts: number
  readonly refunds: number
}

/** What must be true of all subscriptions that name an organization. */
export interface ExpectedTeams {
  readonly subscriptions: readonly ExpectedSubscription[]
  readonly teams: readonly ExpectedTeam[]
}

/** Past due, access goes on for so long after the start of the unpaid period, in seconds. */
const graceSeconds = 3 * 86_400

/** What the provider's objects say at this moment (milliseconds since 1970), of these organizations or of all. */
export function expectedTeams(
  double: StripeVerbs,
  nowMs: number,
  orgs?: ReadonlySet<string>,
): ExpectedTeams {
  const subscriptions = double
    .all('subscription')
    .filter(({ metadata: { org } }) => org !== undefined && (orgs === undefined || orgs.has(org)))
  const names = [...new Set(subscriptions.map(orgOf))]
  return {
    subscriptions: subscriptions.map((each) => ({
      id: each.id,
      org: orgOf(each),
      state: each.status,
    })),
    teams: names.map((org) => {
      const own = subscriptions.filter((each) => orgOf(each) === org)
      return { org, entitlements: entitled(own, nowMs / 1000), ...money(double, own) }
    }),
  }
}

function orgOf(subscription: Stripe.Subscription): string {
  return subscription.metadata['org']!
}

function entitled(
  subscriptions: readonly Stripe.Subscription[],
  now: number,
): ReadonlyMap<string, number> {
  const found = new Map<string, number>()
  for (const subscription of subscriptions) {
    if (!servesAt(subscription, now)) continue
    for (const { price, quantity = 1 } of subscription.items.data) {
      if (price.lookup_key === 'team_monthly')
        found.set('team', (found.get('team') ?? 0) + quantity)
      if (price.lookup_key === 'pro_monthly') found.set('pro', 1)
    }
  }
  return found
}

function servesAt(subscription: Stripe.Subscription, now: number): boolean {
  const { status, cancel_at: ends } = subscription
  if (ends !== null && ends <= now) return false
  if (status !== 'past_due') return status === 'active' || status === 'trialing'
  return now < subscription.items.data[0]!.current_period_start + graceSeconds
}

function money(double: StripeVerbs, subscriptions: readonly Stripe.Subscription[]) {
  const ids = new Set(subscriptions.map((each) => each.id))
  const paid = double
    .all('invoice')
    .filter((invoice) => ids.has(String(invoice.parent?.subscription_details?.subscription)))
    .filter((invoice) => invoice.status === 'paid' && invoice.amount_paid > 0)
  const payments = double.all('invoice_payment')
  const left = paid.map((invoice) => {
    const intents = payments
      .filter((payment) => payment.invoice === invoice.id)
      .map((payment) => String(payment.payment.payment_intent))
    const isOf = (of: { payment_intent: unknown }) => intents.includes(String(of.payment_intent))
    const refunds = double.all('refund').filter(isOf)
    const stand = refunds.filter((refund) => refund.status === 'succeeded')
    const lost = double.all('dispute').filter((each) => isOf(each) && each.status === 'lost')
    const taken = [...stand, ...lost].reduce((sum, each) => sum + each.amount, 0)
    // organizations pay in a currency of a hundred minor units
    const credits = Math.max(0, Math.floor((invoice.amount_paid - taken) / 100))
    return { credits, refunds: stand.length }
  })
  return {
    credits: left.reduce((sum, each) => sum + each.credits, 0),
    receipts: paid.length,
    refunds: left.reduce((sum, each) => sum + each.refunds, 0),
  }
}
