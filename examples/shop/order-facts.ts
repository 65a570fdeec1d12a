/**
 * The order's state as a function of what is recorded: payments, refunds, disputes, expiry. Functions
 * that add a fact return what the ledger will hold once the decision is applied.
 */
import type { Effect, Money, Payment } from 'hookledger'

/** What the ledger holds of an order. */
export interface Facts {
  readonly payments: readonly Payment[]
  readonly effects: readonly Effect[]
}

/** The states of a license. */
export type LicenseState = 'pending' | 'paid' | 'disputed' | 'refunded' | 'lost' | 'canceled'

/** The facts with a payment that is being recorded. */
export function withPayment(
  facts: Facts,
  paid: { readonly id: string; readonly money: Money },
): Facts {
  const recorded = facts.payments.find((payment) => payment.id === paid.id)
  const others = facts.payments.filter((payment) => payment.id !== paid.id)
  return {
    ...facts,
    payments: [...others, { id: paid.id, ...paid.money, ...recorded, applied: true }],
  }
}

/** The facts with an effect that is being recorded. */
export function withEffect(
  facts: Facts,
  added: {
    readonly type: string
    readonly reference: string
    readonly amount?: Money
    readonly payment?: string
    readonly data?: Readonly<Record<string, unknown>>
  },
): Facts {
  const { type, reference, amount, payment = null, data = {} } = added
  if (facts.effects.some((each) => each.type === type && each.reference === reference)) return facts
  const recorded = {
    type,
    reference,
    payment,
    data,
    amount: amount?.amount ?? null,
    currency: amount?.currency ?? null,
    reversed: false,
    operations: [],
  }
  return { ...facts, effects: [...facts.effects, recorded] }
}

/** The facts with a refund that turned out to have failed. */
export function withReversal(facts: Facts, refund: string): Facts {
  return {
    ...facts,
    effects: facts.effects.map((each) =>
      each.type === 'refund' && each.reference === refund ? { ...each, reversed: true } : each,
    ),
  }
}

/** The state that these facts add up to. */
export function stateOf({ payments, effects }: Facts): LicenseState {
  const applied = payments.filter((payment) => payment.applied)
  if (applied.length === 0)
    return effects.some((each) => each.type === 'expired') ? 'canceled' : 'pending'
  const closed = new Map(
    effects.filter((each) => each.type === 'disputeClosed').map((each) => [each.reference, each]),
  )
  if (effects.some((each) => each.type === 'disputeOpened' && !closed.has(each.reference)))
    return 'disputed'
  const lost = new Set(
    [...closed.values()]
      .filter((each) => each.data['outcome'] === 'lost')
      .map((each) => each.data['payment']),
  )
  const stands = applied.some((payment) => !lost.has(payment.id) && !isRefunded(payment, effects))
  // a loss that names no payment of the order is one of the only payment that counts
  const unplaced = [...lost].some((id) => !payments.some((payment) => payment.id === id))
  if (stands && !(lost.has(null) || (unplaced && applied.length === 1))) return 'paid'
  return lost.size > 0 ? 'lost' : 'refunded'
}

/**
 * Whether this payment comes after another one that waits for its session still, so that no license
 * tells of it. Once there is a license, Hookledger finds a second payment by itself.
 */
export function isPaidAgain({ payments, effects }: Facts, paid: { readonly id: string }): boolean {
  if (effects.some((each) => each.type === 'license')) return false
  const applied = payments.filter((payment) => payment.applied)
  return applied.length > 0 && !applied.some((payment) => payment.id === paid.id)
}

/** Whether refunds reach what was captured. */
function isRefunded(payment: Payment, effects: readonly Effect[]): boolean {
  let refunded = 0n
  for (const each of effects) {
    if (each.type === 'refund' && each.payment === payment.id && !each.reversed)
      refunded += each.amount ?? 0n
  }
  return payment.amount > 0n && refunded >= payment.amount
}

/** Who bought it: a session says so; until one does, the address that a payment intent carries. */
export function subjectOf({ effects }: Facts): string | undefined {
  const buyers = effects.filter(
    (each) => each.type === 'buyer' && typeof each.data['subject'] === 'string',
  )
  // of several, always the same one, whichever came first
  buyers.sort((a, b) => rank(a).localeCompare(rank(b)))
  const subject = buyers[0]?.data['subject']
  return typeof subject === 'string' ? subject : undefined
}

function rank(buyer: Effect): string {
  return `${buyer.data['by'] === 'session' ? 0 : 1} ${buyer.reference}`
}
