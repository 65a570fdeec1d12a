/**
 * Names of orders. Deferring upserts a placeholder and learning upserts the order id: both write the
 * same row, so that a wait and the name it waits for cannot miss each other.
 */
import type { Database, Executor } from '../postgres/executor.ts'
import { byteOrder } from './byte-order.ts'

/** A name in the namespace of one source; source 0 and kind `order` is an order's own id. */
export interface SourceName {
  readonly sourceId: number
  readonly kind: string
  readonly value: string
}

/** The kind under which an order's own id stands in the table of names. */
export const orderKind = 'order'

/** A name as a key of a Map. */
export function nameKey(name: SourceName): string {
  return `${name.sourceId}\u0000${name.kind}\u0000${name.value}`
}

/** The order that a name leads to, and that order's workflow. */
export interface BoundName {
  readonly orderId: string
  readonly workflow: string
}

/** Looks names up, without locking them. Names that are only waited for are absent. */
export async function lookupNames(
  db: Database,
  tx: Executor,
  names: readonly SourceName[],
): Promise<ReadonlyMap<string, BoundName>> {
  const distinct = [...new Map(names.map((name) => [nameKey(name), name])).values()]
  if (distinct.length === 0) return new Map()
  const rows = await tx.query<{
    source_id: number
    kind: string
    name: string
    order_id: string
    workflow: string
  }>({
    text: `select n.source_id, n.kind, n.name, n.order_id, o.workflow
      from unnest($1::integer[], $2::text[], $3::text[]) as k(source_id, kind, name)
      cross join lateral (select * from ${db.schema}order_names n
        where n.source_id = k.source_id and n.kind = k.kind and n.name = k.name offset 0) n
      cross join lateral (select o.workflow from ${db.schema}orders o where o.order_id = n.order_id offset 0) o`,
    repeated: true,
    values: [
      distinct.map((n) => n.sourceId),
      distinct.map((n) => n.kind),
      distinct.map((n) => n.value),
    ],
  })
  return new Map(
    rows.map((row) => [
      nameKey({ sourceId: row.source_id, kind: row.kind, value: row.name }),
      { orderId: row.order_id, workflow: row.workflow },
    ]),
  )
}

/** A name to be written: bound to an order, or a placeholder (null) that is waited for. */
export interface NameWrite extends SourceName {
  readonly orderId: string | null
}

/**
 * Upserts names, sorted by the full key, and returns those whose row leads elsewhere than asked: to
 * another order, or to an order where only a placeholder was wanted. A name is never rebound.
 */
export async function writeNames(
  db: Database,
  tx: Executor,
  writes: readonly NameWrite[],
): Promise<readonly (SourceName & { readonly orderId: string })[]> {
  const wanted = new Map<string, NameWrite>()
  for (const write of writes) {
    const known = wanted.get(nameKey(write))
    if (known === undefined || known.orderId === null) wanted.set(nameKey(write), write)
  }
  const sorted = [...wanted.values()].sort(
    (a, b) => a.sourceId - b.sourceId || byteOrder(a.kind, b.kind) || byteOrder(a.value, b.value),
  )
  if (sorted.length === 0) return []
  const rows = await tx.query<{
    source_id: number
    kind: string
    name: string
    order_id: string | null
  }>({
    text: `insert into ${db.schema}order_names as n (source_id, kind, name, order_id)
      select * from unnest($1::integer[], $2::text[], $3::text[], $4::text[]) as w(source_id, kind, name, order_id)
      order by source_id, kind collate "C", name collate "C"
      on conflict (source_id, kind, name) do update set order_id = coalesce(n.order_id, excluded.order_id)
      returning source_id, kind, name, order_id`,
    repeated: true,
    values: [
      sorted.map((n) => n.sourceId),
      sorted.map((n) => n.kind),
      sorted.map((n) => n.value),
      sorted.map((n) => n.orderId),
    ],
  })
  return rows.flatMap((row) => {
    const name = { sourceId: row.source_id, kind: row.kind, value: row.name }
    const asked = wanted.get(nameKey(name))?.orderId ?? null
    return row.order_id === null || row.order_id === asked
      ? []
      : [{ ...name, orderId: row.order_id }]
  })
}
