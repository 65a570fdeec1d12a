/**
 * Effects and payments that are there twice. While the unique indexes stand that cannot be, and nothing is
 * read; where one is gone, the whole table is, since nothing less can tell.
 */
import type { Executor } from '../../postgres/executor.ts'
import { finding } from '../../workflow/finding-kinds.ts'
import type { CompareContext } from '../compare-context.ts'
import type { Discrepancy } from '../ports.ts'
import { local } from './local-discrepancy.ts'

const most = 1000

/** What is there twice; null where the indexes stand, so that nothing can be. */
export async function twofold({
  db,
}: Pick<CompareContext, 'db'>): Promise<readonly Discrepancy[] | null> {
  const effectsHold = await isUnique(db, db.schemaName, 'fulfillment_effects_pkey')
  const paymentsHold = await isUnique(db, db.schemaName, 'ledger_payments_pkey')
  if (effectsHold && paymentsHold) return null
  return [
    ...(effectsHold ? [] : await effectsTwice(db, db.schema)),
    ...(paymentsHold ? [] : await paymentsTwice(db, db.schema)),
  ]
}

async function isUnique(
  db: Pick<Executor, 'query'>,
  schemaName: string,
  index: string,
): Promise<boolean> {
  const rows = await db.query({
    text: `select 1 from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_index i on i.indexrelid = c.oid
      where n.nspname = $1 and c.relname = $2 and i.indisunique and i.indisvalid and i.indisready`,
    values: [schemaName, index],
  })
  return rows.length > 0
}

async function effectsTwice(db: Pick<Executor, 'query'>, s: string): Promise<Discrepancy[]> {
  const rows = await db.query<{ order_id: string; type: string; reference: string; times: string }>(
    {
      text: `select order_id, effect_type as type, effect_reference as reference, count(*)::text as times
      from ${s}fulfillment_effects group by 1, 2, 3 having count(*) > 1 order by 1, 2, 3 limit ${most}`,
    },
  )
  return rows.map(({ order_id: order, type, reference, times }) => {
    const figures = { order, effect: type, reference, times }
    return local(finding('fulfilled_twice', `effect:${order}:${type}:${reference}`, figures), order)
  })
}

async function paymentsTwice(db: Pick<Executor, 'query'>, s: string): Promise<Discrepancy[]> {
  const rows = await db.query<{ source_id: number; payment: string; orders: string[] }>({
    text: `select source_id, payment_id as payment, array_agg(order_id order by order_id) as orders
      from ${s}ledger_payments group by 1, 2 having count(*) > 1 order by 1, 2 limit ${most}`,
  })
  return rows.map(({ source_id: sourceId, payment, orders }) => {
    const [order = null, other = null] = orders
    const figures = { order, other_order: other, payment }
    return local(finding('fulfilled_twice', `payment:${sourceId}:${payment}`, figures), order)
  })
}
