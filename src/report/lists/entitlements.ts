/** Who may use what, by subject: as orders state it, and as it counts over all of them. */
import type { Database } from '../../postgres/executor.ts'
import { isoTime, type IsoTime } from '../row-values.ts'
import {
  cursorForms,
  pageOf,
  pastPrefix,
  readCursor,
  type Page,
  type PageRequest,
} from './keyset.ts'

/** What one order entitles a subject to. */
export interface ListedEntitlement {
  readonly subject: string
  readonly entitlement: string
  readonly order_id: string
  readonly quantity: string | null
  readonly valid_until: IsoTime | null
  /** The order entitles to it and its end has not come. */
  readonly in_force: boolean
  readonly granted_by: string | null
  readonly changed_by: string
}

/** Which of them. */
export interface EntitlementFilter extends PageRequest {
  /** The beginning of a subject. */
  readonly subject?: string | undefined
  readonly entitlement?: string | undefined
  readonly order_id?: string | undefined
  /** Only those in force. */
  readonly in_force?: boolean | undefined
}

/** The statement, exported so that its plan can be asserted. */
export function entitlementsStatement(s: string): string {
  return `select e.subject, e.entitlement, e.order_id, e.quantity, e.valid_until,
      e.active and (e.valid_until is null or e.valid_until > now()) as in_force, e.granted_by, e.changed_by
    from ${s}entitlements e
    where ($1::text is null or (e.subject, e.entitlement, e.order_id) > ($1, $2, $3))
      and ($1::text is null or e.subject >= $1)
      and ($5::text is null or (e.subject >= $5 and e.subject < $6))
      and ($7::text is null or e.entitlement = $7) and ($8::text is null or e.order_id = $8)
      and (not $9::boolean or (e.active and (e.valid_until is null or e.valid_until > now())))
    order by e.subject, e.entitlement, e.order_id limit $4`
}

/** A page of entitlements. */
export async function listEntitlements(
  db: Database,
  filter: EntitlementFilter,
): Promise<Page<ListedEntitlement>> {
  const { text } = cursorForms
  const cursor = readCursor(filter.cursor, [text, text, text])
  const rows = await db.query<
    Omit<ListedEntitlement, 'valid_until'> & { readonly valid_until: Date | string | null }
  >({
    text: entitlementsStatement(db.schema),
    values: [
      cursor?.[0] ?? null,
      cursor?.[1] ?? null,
      cursor?.[2] ?? null,
      filter.limit + 1,
      filter.subject ?? null,
      filter.subject === undefined ? null : pastPrefix(filter.subject),
      filter.entitlement ?? null,
      filter.order_id ?? null,
      filter.in_force === true,
    ],
  })
  return pageOf(
    rows,
    filter.limit,
    (row) => [row.subject, row.entitlement, row.order_id],
    (row) => ({ ...row, valid_until: isoTime(row.valid_until) }),
  )
}
