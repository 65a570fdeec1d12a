/**
 * Changes of what subjects may use, noted in the commit that makes them, so that somebody is told of each:
 * a row goes only in the commit of its telling. What events change is noted only where an operation is to
 * tell of it; what persons, rules and the clock change always, since nothing else of this process sees it.
 */
import type { Value } from '../postgres/executor.ts'
import type { WritePart } from '../postgres/write-parts.ts'
import type { LedgerEntitlement } from '../workflow/order.ts'
import type { LedgerBatch } from './batch.ts'
import { byteOrder } from './byte-order.ts'

/** Through which door what a subject may use changed. */
export type ChangeReason =
  'event' | 'repair' | 'redecide' | 'grant' | 'adopt' | 'shadow' | 'merge' | 'expiry'

/** A row of an order that is or was active, before and after. */
export interface ChangedRow {
  readonly orderId: string
  readonly row: LedgerEntitlement
  readonly old: LedgerEntitlement | undefined
  readonly changedBy: bigint
}

interface Change {
  readonly subject: string
  readonly orderId: string
  readonly decisionId: bigint
  readonly because: ChangeReason
}

/** The part that notes what a batch changes; null where nothing is to be told. */
export function changesPart(
  s: string,
  batch: LedgerBatch,
  rows: readonly ChangedRow[],
  tellsEvents: boolean,
): WritePart | null {
  const acts = actsOf(batch)
  if (rows.length === 0 || (!tellsEvents && acts.size === 0)) return null
  const changes = new Map<string, Change>()
  for (const { orderId, row, old, changedBy } of rows) {
    const because = acts.get(orderId) ?? 'event'
    if (!isSeen(row, old) || (because === 'event' && !tellsEvents)) continue
    const { subject } = row
    changes.set(`${orderId}\u0000${subject}`, { subject, orderId, decisionId: changedBy, because })
  }
  return changes.size === 0 ? null : notedPart(s, [...changes.values()])
}

/** Whether a subject sees the difference: a row that was dormant and stays so is none. */
function isSeen(row: LedgerEntitlement, old: LedgerEntitlement | undefined): boolean {
  if (row.active !== (old?.active ?? false)) return true
  return (
    row.active &&
    (row.quantity !== old?.quantity || row.validUntil?.getTime() !== old.validUntil?.getTime())
  )
}

/** The orders that persons or rules decided about. */
function actsOf(batch: LedgerBatch): ReadonlyMap<string, ChangeReason> {
  const acts = new Map<string, ChangeReason>()
  for (const { outcome, recordedAs } of batch.decided) {
    if (recordedAs === undefined || outcome.orderId === null) continue
    acts.set(outcome.orderId, recordedAs.kind === 'repaired' ? 'repair' : 'redecide')
  }
  return acts
}

function notedPart(s: string, changes: Change[]): WritePart {
  changes.sort((a, b) => byteOrder(a.orderId, b.orderId) || byteOrder(a.subject, b.subject))
  const column = (of: (each: Change) => string): Value => changes.map(of)
  return {
    name: 'noted',
    sql: `noted as (
      insert into ${s}entitlement_changes (subject, order_id, decision_id, because)
      select * from unnest(:1::text[], :2::text[], :3::bigint[], :4::text[]) returning 1)`,
    values: [
      column((each) => each.subject),
      column((each) => each.orderId),
      column((each) => each.decisionId.toString()),
      column((each) => each.because),
    ],
    expected: changes.length,
  }
}
