/** Workflows in shadow for people: since when, and where they differ from the app's own answers. Read-only. */
import type { Database } from '../postgres/executor.ts'
import { counted, requiredTime, type Count, type IsoTime } from './row-values.ts'

/** What is in shadow, and how the last comparison came out; the keys are what `--json` prints. */
export interface ShadowStatus {
  readonly workflows: readonly { readonly workflow: string; readonly since: IsoTime }[]
  /** Null where nothing was compared yet. */
  readonly last: {
    readonly compared_at: IsoTime
    readonly subjects: Count
    readonly differences: Count
    readonly too_young: Count
  } | null
}

/** One difference, as it is listed. */
export interface ShadowDifferenceView {
  readonly subject: string
  readonly entitlement: string
  readonly kind: string
  readonly here: unknown
  readonly there: unknown
  readonly order_ids: readonly string[]
  readonly first_seen_at: IsoTime
  readonly last_seen_at: IsoTime
}

/** What is in shadow; null where nothing is. */
export async function shadowStatus(db: Database): Promise<ShadowStatus | null> {
  const s = db.schema
  const workflows = await db.query<{ workflow: string; since: Date | string }>({
    text: `select workflow, since from ${s}shadow_workflows where ended_at is null order by workflow`,
  })
  if (workflows.length === 0) return null
  const [last] = await db.query<{
    compared_at: Date | string
    subjects: string
    differences: string
    too_young: string
  }>({ text: `select compared_at, subjects, differences, too_young from ${s}shadow_comparisons` })
  return {
    workflows: workflows.map((row) => ({ ...row, since: requiredTime(row.since) })),
    last:
      last === undefined
        ? null
        : {
            compared_at: requiredTime(last.compared_at),
            subjects: counted(last.subjects),
            differences: counted(last.differences),
            too_young: counted(last.too_young),
          },
  }
}

/** The differences that the last comparison left, by subject. */
export async function listShadowDifferences(
  db: Database,
  limit: number,
): Promise<ShadowDifferenceView[]> {
  const rows = await db.query<
    Omit<ShadowDifferenceView, 'first_seen_at' | 'last_seen_at'> &
      Record<'first_seen_at' | 'last_seen_at', Date | string>
  >({
    text: `select subject, entitlement, kind, here, there, order_ids, first_seen_at, last_seen_at
      from ${db.schema}shadow_differences order by subject, entitlement limit $1::integer`,
    values: [limit],
  })
  return rows.map((row) => ({
    ...row,
    first_seen_at: requiredTime(row.first_seen_at),
    last_seen_at: requiredTime(row.last_seen_at),
  }))
}
