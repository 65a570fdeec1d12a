/** Passes over the providers' records as a list, the newest first. */
import type { Database } from '../../postgres/executor.ts'
import { runColumns, runView, type RunRow, type RunView } from '../reconciliation.ts'
import { cursorForms, pageOf, readCursor, type Page, type PageRequest } from './keyset.ts'

/** Which passes. */
export interface RunFilter extends PageRequest {
  readonly source?: string | undefined
  readonly state?: string | undefined
}

/** A page of passes. */
export async function listRuns(db: Database, filter: RunFilter): Promise<Page<RunView>> {
  const cursor = readCursor(filter.cursor, [cursorForms.moment, cursorForms.uuid])
  const rows = await db.query<RunRow & { readonly started_text: string }>({
    text: `select ${runColumns}, r.started_at::text as started_text from ${db.schema}reconciliation_runs r
      where ($1::timestamptz is null or r.started_at < $1::timestamptz
          or (r.started_at = $1::timestamptz and r.run_id > $2::uuid))
        and ($3::text is null or r.source = $3) and ($4::text is null or r.state = $4)
      order by r.started_at desc, r.run_id limit $5`,
    values: [
      cursor?.[0] ?? null,
      cursor?.[1] ?? null,
      filter.source ?? null,
      filter.state ?? null,
      filter.limit + 1,
    ],
  })
  return pageOf(
    rows,
    filter.limit,
    (row) => [row.started_text, row.run_id],
    ({ started_text: _, ...row }) => runView(row),
  )
}
