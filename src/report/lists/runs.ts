/** Passes over the providers' records as a list, the newest first. */
import type { Database } from '../../postgres/executor.ts'
import { keyedPlans } from '../../postgres/keyed-plans.ts'
import { runColumns, runView, type RunRow, type RunView } from '../reconciliation.ts'
import { cursorForms, pageOf, readCursor, stopOf, type Page, type PageRequest } from './keyset.ts'

/** Which passes. */
export interface RunFilter extends PageRequest {
  readonly source?: string | undefined
  readonly state?: string | undefined
}

/** A page of passes. */
export async function listRuns(db: Database, filter: RunFilter): Promise<Page<RunView>> {
  const [at = null, id = null] =
    readCursor(filter.cursor, [cursorForms.moment, cursorForms.uuid]) ?? []
  const from = [at, id]
  const along = `from ${db.schema}reconciliation_runs r
    where ($1::timestamptz is null or r.started_at < $1::timestamptz
        or (r.started_at = $1::timestamptz and r.run_id > $2::uuid))
      and ($1::timestamptz is null or r.started_at <= $1::timestamptz)`
  const order = 'order by r.started_at desc, r.run_id'
  const isFiltered = filter.source !== undefined || filter.state !== undefined
  return db.transaction(
    async (tx) => {
      const text = `select array[r.started_at::text, r.run_id::text] ${along} ${order}`
      const stop = isFiltered ? await stopOf(tx, { text, values: from }) : null
      const rows = await tx.query<RunRow & { readonly started_text: string }>({
        text: `select ${runColumns}, r.started_at::text as started_text ${along}
            and ($4::text is null or r.source = $4) and ($5::text is null or r.state = $5)
            and ($6::timestamptz is null or r.started_at > $6::timestamptz
              or (r.started_at = $6::timestamptz and r.run_id <= $7::uuid))
            and ($6::timestamptz is null or r.started_at >= $6::timestamptz)
          ${order} limit $3`,
        values: [
          ...from,
          filter.limit + 1,
          filter.source ?? null,
          filter.state ?? null,
          stop?.[0] ?? null,
          stop?.[1] ?? null,
        ],
      })
      return pageOf(
        rows,
        filter.limit,
        (row) => [row.started_text, row.run_id],
        ({ started_text: _, ...row }) => runView(row),
        stop,
      )
    },
    { setup: keyedPlans },
  )
}
