/** Whether a pass over the provider's records can be repeated: the second time it may add nothing at all. */
import type { Asked } from './verdict.ts'

/** What a pass could add, and how many passes have come to their end. */
export interface Added {
  readonly passes: number
  /** Events, decisions and changes of orders, as one text. Findings may still come: they are about age, too. */
  readonly what: string
}

/** Counts what there is now. */
export async function countAdded(db: Asked, schema: string): Promise<Added> {
  const h = `"${schema.replaceAll('"', '""')}"`
  const { rows } = await db.query(
    `select (select count(*)::int from ${h}.reconciliation_runs where state = 'complete') as passes,
       concat_ws(', ', (select count(*) || ' events' from ${h}.inbox_events), (select count(*) || ' decisions' from ${h}.ledger_decisions),
         (select coalesce(sum(version), 0) || ' changes of orders' from ${h}.orders)) as what`,
  )
  return { passes: Number(rows[0]?.['passes']), what: String(rows[0]?.['what']) }
}

/** Lets a minute pass for whatever pass is under way: a process that says nothing for so long has lost its turn. */
export async function agePasses(db: Asked, schema: string): Promise<void> {
  const h = `"${schema.replaceAll('"', '""')}"`
  await db.query(
    `update ${h}.reconciliation_runs set seen_at = seen_at - interval '61 seconds' where state = 'running'`,
  )
}
