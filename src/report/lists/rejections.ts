/** Requests that were answered with an error and stored nothing: counts by source, reason and minute. */
import type { Database } from '../../postgres/executor.ts'
import { keyedPlans } from '../../postgres/keyed-plans.ts'
import { rejectionReason } from '../rejection-reasons.ts'
import { counted, requiredTime, type Count, type IsoTime } from '../row-values.ts'
import { cursorForms, pageOf, readCursor, stopOf, type Page, type PageRequest } from './keyset.ts'

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
  const before = readCursor(filter.cursor, [cursorForms.number])?.[0] ?? null
  const along = `from ${db.schema}rejections where ($1::bigint is null or rejection_id < $1::bigint)`
  const order = 'order by rejection_id desc'
  const { source, reason, from, to } = filter
  const isFiltered = [source, reason, from, to].some((each) => each !== undefined)
  return db.transaction(
    async (tx) => {
      const text = `select array[rejection_id::text] ${along} ${order}`
      const stop = isFiltered ? await stopOf(tx, { text, values: [before] }) : null
      const rows = await tx.query<RejectionRow>({
        text: `select rejection_id, source, reason, times, first_at, last_at ${along}
            and ($3::text is null or source = $3) and ($4::text is null or reason = $4)
            and ($5::timestamptz is null or last_at >= $5::timestamptz)
            and ($6::timestamptz is null or first_at < $6::timestamptz)
            and ($7::bigint is null or rejection_id >= $7::bigint)
          ${order} limit $2`,
        values: [
          before,
          filter.limit + 1,
          source ?? null,
          reason ?? null,
          from ?? null,
          to ?? null,
          stop?.[0] ?? null,
        ],
      })
      return pageOf(rows, filter.limit, (row) => [row.rejection_id], viewOf, stop)
    },
    { setup: keyedPlans },
  )
}

type RejectionRow = Omit<ListedRejection, 'means' | 'next' | 'first_at' | 'last_at'> &
  Record<'first_at' | 'last_at', Date | string>

function viewOf(row: RejectionRow): ListedRejection {
  return {
    ...row,
    ...rejectionReason(row.reason),
    times: counted(row.times),
    first_at: requiredTime(row.first_at),
    last_at: requiredTime(row.last_at),
  }
}
