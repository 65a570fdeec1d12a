/** What a subject may use now: what the app asks on every request. */
import type { Database } from '../postgres/executor.ts'

/** One entitlement of a subject, combined over its orders as declared. */
export interface CurrentEntitlement {
  readonly entitlement: string
  readonly quantity: number
  /** Null: without an end. */
  readonly validUntil: Date | null
}

/** Reads what a subject is entitled to at this moment of the database's clock. */
export async function currentEntitlements(
  db: Database,
  subject: string,
): Promise<CurrentEntitlement[]> {
  const rows = await db.query<{
    entitlement: string
    quantity: string
    valid_until: Date | string | null
  }>({
    text: `select entitlement, quantity, valid_until from ${db.schema}current_entitlements
      where subject = $1 order by entitlement`,
    values: [subject],
  })
  return rows.map((row) => ({
    entitlement: row.entitlement,
    quantity: Number(row.quantity),
    validUntil: row.valid_until === null ? null : new Date(row.valid_until),
  }))
}
