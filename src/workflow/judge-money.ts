/**
 * Check 4: what was paid against what was expected, and what is refunded against what was paid.
 */
import { PermanentError } from '../core/errors.ts'
import { formatMoney, type Money } from '../core/money.ts'
import { finding, type FindingKind } from './finding-kinds.ts'
import { viewEffects } from './fold-context.ts'
import { recordedPayment, type SortedChange } from './sorted-change.ts'
import type { FindingDraft } from './outcome.ts'

/** The verdict about money. */
export type MoneyVerdict =
  | { readonly kind: 'fine'; readonly findings: readonly FindingDraft[] }
  | {
      readonly kind: 'contradicted'
      readonly reason: string
      readonly findings: readonly FindingDraft[]
    }
  | { readonly kind: 'missing'; readonly description: string }

/** Judges the payment and the refunds of a change. */
export function checkMoney(change: SortedChange): MoneyVerdict {
  const paid = checkPayment(change)
  if (paid.kind !== 'fine') return paid
  const refunded = checkRefunds(change)
  return refunded.kind === 'fine' ? paid : refunded
}

function checkPayment(change: SortedChange): MoneyVerdict {
  const { payment, ledger, workflow, claim } = change
  if (payment === null) return { kind: 'fine', findings: [] }
  const paid: Money = { amount: payment.amount, currency: payment.currency }
  const about = `payment:${claim.event.sourceId}:${payment.id}`
  const differs = figuresDiffer(change, about)
  if (ledger.expected === null) {
    if (
      workflow.accepts === undefined ||
      verdict(workflow.accepts({ event: claim.body, paid }), 'accepts', change)
    ) {
      return { kind: 'fine', findings: differs }
    }
    const reason = `${formatMoney(paid)} is not accepted for order ${ledger.id}`
    const figures = { order: ledger.id, payment: payment.id, paid: formatMoney(paid) }
    return { kind: 'contradicted', reason, findings: [finding('not_accepted', about, figures)] }
  }
  const { expected } = ledger
  const figures = { order: ledger.id, payment: payment.id, paid, expected }
  if (workflow.compare !== undefined) {
    const fits = workflow.compare({ event: claim.body, paid, expected })
    if (verdict(fits, 'compare', change)) return { kind: 'fine', findings: differs }
    const kind = paid.currency === expected.currency ? 'underpaid' : 'currency_differs'
    return refused(kind, about, figures)
  }
  if (paid.currency !== expected.currency) return refused('currency_differs', about, figures)
  if (paid.amount < expected.amount) return refused('underpaid', about, figures)
  if (paid.amount === expected.amount) return { kind: 'fine', findings: differs }
  return { kind: 'fine', findings: [...differs, compared('overpaid', about, figures)] }
}

interface Compared {
  readonly order: string
  readonly payment: string
  readonly paid: Money
  readonly expected: Money
}

function refused(kind: FindingKind, about: string, figures: Compared): MoneyVerdict {
  const reason = `${formatMoney(figures.paid)} was paid, ${formatMoney(figures.expected)} expected`
  return { kind: 'contradicted', reason, findings: [compared(kind, about, figures)] }
}

function compared(kind: FindingKind, about: string, figures: Compared): FindingDraft {
  const { paid, expected } = figures
  return finding(kind, about, {
    ...figures,
    paid: formatMoney(paid),
    expected: formatMoney(expected),
  })
}

/** A promise would be truthy, and let any payment pass: only true and false are answers. */
function verdict(answer: unknown, asked: 'accepts' | 'compare', change: SortedChange): boolean {
  if (typeof answer === 'boolean') return answer
  throw new PermanentError(
    `workflow ${change.workflow.name}: ${asked} must return true or false, synchronously`,
  )
}

/** A payment that is recorded already, named with other figures: the first stays, a finding tells. */
function figuresDiffer(change: SortedChange, about: string): FindingDraft[] {
  const { payment, ledger } = change
  const recorded = recordedPayment(change)
  if (payment === null || recorded === undefined) return []
  if (recorded.amount === payment.amount && recorded.currency === payment.currency) return []
  return [
    finding('amount_differs', about, {
      order: ledger.id,
      payment: payment.id,
      recorded: formatMoney(recorded),
      named: formatMoney(payment),
    }),
  ]
}

/** Refunds count against the payment that they name; it must be known, and never be exceeded. */
function checkRefunds(change: SortedChange): MoneyVerdict {
  const { ledger, claim } = change
  for (const effect of change.fresh) {
    if (effect.payment === null || effect.amount === null) continue
    const payment = ledger.payments.find(
      (each) => each.sourceId === claim.event.sourceId && each.id === effect.payment,
    )
    const named = change.payment?.id === effect.payment ? change.payment : undefined
    const captured = payment ?? named
    if (captured === undefined) {
      return { kind: 'missing', description: `payment ${effect.payment} of order ${ledger.id}` }
    }
    const all = viewEffects([...ledger.effects, ...change.fresh], [])
    let sum = 0n
    for (const each of all) {
      if (each.payment === effect.payment && each.amount !== null && !each.reversed)
        sum += each.amount
    }
    if (effect.currency === captured.currency && sum <= captured.amount) continue
    const figures = {
      order: ledger.id,
      payment: effect.payment,
      captured: formatMoney(captured),
      refunded: formatMoney({ amount: sum, currency: effect.currency ?? captured.currency }),
    }
    return {
      kind: 'contradicted',
      reason: `refunds of ${figures.refunded} exceed the ${figures.captured} captured by ${effect.payment}`,
      findings: [
        finding('over_refunded', `payment:${claim.event.sourceId}:${effect.payment}`, figures),
      ],
    }
  }
  return { kind: 'fine', findings: [] }
}
