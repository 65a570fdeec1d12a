/** What a subject may use now: what the app asks on every request. */
import type { Database, Executor } from '../postgres/executor.ts'
import { presentSubject } from '../postgres/present-subject.ts'

/** One entitlement of a subject, combined over its orders as declared. */
export interface CurrentEntitlement {
  readonly entitlement: string
  readonly quantity: number
  /** Null: without an end. */
  readonly validUntil: Date | null
}

/**
 * Reads what a subject is entitled to at this moment of the database's clock; of one that was merged, what
 * the subject that it became is entitled to.
 */
export async function currentEntitlements(
  db: Pick<Database, 'schema'> & Pick<Executor, 'query'>,
  subject: string,
): Promise<CurrentEntitlement[]> {
  const rows = await db.query<EntitlementRow>({
    text: `select entitlement, quantity, valid_until from ${db.schema}current_entitlements
      where subject = ${presentSubject(db.schema, '$1::text')} order by entitlement`,
    values: [subject],
  })
  return rows.map(read)
}

interface EntitlementRow {
  entitlement: string
  quantity: string
  valid_until: Date | string | null
}

function read({ entitlement, quantity, valid_until: until }: EntitlementRow): CurrentEntitlement {
  return {
    entitlement,
    quantity: Number(quantity),
    validUntil: until === null ? null : new Date(until),
  }
}

/** The same for several subjects that were not merged into others; those without any are absent. */
export async function entitlementsOf(
  schema: string,
  tx: Pick<Executor, 'query'>,
  subjects: readonly string[],
): Promise<ReadonlyMap<string, readonly CurrentEntitlement[]>> {
  const rows = await tx.query<EntitlementRow & { subject: string }>({
    text: `select subject, entitlement, quantity, valid_until from ${schema}current_entitlements
      where subject = any ($1::text[]) order by subject, entitlement`,
    values: [subjects],
  })
  const found = new Map<string, CurrentEntitlement[]>()
  for (const row of rows) {
    const list = found.get(row.subject) ?? []
    list.push(read(row))
    found.set(row.subject, list)
  }
  return found
}
