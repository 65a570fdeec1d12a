/** Who may use what, by subject: as orders state it, and as it counts over all of them. */
import type { Database } from '../../postgres/executor.ts'
import { keyedPlans } from '../../postgres/keyed-plans.ts'
import { isoTime, type IsoTime } from '../row-values.ts'
import {
  cursorForms,
  pageOf,
  pastPrefix,
  readCursor,
  stopOf,
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

/** A page of entitlements. */
export async function listEntitlements(
  db: Database,
  filter: EntitlementFilter,
): Promise<Page<ListedEntitlement>> {
  const s = db.schema
  const { text } = cursorForms
  const cursor = readCursor(filter.cursor, [text, text, text])
  const from = [
    cursor?.[0] ?? null,
    cursor?.[1] ?? null,
    cursor?.[2] ?? null,
    filter.subject ?? null,
    filter.subject === undefined ? null : pastPrefix(filter.subject),
    filter.order_id ?? null,
  ]
  // what an order entitles to is little, and found by the order whatever statistics say
  const rows =
    filter.order_id === undefined
      ? `${s}entitlements`
      : `(select * from ${s}entitlements where order_id = $6 offset 0)`
  const along = `from ${rows} e
    where ($1::text is null or (e.subject, e.entitlement, e.order_id) > ($1, $2, $3)) and ($1::text is null or e.subject >= $1)
      and ($4::text is null or (e.subject >= $4 and e.subject < $5)) and e.order_id = coalesce($6::text, e.order_id)`
  const order = 'order by e.subject, e.entitlement, e.order_id'
  const isFiltered = filter.entitlement !== undefined || filter.in_force === true
  return db.transaction(
    async (tx) => {
      const stop = isFiltered
        ? await stopOf(tx, {
            text: `select array[e.subject, e.entitlement, e.order_id] ${along} ${order}`,
            values: from,
          })
        : null
      const found = await tx.query<
        Omit<ListedEntitlement, 'valid_until'> & { readonly valid_until: Date | string | null }
      >({
        text: `select e.subject, e.entitlement, e.order_id, e.quantity, e.valid_until,
            e.active and (e.valid_until is null or e.valid_until > now()) as in_force, e.granted_by, e.changed_by
          ${along} and ($8::text is null or e.entitlement = $8)
            and (not $9::boolean or (e.active and (e.valid_until is null or e.valid_until > now())))
            and ($10::text is null or (e.subject, e.entitlement, e.order_id) <= ($10, $11, $12))
            and ($10::text is null or e.subject <= $10)
          ${order} limit $7`,
        values: [
          ...from,
          filter.limit + 1,
          filter.entitlement ?? null,
          filter.in_force === true,
          stop?.[0] ?? null,
          stop?.[1] ?? null,
          stop?.[2] ?? null,
        ],
      })
      return pageOf(
        found,
        filter.limit,
        (row) => [row.subject, row.entitlement, row.order_id],
        (row) => ({ ...row, valid_until: isoTime(row.valid_until) }),
        stop,
      )
    },
    // a stretch that is most of the table would be sorted instead
    { setup: `${keyedPlans}; set local enable_sort = off` },
  )
}
