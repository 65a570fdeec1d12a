/** Repairs by rule: what the configuration says repairs itself, recorded with the rule as actor. */
import type { Database } from '../../postgres/executor.ts'
import { createPatience } from './patience.ts'
import type { RepairReason } from './record.ts'

/** Findings that one pass repairs at most. */
const atOnce = 500

/** Repairs open findings of these kinds; what a rule cannot repair waits for a person. Answers how many it did. */
export async function applyRules(
  db: Database,
  kinds: readonly string[],
  signal: AbortSignal | undefined,
  apply: (findingId: string, by: RepairReason) => Promise<{ readonly outcome: string }>,
): Promise<number> {
  if (kinds.length === 0) return 0
  const rows = await db.query<{ finding_id: string; kind: string }>({
    text: `select finding_id::text as finding_id, kind from ${db.schema}findings
      where state = 'open' and kind = any ($1::text[])
      order by kind, finding_id limit ${atOnce}`,
    values: [kinds],
  })
  let repaired = 0
  const patience = createPatience()
  for (const { finding_id: id, kind } of rows) {
    signal?.throwIfAborted()
    if (patience.isOver()) break
    try {
      const by = { actor: `rule:${kind}`, reason: `autoRepair: ${kind} repairs itself here` }
      if ((await apply(id, by)).outcome === 'applied') repaired++
      patience.answered()
    } catch (error) {
      patience.failed(error)
    }
  }
  return repaired
}
