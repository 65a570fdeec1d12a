/**
 * Checks 3 to 5 of the engine, in their order: effects that exist are absorbed, money must be what
 * was expected, the transition must be permitted.
 */
import { PermanentError } from '../core/errors.ts'
import { applyChanges } from './apply-changes.ts'
import { finding, flaggedFinding } from './finding-kinds.ts'
import { contradictionOutcome, deferredOutcome, plainOutcome, type At } from './fold-outcomes.ts'
import { checkMoney } from './judge-money.ts'
import type { FindingDraft, Outcome, PaymentOutcome } from './outcome.ts'
import { recordedPayment, sortChange, type Judged, type SortedChange } from './sorted-change.ts'
import { isReachable } from './workflow.ts'

/** Judges one decision and, where nothing speaks against it, changes the order. */
export function judge(judged: Judged): Outcome {
  const change = sortChange(judged)
  const { ledger, claim, decision, workflow } = change
  if (change.fresh.length === 0 && change.absorbed.length === 0 && change.payment === null) {
    throw new PermanentError(
      `workflow ${workflow.name}, ${claim.event.eventType}: a change needs a key: a payment or an effect`,
    )
  }
  const stolen =
    change.payment === null ? null : judged.context.payerOf(claim.event.sourceId, change.payment.id)
  if (stolen !== null && stolen !== ledger.id) {
    return contradictionOutcome(
      at(change),
      `payment ${change.payment?.id} is recorded for order ${stolen}`,
      [
        finding('fulfilled_twice', `payment:${claim.event.sourceId}:${change.payment?.id}`, {
          order: ledger.id,
          other_order: stolen,
          payment: change.payment?.id ?? null,
        }),
      ],
    )
  }
  // check 3: everything exists
  if (change.fresh.length === 0 && !change.paymentIsNew) {
    return plainOutcome(at(change), 'absorbed', absorbedReason(change))
  }
  const findings = [...paidTwice(change), ...flagged(change)]
  // check 4: money
  const money = checkMoney(change)
  if (money.kind === 'contradicted')
    return contradictionOutcome(at(change), money.reason, money.findings, unapplied(change))
  if (money.kind === 'missing')
    return deferredOutcome(at(change), { description: money.description })
  // check 5: the transition
  const to = decision.to ?? ledger.state
  if (to !== ledger.state && !(workflow.transitions.get(ledger.state) ?? []).includes(to)) {
    if (isReachable(workflow, ledger.state, to)) {
      return deferredOutcome(at(change), {
        description: `a state of order ${ledger.id} from which it can be ${to}`,
      })
    }
    return contradictionOutcome(
      at(change),
      `${ledger.state} to ${to} is not permitted`,
      [
        finding('transition_refused', `event:${claim.event.key}`, {
          order: ledger.id,
          from: ledger.state,
          to,
        }),
      ],
      unapplied(change),
    )
  }
  return applyChanges(change, to, [...findings, ...money.findings])
}

function at(change: SortedChange): At {
  return { decisionId: change.decisionId, claim: change.claim, ledger: change.ledger }
}

function absorbedReason(change: SortedChange): string {
  const effects = change.absorbed.map((row) =>
    row.reference === '' ? row.type : `${row.type} ${row.reference}`,
  )
  const parts = change.payment === null ? effects : [`payment ${change.payment.id}`, ...effects]
  return `already recorded: ${parts.join(', ')}`
}

/**
 * Money that came again for something already fulfilled: another applied payment stands, and this
 * decision makes nothing that was not there (or repeats a part of it).
 */
function paidTwice(change: SortedChange): FindingDraft[] {
  if (!change.paymentIsNew || change.payment === null) return []
  if (change.absorbed.length === 0 && change.fresh.length > 0) return []
  const earlier = change.ledger.payments.filter((payment) => payment.applied)
  if (earlier.length === 0) return []
  const payments = [...earlier.map((payment) => payment.id), change.payment.id].sort()
  return [
    finding('paid_twice', `order:${change.ledger.id}`, {
      order: change.ledger.id,
      payments: payments.join(', '),
    }),
  ]
}

function flagged(change: SortedChange): FindingDraft[] {
  const { flag } = change.decision
  if (flag === undefined) return []
  const figures = { order: change.ledger.id, ...flag.figures }
  return [flaggedFinding(flag.kind, `event:${change.claim.event.key}`, figures)]
}

/**
 * The payment of a contradicted decision is kept, as not applied, so that its refund finds it: also a
 * refund of the same batch, and one that waits for it.
 */
function unapplied(change: SortedChange): PaymentOutcome | null {
  const { payment, ledger, claim } = change
  if (payment === null || recordedPayment(change) !== undefined) return null
  const kept = { ...payment, applied: false }
  ledger.payments.push(Object.freeze({ ...kept, sourceId: claim.event.sourceId }))
  ledger.version += 1n
  return kept
}
