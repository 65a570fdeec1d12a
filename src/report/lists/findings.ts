/** Findings as a list: those that are open by when they are due, all of them by when they were seen first. */
import type { Database, Value } from '../../postgres/executor.ts'
import { findingsWith, type FindingView } from '../findings.ts'
import { cursorForms, pageOf, readCursor, type Page, type PageRequest } from './keyset.ts'

/** Which findings. */
export interface FindingListFilter extends PageRequest {
  /** `unfinished`: open or repairing. */
  readonly state?: 'unfinished' | 'open' | 'repairing' | 'closed' | 'dismissed' | undefined
  readonly class?: string | undefined
  readonly kind?: string | undefined
  readonly owner?: string | undefined
  readonly order_id?: string | undefined
  readonly overdue?: boolean | undefined
}

/** A page of findings. */
export async function listFindingPage(
  db: Database,
  filter: FindingListFilter,
): Promise<Page<FindingView>> {
  const { text, values } = findingsStatement(db.schema, filter)
  const keys = await db.query<{ readonly finding_id: string; readonly at: string }>({
    text,
    values,
  })
  const shown = keys.slice(0, filter.limit).map(({ finding_id: id }) => id)
  const views = new Map((await findingsWith(db, shown)).map((view) => [view.finding_id, view]))
  return pageOf(
    keys,
    filter.limit,
    ({ at, finding_id: id }) => [at, id],
    // findings are never removed
    ({ finding_id: id }) => views.get(id) as FindingView,
  )
}

/** The statement, exported so that its plan can be asserted. */
export function findingsStatement(
  s: string,
  filter: FindingListFilter,
): { readonly text: string; readonly values: readonly Value[] } {
  const cursor = readCursor(filter.cursor, [cursorForms.moment, cursorForms.uuid])
  const values: Value[] = [filter.limit + 1]
  const bind = (value: Value): string => `$${values.push(value)}`
  const isOpen = filter.state === 'unfinished' || filter.overdue === true
  const where: string[] = []
  if (isOpen) where.push(`f.state in ('open', 'repairing')`)
  else if (filter.state !== undefined) where.push(`f.state = ${bind(filter.state)}`)
  const by = isOpen ? 'f.due_at' : 'f.first_seen_at'
  if (cursor !== null) {
    const [at = '', id = ''] = cursor
    const [moment, last] = [bind(at), bind(id)]
    const past = isOpen ? '>' : '<'
    where.push(
      `(${by} ${past} ${moment}::timestamptz or (${by} = ${moment}::timestamptz and f.finding_id > ${last}::uuid))`,
    )
  }
  for (const name of ['class', 'kind', 'owner', 'order_id'] as const) {
    const value = filter[name]
    if (value !== undefined) where.push(`f.${name} = ${bind(value)}`)
  }
  if (filter.overdue === true) where.push('f.due_at < now()')
  const text = `select f.finding_id::text as finding_id, ${by}::text as at from ${s}findings f
    ${where.length === 0 ? '' : `where ${where.join(' and ')}`}
    order by ${by} ${isOpen ? '' : 'desc'}, f.finding_id limit $1`
  return { text, values }
}
