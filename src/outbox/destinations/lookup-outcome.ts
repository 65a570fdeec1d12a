/**
 * Runs a person's lookup: it is over at the signal, and whatever is not clearly present or absent is no
 * answer. Absence is what lets an operation be done again, so nothing but the word itself means it.
 */
import type { LookupOutcome } from '../destination.ts'
import { early, ended } from './ended.ts'
import { keptReceipt } from './receipt.ts'
import type { Redactor } from './redact.ts'

/** What the lookup came to; never rejects. */
export async function checkedLookup(
  signal: AbortSignal,
  redactor: Redactor,
  look: () => unknown,
): Promise<LookupOutcome> {
  try {
    const result = await ended(signal, async () => look())
    if (result === early) return { kind: 'no_answer', error: 'no answer in time' }
    return readOutcome(result, redactor)
  } catch {
    return { kind: 'no_answer', error: 'the lookup failed' }
  }
}

function readOutcome(result: unknown, redactor: Redactor): LookupOutcome {
  const said = (typeof result === 'object' && result !== null ? result : {}) as {
    readonly [Field in 'kind' | 'receipt' | 'error' | 'retryAfterMs']?: unknown
  }
  if (said.kind === 'present') return { kind: 'present', receipt: keptReceipt(said.receipt) }
  if (said.kind === 'absent') return { kind: 'absent' }
  const delay = said.retryAfterMs
  return {
    kind: 'no_answer',
    error:
      said.kind === 'no_answer' && typeof said.error === 'string'
        ? redactor.text(said.error)
        : 'the lookup did not say',
    ...(typeof delay === 'number' &&
      delay >= 0 &&
      Number.isFinite(delay) && { retryAfterMs: delay }),
  }
}
