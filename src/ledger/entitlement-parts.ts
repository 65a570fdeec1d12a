/**
 * The difference between the entitlements that stood and those that should. The rows of an order are
 * written under its lock only, so that what was read is what there is: new rows are inserted without a
 * conflict clause, and one that somebody made past the lock fails the whole statement.
 */
import type { Value } from '../postgres/executor.ts'
import type { WritePart } from '../postgres/write-parts.ts'
import type { LedgerEntitlement } from '../workflow/order.ts'
import type { OutcomeKind } from '../workflow/outcome.ts'
import type { LedgerBatch } from './batch.ts'
import { byteOrder } from './byte-order.ts'
import { changesPart, type ChangedRow } from './entitlement-changes.ts'

/** Only these change what an order entitles to. */
const changing: ReadonlySet<OutcomeKind> = new Set(['fulfilled', 'moved', 'reversed'])

/** Inserts what is new and updates what changed; `tellsEvents`: whoever is to be told of it is, too. */
export function entitlementParts(s: string, batch: LedgerBatch, tellsEvents: boolean): WritePart[] {
  const { added, changed } = differences(batch)
  const parts: WritePart[] = []
  if (added.length > 0) {
    parts.push({
      name: 'entitled',
      sql: `entitled as (
        insert into ${s}entitlements (order_id, subject, entitlement, quantity, valid_until, active, stated, granted_by, changed_by)
        select * from unnest(${columns}) returning 1)`,
      values: valuesOf(added),
      expected: added.length,
    })
  }
  if (changed.length > 0) {
    parts.push({
      name: 'restated',
      sql: `restated as (
        update ${s}entitlements e set quantity = n.quantity, valid_until = n.valid_until, active = n.active, stated = n.stated,
          granted_by = n.granted_by, changed_by = n.changed_by, version = e.version + 1
        from unnest(${columns})
          as n(order_id, subject, entitlement, quantity, valid_until, active, stated, granted_by, changed_by)
        where e.order_id = n.order_id and e.subject = n.subject and e.entitlement = n.entitlement returning 1)`,
      values: valuesOf(changed),
      expected: changed.length,
    })
  }
  const told = changesPart(s, batch, [...added, ...changed], tellsEvents)
  return told === null ? parts : [...parts, told]
}

const columns =
  ':1::text[], :2::text[], :3::text[], :4::bigint[], :5::timestamptz[], :6::boolean[], :7::boolean[], :8::bigint[], :9::bigint[]'

function valuesOf(rows: readonly ChangedRow[]): Value[] {
  return [
    rows.map((each) => each.orderId),
    rows.map((each) => each.row.subject),
    rows.map((each) => each.row.entitlement),
    rows.map((each) => each.row.quantity),
    rows.map((each) => each.row.validUntil?.toISOString() ?? null),
    rows.map((each) => each.row.active),
    rows.map((each) => each.row.stated),
    rows.map((each) => each.row.grantedBy?.toString() ?? null),
    rows.map((each) => each.changedBy.toString()),
  ]
}

function differences(batch: LedgerBatch): {
  readonly added: ChangedRow[]
  readonly changed: ChangedRow[]
} {
  const latest = new Map<string, bigint>()
  for (const { outcome: o } of batch.decided) {
    if (o.orderId !== null && changing.has(o.kind)) latest.set(o.orderId, o.decisionId)
  }
  const added: ChangedRow[] = []
  const changed: ChangedRow[] = []
  for (const { id: orderId, entitlements } of batch.after.values()) {
    const earlier = batch.before.get(orderId)?.entitlements ?? []
    for (const row of entitlements) {
      const old = earlier.find(
        (each) => each.subject === row.subject && each.entitlement === row.entitlement,
      )
      if (old !== undefined && isSame(row, old)) continue
      const written = { orderId, row, old, changedBy: latest.get(orderId) ?? row.grantedBy ?? 0n }
      if (old === undefined) added.push(written)
      else changed.push(written)
    }
  }
  return { added: added.sort(byKey), changed: changed.sort(byKey) }
}

function byKey(a: ChangedRow, b: ChangedRow): number {
  return (
    byteOrder(a.orderId, b.orderId) ||
    byteOrder(a.row.subject, b.row.subject) ||
    byteOrder(a.row.entitlement, b.row.entitlement)
  )
}

function isSame(a: LedgerEntitlement, b: LedgerEntitlement): boolean {
  return (
    a === b ||
    (a.quantity === b.quantity &&
      a.validUntil?.getTime() === b.validUntil?.getTime() &&
      a.active === b.active &&
      a.stated === b.stated &&
      a.grantedBy === b.grantedBy)
  )
}
