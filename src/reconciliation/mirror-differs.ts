/** The finding of a mirrored object that is otherwise at the provider than its order has it. Pure. */
import { finding } from '../workflow/finding-kinds.ts'
import type { ProviderRecord } from '../workflow/records.ts'
import type { AccountSource } from './compare-context.ts'
import { wouldTell } from './judge-facts.ts'
import type { Discrepancy, PreviewOutcome } from './ports.ts'

/**
 * Null where the record fits its order, or says nothing of it. It is a lag: a look is what ends it, and what it
 * is about stays the same however often the two differ.
 */
export function mirrorDiffers(
  at: AccountSource,
  { kind, id, account }: ProviderRecord,
  preview: PreviewOutcome,
): Discrepancy | null {
  const { look, outcome, orderId } = preview
  if (look?.isSeen !== true || outcome === null || orderId === null) return null
  if (outcome.kind === 'contradicted' || !wouldTell(preview)) return null
  const { object } = look
  return {
    draft: finding(
      'mirror_differs',
      `mirror:${at.sourceId}:${orderId}:${object.kind}:${object.value}`,
      {
        order: orderId,
        object: `${object.kind} ${object.value}`,
        here: preview.orderExists ? outcome.from : null,
        there: outcome.to,
        ...changed('granted', outcome.granted),
        ...changed('revoked', outcome.revoked),
        reason: outcome.reason,
      },
    ),
    source: at.text,
    // one that no event has opened yet is opened by the look
    orderId,
    eventKey: null,
    sourceId: at.sourceId,
    reference: { kind, id, account },
  }
}

function changed(what: string, pairs: readonly string[]): Readonly<Record<string, string>> {
  return pairs.length === 0 ? {} : { [what]: pairs.join(', ') }
}
