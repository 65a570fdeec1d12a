/**
 * The ledger as the rest of the product uses it: one object over one schema.
 */
import { createHmac } from 'node:crypto'
import type { Database, Executor } from '../postgres/executor.ts'
import type { Installation } from '../postgres/migrate.ts'
import type { WritePart } from '../postgres/write-parts.ts'
import { applyBatch } from './apply.ts'
import type { LedgerBatch } from './batch.ts'
import { findingId, type FindingPolicy } from './findings.ts'
import { lockOrders, type LockedOrders, type NewOrder } from './lock-orders.ts'
import {
  lookupNames,
  nameKey,
  writeNames,
  type BoundName,
  type NameWrite,
  type SourceName,
} from './names.ts'

/** Decisions, payments, effects and entitlements of one schema. */
export interface Ledger {
  nameKey(name: SourceName): string
  lookupNames(tx: Executor, names: readonly SourceName[]): Promise<ReadonlyMap<string, BoundName>>
  lockOrders(
    tx: Executor,
    ids: readonly string[],
    openable: readonly NewOrder[],
  ): Promise<LockedOrders>
  writeNames(
    tx: Executor,
    writes: readonly NameWrite[],
  ): Promise<readonly (SourceName & { readonly orderId: string })[]>
  payers(
    tx: Executor,
    payments: readonly { readonly sourceId: number; readonly id: string }[],
  ): Promise<ReadonlyMap<string, string>>
  apply(tx: Executor, batch: LedgerBatch, inboxParts: readonly WritePart[]): Promise<void>
  findingId(kind: string, source: string, about: string): string
  derive(orderId: string, name: string): string
}

/** Creates the ledger of an installation. `tellsEvents`: an operation tells of what events change about subjects. */
export function createLedger(
  db: Database,
  installation: Installation,
  policy: FindingPolicy,
  tellsEvents = false,
): Ledger {
  const context = { installationId: installation.id, policy, tellsEvents }
  return {
    nameKey,
    lookupNames: (tx, names) => lookupNames(db, tx, names),
    lockOrders: (tx, ids, openable) => lockOrders(db, tx, ids, openable),
    writeNames: (tx, writes) => writeNames(db, tx, writes),
    payers: (tx, payments) => payers(db, tx, payments),
    apply: (tx, batch, parts) => applyBatch(db, tx, batch, context, parts),
    findingId: (kind, source, about) => findingId(installation.id, kind, source, about),
    derive: (orderId, name) =>
      createHmac('sha256', installation.secret)
        .update(JSON.stringify([orderId, name]))
        .digest('hex'),
  }
}

async function payers(
  db: Database,
  tx: Executor,
  payments: readonly { readonly sourceId: number; readonly id: string }[],
): Promise<ReadonlyMap<string, string>> {
  if (payments.length === 0) return new Map()
  const rows = await tx.query<{ source_id: number; payment_id: string; order_id: string }>({
    text: `select p.source_id, p.payment_id, p.order_id
      from unnest($1::integer[], $2::text[]) as k(source_id, payment_id)
      cross join lateral (select * from ${db.schema}ledger_payments p
        where p.source_id = k.source_id and p.payment_id = k.payment_id offset 0) p`,
    repeated: true,
    values: [payments.map((each) => each.sourceId), payments.map((each) => each.id)],
  })
  return new Map(rows.map((row) => [`${row.source_id}\n${row.payment_id}`, row.order_id]))
}
