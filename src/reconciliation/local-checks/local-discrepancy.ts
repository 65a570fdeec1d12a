/** Discrepancies that this database alone tells: no source and no record are asked. */
import type { FindingDraft } from '../../workflow/outcome.ts'
import type { Discrepancy } from '../ports.ts'

/** The source that they name. */
export const localSource = 'app'

/** A discrepancy of an order, or of none. */
export function local(draft: FindingDraft, orderId: string | null): Discrepancy {
  const nowhere = { eventKey: null, sourceId: null, reference: null }
  return { draft, source: localSource, orderId, ...nowhere }
}
