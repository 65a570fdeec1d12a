/** Requests that were answered with an error and stored nothing: counts by source, reason and minute. */
import type { Database } from '../../postgres/executor.ts'
import { rejectionReason } from '../rejection-reasons.ts'
import { counted, requiredTime, type Count, type IsoTime } from '../row-values.ts'
import { cursorForms, pageOf, readCursor, type Page, type PageRequest } from './keyset.ts'

/** Requests of one minute that were refused for one reason. */
export interface ListedRejection {
  readonly rejection_id: string
  /** As the path named it; empty where it named none that is known. */
  readonly source: string
  readonly reason: string
  /** What the reason means. */
  readonly means: string
  /** What to do about it; empty where nothing is known. */
  readonly next: string
  readonly times: Count
  readonly first_at: IsoTime
  readonly last_at: IsoTime
}

/** Which of them. */
export interface RejectionFilter extends PageRequest {
  readonly source?: string | undefined
  readonly reason?: string | undefined
  readonly from?: string | undefined
  readonly to?: string | undefined
}

/** A page, the newest first. */
export async function listRejections(
  db: Database,
  filter: RejectionFilter,
): Promise<Page<ListedRejection>> {
  const cursor = readCursor(filter.cursor, [cursorForms.number])
  const rows = await db.query<
    Omit<ListedRejection, 'means' | 'next' | 'first_at' | 'last_at'> &
      Record<'first_at' | 'last_at', Date | string>
  >({
    text: `select rejection_id, source, reason, times, first_at, last_at from ${db.schema}rejections
      where ($1::bigint is null or rejection_id < $1::bigint) and ($2::text is null or source = $2)
        and ($3::text is null or reason = $3) and ($4::timestamptz is null or last_at >= $4::timestamptz)
        and ($5::timestamptz is null or first_at < $5::timestamptz)
      order by rejection_id desc limit $6`,
    values: [
      cursor?.[0] ?? null,
      filter.source ?? null,
      filter.reason ?? null,
      filter.from ?? null,
      filter.to ?? null,
      filter.limit + 1,
    ],
  })
  return pageOf(
    rows,
    filter.limit,
    (row) => [row.rejection_id],
    (row) => ({
      ...row,
      ...rejectionReason(row.reason),
      times: counted(row.times),
      first_at: requiredTime(row.first_at),
      last_at: requiredTime(row.last_at),
    }),
  )
}
