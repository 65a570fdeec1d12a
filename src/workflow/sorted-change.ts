/**
 * A decision that changes something, with what it asks for split into what is new and what exists.
 */
import type { AnyDecision, AnyEffectClaim, Send } from './decision.ts'
import type { FoldContext } from './fold-context.ts'
import type { At } from './fold-outcomes.ts'
import { reversedSuffix, type LedgerEffect, type LedgerPayment } from './order.ts'
import type { PaymentOutcome } from './outcome.ts'
import { plainData } from './plain-data.ts'
import type { Workflow } from './workflow.ts'

/** A decision that changes something. */
export type Change = Extract<AnyDecision, { kind: 'fulfill' | 'move' | 'reverse' | 'mirror' }>

/** What is judged: the decision of an event about an order. */
export interface Judged extends At {
  readonly decision: Change
  readonly context: FoldContext
}

/** The decision with its effects split into new and existing ones. */
export interface SortedChange extends Judged {
  readonly workflow: Workflow
  readonly fresh: readonly LedgerEffect[]
  readonly absorbed: readonly LedgerEffect[]
  /** What the new effects send. */
  readonly sends: readonly EffectSend[]
  readonly payment: PaymentOutcome | null
  /** Whether the payment is not recorded for this order yet, or only as not applied. */
  readonly paymentIsNew: boolean
}

/** A send with the new effect that asks for it. */
export interface EffectSend {
  readonly effect: LedgerEffect
  readonly send: Send
}

const noSends: readonly EffectSend[] = Object.freeze([])

/** Splits a decision that was checked already. */
export function sortChange(judged: Judged): SortedChange {
  const { decision, ledger, claim } = judged
  const { workflow } = claim.candidate
  const fresh: LedgerEffect[] = []
  const absorbed: LedgerEffect[] = []
  for (const wanted of wantedEffects(workflow, decision)) {
    const same = (row: LedgerEffect): boolean =>
      row.type === wanted.type && row.reference === wanted.reference
    const existing = ledger.effects.find(same)
    if (existing !== undefined) absorbed.push(existing)
    else if (!fresh.some(same)) fresh.push(wanted)
  }
  const named = decision.kind === 'mirror' ? undefined : decision.payment
  const recorded = ledger.payments.find(
    (payment) => payment.sourceId === claim.event.sourceId && payment.id === named?.id,
  )
  const payment =
    named === undefined
      ? null
      : { id: named.id, amount: named.money.amount, currency: named.money.currency, applied: true }
  const paymentIsNew = payment !== null && recorded?.applied !== true
  const { decisionId, context } = judged
  const sends = decision.effects?.some((each) => each.send !== undefined)
    ? sendsOf(decision.effects, fresh)
    : noSends
  return {
    decisionId,
    claim,
    ledger,
    decision,
    context,
    workflow,
    fresh,
    absorbed,
    sends,
    payment,
    paymentIsNew,
  }
}

/** An effect that exists sends nothing again, and one that is named twice sends what the first names. */
function sendsOf(
  claims: readonly AnyEffectClaim[],
  fresh: readonly LedgerEffect[],
): readonly EffectSend[] {
  return fresh.flatMap((effect) => {
    const claim = claims.find(
      ({ type, reference = '' }) => type === effect.type && reference === effect.reference,
    )
    return (claim?.send ?? []).map((send) => ({ effect, send }))
  })
}

function wantedEffects(workflow: Workflow, decision: Change): LedgerEffect[] {
  const wanted = (decision.effects ?? []).map((effect) => effectRow(workflow, effect, ''))
  if (decision.kind === 'reverse') wanted.push(effectRow(workflow, decision.of, reversedSuffix))
  return wanted
}

function effectRow(workflow: Workflow, claim: AnyEffectClaim, suffix: string): LedgerEffect {
  return Object.freeze({
    type: `${claim.type}${suffix}`,
    reference: claim.reference ?? '',
    amount: claim.amount?.amount ?? null,
    currency: claim.amount?.currency ?? null,
    payment: claim.payment ?? null,
    data: plainData(claim.data, `data of effect ${claim.type} of workflow ${workflow.name}`),
  })
}

/** The payment as the ledger has it, if it has. */
export function recordedPayment(change: SortedChange): LedgerPayment | undefined {
  const { payment, ledger, claim } = change
  return ledger.payments.find(
    (each) => each.sourceId === claim.event.sourceId && each.id === payment?.id,
  )
}
