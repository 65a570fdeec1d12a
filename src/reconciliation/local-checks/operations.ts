/**
 * Operations of which nobody can say what became of them, and that no dispatcher told of: a process that died
 * with a call in hand where no other one runs.
 */
import { finding } from '../../workflow/finding-kinds.ts'
import type { CompareContext } from '../compare-context.ts'
import type { Discrepancy } from '../ports.ts'

/** A lease is taken over within seconds of its end; after so many minutes nobody is there to take it. */
const graceMinutes = 15

/** The source that findings about operations name. */
const source = 'outbox'

/** Those that no open finding tells of already. */
export async function uncertainOperations({
  db,
  findings,
}: Pick<CompareContext, 'db' | 'findings'>): Promise<Discrepancy[]> {
  const s = db.schema
  const rows = await db.query<{
    operation_id: string
    destination: string
    order_id: string | null
    attempts: number
  }>({
    text: `select operation_id::text as operation_id, destination, order_id, attempts from (
        select * from ${s}outbox_operations where state = 'sending' and leased_until < now() - interval '${graceMinutes} minutes'
        union all
        select * from ${s}outbox_operations where state = 'uncertain' and next_attempt_at is null and not flagged) o
      order by operation_id limit 500`,
  })
  const found = rows.map((row): Discrepancy => {
    const { operation_id: operation, destination, order_id: orderId, attempts } = row
    const figures = { operation, destination, attempts, reason: 'no dispatcher took it over' }
    return {
      draft: finding('operation_uncertain', `operation:${operation}`, figures),
      source,
      orderId,
      eventKey: null,
      sourceId: null,
      reference: null,
    }
  })
  const told = await db.query<{ finding_id: string }>({
    text: `select finding_id::text as finding_id from ${s}findings where finding_id = any ($1::uuid[]) and state <> 'closed'`,
    values: [found.map(({ draft, source: of }) => findings.id(draft.kind, of, draft.about))],
  })
  const known = new Set(told.map((row) => row.finding_id))
  return found.filter(
    ({ draft, source: of }) => !known.has(findings.id(draft.kind, of, draft.about)),
  )
}
