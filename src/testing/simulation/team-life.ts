/**
 * The life of one organization's subscription at the provider, months in seconds: each step happens at a moment
 * of simulated time, and the periods are dated back so that the last of them is the present one.
 */
import type Stripe from 'stripe'
import type { Random } from '../stripe-double/random.ts'
import type { StripeVerbs } from '../stripe-double/verbs.ts'
import type { Step } from './order-life.ts'

/** What organizations buy: a seat each, or one for all. Minor units a month. */
const monthly = [
  { lookupKey: 'team_monthly', nickname: 'Team', unitAmount: 1200 },
  { lookupKey: 'pro_monthly', nickname: 'Pro', unitAmount: 2900 },
] as const

/** The lookup key of a price that organizations buy. */
export type TeamPlan = (typeof monthly)[number]['lookupKey']

/** Prices of organizations by their lookup keys: those that an earlier run made, and the missing ones. */
export type TeamCatalog = ReadonlyMap<string, Stripe.Price>

/** Makes the prices that organizations buy, where they are missing. */
export function prepareTeamCatalog(double: StripeVerbs): TeamCatalog {
  const known = new Map(double.all('price').map((price) => [price.lookup_key, price]))
  const product =
    double.all('product').find(({ name }) => name === 'Teams') ??
    double.createProduct({ name: 'Teams' })
  const prices = monthly.map(
    (price) =>
      known.get(price.lookupKey) ??
      double.createPrice({ product: product.id, interval: 'month', ...price }),
  )
  return new Map(monthly.map(({ lookupKey }, at) => [lookupKey, prices[at]!]))
}

/** How a subscription begins. */
export interface Beginning {
  plan?: TeamPlan
  /** 1 to 8, drawn, when absent. */
  seats?: number
  /** How many periods will have ended when the last step is done; 0 when absent. */
  periods?: number
  /** How long ago the last period will have begun then, in days; drawn when absent. */
  sinceDays?: number
  /** The first period is a trial of so many days. */
  trialDays?: number
  outcome?: 'paid' | 'failed'
}

const daySeconds = 86_400

/** Plans a life step by step; each method adds one. */
export class TeamLife {
  readonly steps: Step[] = []
  readonly org: string
  readonly #double: StripeVerbs
  readonly #prices: TeamCatalog
  readonly #random: Random
  #atMs = 0
  #id = ''
  /** Of the last refund and dispute. */
  #refund = ''
  #dispute = ''

  constructor(double: StripeVerbs, org: string, prices: TeamCatalog, random: Random) {
    this.#double = double
    this.org = org
    this.#prices = prices
    this.#random = random
  }

  /** The organization subscribes; the further steps are about this subscription. */
  begin(beginning: Beginning = {}): this {
    const { plan = 'team_monthly', periods = 0, trialDays, outcome } = beginning
    const quantity = plan === 'pro_monthly' ? 1 : (beginning.seats ?? this.#random.integer(1, 8))
    const sinceDays = beginning.sinceDays ?? this.#random.integer(5, 20)
    return this.#then(() => {
      const customer = this.#double.createCustomer({
        email: `billing@${this.org}.example`,
        name: this.org,
      })
      const months = trialDays === undefined ? periods : periods - 1
      const since = Math.floor(Date.now() / 1000) - sinceDays * daySeconds
      const start = monthsBefore(since, months) - (trialDays ?? 0) * daySeconds
      this.#id = this.#double.createSubscription({
        customer: customer.id,
        price: this.#priceOf(plan),
        quantity,
        metadata: { org: this.org },
        start,
        ...(trialDays !== undefined && { trialDays }),
        ...(outcome !== undefined && { outcome }),
      }).id
    })
  }

  /** The next period begins. */
  renew(outcome: 'paid' | 'failed' = 'paid'): this {
    return this.#then(() => this.#double.renewSubscription(this.#id, { outcome }))
  }

  /** The next attempt to collect the last invoice. */
  retry(outcome: 'paid' | 'failed'): this {
    return this.#then(() => this.#double.payInvoice(this.#latestInvoice(), { outcome }))
  }

  /** The last attempt has failed. */
  giveUp(becomes: 'unpaid' | 'canceled'): this {
    return this.#then(() => this.#double.giveUpPayment(this.#id, becomes))
  }

  /** Nobody paid the first invoice within a day. */
  expire(): this {
    return this.#then(() => this.#double.expireSubscription(this.#id))
  }

  /** Another plan, billed at once for the rest of the period. */
  changePlan(plan: TeamPlan, quantity = 1): this {
    return this.#then(() =>
      this.#double.changeSubscription(this.#id, {
        price: this.#priceOf(plan),
        quantity,
        proration: 'invoice',
      }),
    )
  }

  /** More or fewer seats; more are billed at once. */
  changeSeats(seats: number, proration: 'invoice' | 'none'): this {
    return this.#then(() =>
      this.#double.changeSubscription(this.#id, { quantity: seats, proration }),
    )
  }

  cancelAtPeriodEnd(wanted = true): this {
    return this.#then(() => this.#double.cancelAtPeriodEnd(this.#id, wanted))
  }

  cancelNow(): this {
    return this.#then(() => this.#double.cancelSubscription(this.#id))
  }

  pause(): this {
    return this.#then(() => this.#double.pauseSubscription(this.#id))
  }

  resume(): this {
    return this.#then(() => this.#double.resumeSubscription(this.#id))
  }

  /** Money of the subscription's first invoice goes back: all of it, or so many minor units. */
  refundFirst(amount?: number): this {
    return this.#then(() => {
      const intent = this.#firstIntent()
      this.#refund = this.#double.refund({
        paymentIntent: intent,
        ...(amount !== undefined && { amount }),
      }).id
    })
  }

  /** The bank sends the refund back. */
  refundFails(): this {
    return this.#then(() => this.#double.failRefund(this.#refund))
  }

  /** The bank of the first invoice's customer disputes it. */
  disputeFirst(): this {
    return this.#then(() => {
      const intent = this.#double.find('payment_intent', this.#firstIntent())!
      this.#dispute = this.#double.openDispute({ charge: intent.latest_charge as string }).id
    })
  }

  disputeEnds(outcome: 'won' | 'lost'): this {
    return this.#then(() => this.#double.closeDispute(this.#dispute, outcome))
  }

  #then(run: () => unknown): this {
    this.steps.push({ atMs: this.#atMs, run: () => void run() })
    this.#atMs += this.#random.integer(800, 4500)
    return this
  }

  #priceOf(plan: TeamPlan): string {
    return this.#prices.get(plan)!.id
  }

  #latestInvoice(): string {
    return this.#double.find('subscription', this.#id)!.latest_invoice as string
  }

  /** What paid the first invoice that cost something. */
  #firstIntent(): string {
    const invoices = this.#double
      .all('invoice')
      .filter((each) => each.parent?.subscription_details?.subscription === this.#id)
    const paid = invoices.find((each) => each.status === 'paid' && each.amount_paid > 0)!
    const payment = this.#double.all('invoice_payment').find((each) => each.invoice === paid.id)!
    return payment.payment.payment_intent as string
  }
}

/** The same day so many months earlier, or the month's last. */
function monthsBefore(seconds: number, months: number): number {
  const date = new Date(seconds * 1000)
  const day = date.getUTCDate()
  date.setUTCDate(1)
  date.setUTCMonth(date.getUTCMonth() - months)
  const lastDay = new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate()
  date.setUTCDate(Math.min(day, lastDay))
  return Math.floor(date.getTime() / 1000)
}
