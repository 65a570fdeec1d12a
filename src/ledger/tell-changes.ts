/**
 * Takes noted changes off their list, with what their subjects may use now, for whoever tells of them in the
 * same transaction. Of two tellings about a subject the one with the higher number has read the later state:
 * numbers are taken before reading, and every change was committed before it is told.
 */
import type { Database, Executor } from '../postgres/executor.ts'
import type { ChangeReason } from './entitlement-changes.ts'
import { entitlementsOf, type CurrentEntitlement } from './current-entitlements.ts'
import { presentSubjects } from './merge-subjects.ts'

/** A change of what a subject may use, as it is told. */
export interface ToldChange {
  readonly changeId: bigint
  /** What the subject is now; of one that was merged away by this very change, itself. */
  readonly subject: string
  /** The subject that it became, where this change is its merge. */
  readonly mergedInto: string | null
  readonly because: ChangeReason
  /** The order whose decision or end changed it; null for a merge. */
  readonly orderId: string | null
  readonly decisionId: bigint | null
  /** What ended, and when, where it ended by the clock. */
  readonly ended: { readonly entitlement: string; readonly at: Date } | null
  /** All that the subject may use now. */
  readonly entitlements: readonly CurrentEntitlement[]
  /** Of two tellings about one subject the higher one has the later state. */
  readonly version: bigint
}

/** Most changes of one telling. */
const most = 200

/**
 * Takes changes in the transaction that `tx` is in; they are gone once that commits. Only those that were noted
 * before it began: what a subject may use is read by the moment at which the transaction began.
 */
export async function takeChanges(db: Database, tx: Executor): Promise<readonly ToldChange[]> {
  const s = db.schema
  const rows = await tx.query<{
    change_id: string
    subject: string
    order_id: string | null
    decision_id: string | null
    because: ChangeReason
    entitlement: string | null
    ended_at: Date | string | null
    version: string
  }>({
    text: `delete from ${s}entitlement_changes where change_id in (
        select change_id from ${s}entitlement_changes where changed_at <= now() order by change_id limit ${most} for update skip locked)
      returning change_id, subject, order_id, decision_id, because, entitlement, ended_at,
        nextval('${s}entitlement_telling_seq') as version`,
  })
  if (rows.length === 0) return []
  rows.sort((a, b) => Number(BigInt(a.change_id) - BigInt(b.change_id)))
  const present = await presentSubjects(
    db,
    tx,
    rows.map((row) => row.subject),
  )
  const now = await entitlementsOf(s, tx, [...new Set(present.values())])
  return rows.map((row) => {
    const subject = present.get(row.subject) ?? row.subject
    const isGone = row.because === 'merge' && subject !== row.subject
    return {
      changeId: BigInt(row.change_id),
      subject: isGone ? row.subject : subject,
      mergedInto: isGone ? subject : null,
      because: row.because,
      orderId: row.order_id,
      decisionId: row.decision_id === null ? null : BigInt(row.decision_id),
      ended:
        row.entitlement === null || row.ended_at === null
          ? null
          : { entitlement: row.entitlement, at: new Date(row.ended_at) },
      entitlements: isGone ? [] : (now.get(subject) ?? []),
      version: BigInt(row.version),
    }
  })
}
