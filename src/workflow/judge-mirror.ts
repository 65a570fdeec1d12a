/**
 * A mirror's decision: the order becomes what the provider's object is now, from whichever state. Checks of
 * transitions do not apply, and no key is needed: the same state again is no change, and an answer that is
 * older than one that was decided from says nothing.
 */
import { applyChanges, isNoChange } from './apply-changes.ts'
import { flaggedFinding } from './finding-kinds.ts'
import { contradictionOutcome, deferredOutcome, plainOutcome, type At } from './fold-outcomes.ts'
import type { Answered, MirrorAnswer } from './gathering.ts'
import { checkMoney } from './judge-money.ts'
import type { FindingDraft, Outcome } from './outcome.ts'
import { sortChange, type Judged } from './sorted-change.ts'

/** Judges a mirror's decision and, where it differs from the order, changes the order. */
export function judgeMirror(judged: Judged): Outcome {
  const change = sortChange(judged)
  const { ledger, decision, workflow } = change
  const to = decision.to ?? ledger.state
  const at: At = { decisionId: change.decisionId, claim: change.claim, ledger }
  const findings = flagged(judged)
  const settles = settled(judged)
  const money = checkMoney(change)
  if (money.kind === 'contradicted') return contradictionOutcome(at, money.reason, money.findings)
  if (money.kind === 'missing') return deferredOutcome(at, { description: money.description })
  if (change.fresh.length === 0 && isNoChange(change, to)) {
    const reason = `unchanged: ${workflow.name} is ${to}`
    return { ...plainOutcome(at, 'absorbed', reason), findings, settles }
  }
  return { ...applyChanges(change, to, [...findings, ...money.findings]), settles }
}

/**
 * An answer that is older than one that was decided from already. The very same answer is decided from again:
 * what an event says besides (a reminder of its own) must not depend on who shared its request.
 */
export function appliedBefore(at: At, answer: MirrorAnswer): Outcome {
  return plainOutcome(
    at,
    'absorbed',
    `already decided from a later answer than ${answer.number} about ${answer.object.kind} ${answer.object.value}`,
  )
}

/** What ends with this look; what it sees itself is not over. */
function settled({ decision }: Judged): readonly string[] {
  if (decision.kind !== 'mirror' || decision.settles === undefined) return []
  return decision.settles.filter((kind) => kind !== decision.flag?.kind)
}

/** About the order and not about the event: every look sees the same discrepancy again. */
function flagged({ decision, ledger }: Judged): FindingDraft[] {
  const { flag } = decision
  if (flag === undefined) return []
  const figures = { order: ledger.id, ...flag.figures }
  return [flaggedFinding(flag.kind, `order:${ledger.id}`, figures)]
}

/** The outcome with what it was decided from in its evidence. */
export function withEvidence(outcome: Outcome, about: string, answered: Answered): Outcome {
  const { evidenceId, number, fetchedAt, sha256 } = answered
  const fetch = {
    about,
    number: number.toString(),
    evidence: evidenceId.toString(),
    fetched_at: fetchedAt.toISOString(),
    sha256,
  }
  return { ...outcome, evidence: { ...outcome.evidence, fetch } }
}
