/** The unique indexes on which the promises rest: that they are there, valid, and enforce what they must. */
import type { Asked, Violation } from './verdict.ts'

/** Table and the columns that must be unique in it, whatever the index is called. */
const required: readonly (readonly [table: string, columns: string])[] = [
  ['inbox_events', 'source_id,event_id'],
  ['fulfillment_effects', 'order_id,effect_type,effect_reference'],
  ['ledger_payments', 'source_id,payment_id'],
  ['ledger_decisions', 'event_key'],
  ['orders', 'order_id'],
  ['outbox_operations', 'operation_id'],
]

/** The required indexes that do not enforce. */
export async function findMissingIndexes(db: Asked, schema: string): Promise<readonly Violation[]> {
  const { rows } = await db.query(
    `select c.relname as table, (
        select string_agg(a.attname, ',' order by k.at) from unnest(i.indkey) with ordinality k(attnum, at)
        join pg_attribute a on a.attrelid = c.oid and a.attnum = k.attnum where k.at <= i.indnkeyatts) as columns
      from pg_index i join pg_class c on c.oid = i.indrelid join pg_namespace n on n.oid = c.relnamespace
      where n.nspname = $1 and i.indisunique and i.indisvalid and i.indisready and i.indimmediate`,
    [schema],
  )
  const found = new Set(rows.map(({ table, columns }) => `${table}(${sorted(columns)})`))
  return required
    .filter(([table, columns]) => !found.has(`${table}(${sorted(columns)})`))
    .map(([table, columns]) => ({
      fault: 'unique_index_missing',
      promise: 'P2',
      detail: `no valid unique index holds ${table} (${columns.replaceAll(',', ', ')})`,
    }))
}

function sorted(columns: unknown): string {
  return String(columns).split(',').sort().join(',')
}
