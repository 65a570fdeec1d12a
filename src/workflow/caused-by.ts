/**
 * What our own calls cause comes back as events (a refund that we made as `refund.created`). They make their
 * effects like any other; the key that we sent with the call says which operation it was.
 */
import type { Outcome } from './outcome.ts'

/** A permanent id, alone or with the generation of its key. */
const operationKey =
  /^([0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12})(?::[1-9][0-9]{0,8})?$/

/** The operation whose key this is; null for a key that is none of ours. */
export function operationOfKey(key: unknown): string | null {
  return typeof key === 'string' ? (operationKey.exec(key)?.[1] ?? null) : null
}

/** The outcome with the operation that caused its event in its evidence. */
export function linkedOutcome(outcome: Outcome): Outcome {
  const { causedBy } = outcome.event
  if (causedBy === undefined || causedBy === null) return outcome
  return { ...outcome, evidence: { ...outcome.evidence, operation: causedBy } }
}
