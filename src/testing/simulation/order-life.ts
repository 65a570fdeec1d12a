/**
 * One order's life at the provider, written down as steps at moments of simulated time. Planning draws
 * all random numbers, so that the same seed makes the same life whatever the machine does meanwhile.
 */
import type { Random } from '../stripe-double/random.ts'
import type { StripeVerbs } from '../stripe-double/verbs.ts'
import { listPrice, type SimulatedOrder } from './simulated-order.ts'

/** Something that happens at the provider. */
export interface Step {
  /** Milliseconds of simulated time after the order's beginning. */
  atMs: number
  run: () => void
}

/** How a customer pays. */
export interface Payment {
  amount?: number
  currency?: string
  discount?: number
  /** `unpaid`: a bank debit that `settle` ends. */
  outcome?: 'paid' | 'unpaid'
}

/** Plans a life step by step; each method adds one. */
export class OrderLife {
  readonly steps: Step[] = []
  readonly #double: StripeVerbs
  readonly #order: SimulatedOrder
  readonly #random: Random
  readonly #sessions: string[] = []
  readonly #intents: string[] = []
  readonly #refunds: string[] = []
  readonly #disputes: string[] = []
  #atMs = 0

  constructor(double: StripeVerbs, order: SimulatedOrder, random: Random) {
    this.#double = double
    this.#order = order
    this.#random = random
  }

  /** The customer finishes a checkout session. */
  pay(payment: Payment = {}): this {
    return this.#then(() => {
      const session = this.#double.completeSession(this.#openSession(payment), {
        email: this.#typedEmail(),
        name: `Customer ${this.#order.id}`,
        ...(payment.outcome && { outcome: payment.outcome }),
      })
      if (typeof session.payment_intent === 'string') this.#intents.push(session.payment_intent)
    })
  }

  /** The customer pays an intent of the shop's own, without a session. */
  payIntent(): this {
    return this.#then(() =>
      this.#double.payPaymentIntent(this.#intent(), { email: this.#order.email }),
    )
  }

  /** The customer's card is declined. */
  declineIntent(): this {
    return this.#then(() => this.#double.payPaymentIntent(this.#intent(), { outcome: 'failed' }))
  }

  /** The customer leaves a session open until it ends. */
  expire(): this {
    return this.#then(() => this.#double.expireSession(this.#openSession({})))
  }

  /** The bank debit of the last session ends. */
  settle(outcome: 'succeeded' | 'failed'): this {
    return this.#then(() => {
      const session = this.#sessions.at(-1)!
      if (outcome === 'succeeded') this.#double.asyncPaymentSucceeded(session)
      else this.#double.asyncPaymentFailed(session)
    })
  }

  /** The shop gives money back: of the last payment, or of the one at `payment`. */
  refund(refund: { amount?: number; pending?: boolean; payment?: number } = {}): this {
    return this.#then(() => {
      const made = this.#double.refund({
        paymentIntent: this.#intents.at(refund.payment ?? -1)!,
        ...(refund.amount !== undefined && { amount: refund.amount }),
        ...(refund.pending && { status: 'pending' }),
      })
      this.#refunds.push(made.id)
    })
  }

  /** Something more happens to the last refund. */
  refundEnds(how: 'succeeds' | 'fails' | 'gets_its_reference'): this {
    return this.#then(() => {
      const refund = this.#refunds.at(-1)!
      if (how === 'succeeds') this.#double.succeedRefund(refund)
      else if (how === 'fails') this.#double.failRefund(refund)
      else this.#double.referenceRefund(refund)
    })
  }

  /** The customer's bank disputes the last payment, for what is left of it. */
  dispute(dispute: { inquiry?: boolean } = {}): this {
    return this.#then(() => {
      const intent = this.#double.find('payment_intent', this.#intents.at(-1)!)
      const charge = this.#double.find('charge', intent?.latest_charge as string)!
      const left = charge.amount_captured - charge.amount_refunded
      const made = this.#double.openDispute({
        charge: charge.id,
        amount: left || charge.amount_captured,
        ...dispute,
      })
      this.#disputes.push(made.id)
    })
  }

  /** The last dispute ends. */
  disputeEnds(outcome: 'won' | 'lost' | 'warning_closed'): this {
    return this.#then(() => this.#double.closeDispute(this.#disputes.at(-1)!, outcome))
  }

  /** An amount that leaves something of a payment over: a tenth to six tenths of the price. */
  part(): number {
    return this.#random.integer(5, 30) * 98
  }

  #then(run: () => unknown): this {
    this.steps.push({ atMs: this.#atMs, run: () => void run() })
    this.#atMs += this.#random.integer(800, 6000)
    return this
  }

  #openSession(payment: Payment): string {
    const { id, naming } = this.#order
    const session = this.#double.createSession({
      amount: payment.amount ?? listPrice.amount,
      currency: payment.currency ?? listPrice.currency,
      discount: payment.discount ?? 0,
      description: 'License',
      ...(naming === 'session_metadata'
        ? { metadata: { order_id: id } }
        : { clientReferenceId: id }),
      paymentIntentMetadata: this.#intentMetadata(),
    })
    this.#sessions.push(session.id)
    return session.id
  }

  #intent(): string {
    const known = this.#intents.at(-1)
    if (known !== undefined) return known
    const { id, email } = this.#order
    const intent = this.#double.createPaymentIntent({
      ...listPrice,
      metadata: { order_id: id, email },
    })
    this.#intents.push(intent.id)
    return intent.id
  }

  #intentMetadata(): Record<string, string> {
    const { id, naming, email } = this.#order
    if (naming === 'reference' || naming === 'session_metadata') return {}
    return naming === 'intent_order' ? { order_id: id } : { order_id: id, email }
  }

  #typedEmail(): string {
    const { naming, email } = this.#order
    return naming === 'intent_other_email' ? `private.${email}` : email
  }
}
