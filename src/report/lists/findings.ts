/** Findings as a list: those that are open by when they are due, all of them by when they were seen first. */
import type { Database, Value } from '../../postgres/executor.ts'
import { keyedPlans } from '../../postgres/keyed-plans.ts'
import { findingsWith, type FindingView } from '../findings.ts'
import { cursorForms, pageOf, readCursor, stopOf, type Page, type PageRequest } from './keyset.ts'

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
  const { keys, stop } = await findKeys(db, filter)
  const shown = keys.slice(0, filter.limit).map(({ finding_id: id }) => id)
  const views = new Map((await findingsWith(db, shown)).map((view) => [view.finding_id, view]))
  return pageOf(
    keys,
    filter.limit,
    ({ at, finding_id: id }) => [at, id],
    // findings are never removed
    ({ finding_id: id }) => views.get(id) as FindingView,
    stop,
  )
}

interface FoundKeys {
  readonly keys: readonly { readonly finding_id: string; readonly at: string }[]
  readonly stop: readonly string[] | null
}

/** Open ones along the index by their due date, all of them along the index by when they were first seen. */
async function findKeys(db: Database, filter: FindingListFilter): Promise<FoundKeys> {
  const cursor = readCursor(filter.cursor, [cursorForms.moment, cursorForms.uuid])
  const values: Value[] = []
  const bind = (value: Value): string => `$${values.push(value)}`
  const isOpen = filter.state === 'unfinished' || filter.overdue === true
  const by = isOpen ? 'f.due_at' : 'f.first_seen_at'
  const order = `order by ${by} ${isOpen ? '' : 'desc'}, f.finding_id`
  const [past, before] = isOpen ? ['>', '<'] : ['<', '>']
  const along: string[] = [isOpen ? `f.state in ('open', 'repairing')` : 'true']
  if (cursor !== null) {
    const [moment, last] = [bind(cursor[0] ?? ''), bind(cursor[1] ?? '')]
    along.push(
      `(${by} ${past} ${moment}::timestamptz or (${by} = ${moment}::timestamptz and f.finding_id > ${last}::uuid))
        and ${by} ${past}= ${moment}::timestamptz`,
    )
  }
  // those of an order are few, and found by the order whatever statistics say
  const rows =
    filter.order_id === undefined
      ? `${db.schema}findings`
      : `(select * from ${db.schema}findings where order_id = ${bind(filter.order_id)} offset 0)`
  const from = `from ${rows} f where `
  if (filter.overdue === true) along.push('f.due_at < now()')
  const atStart = [...values]
  const looked: string[] = []
  if (!isOpen && filter.state !== undefined) looked.push(`f.state = ${bind(filter.state)}`)
  for (const name of ['class', 'kind', 'owner'] as const) {
    const value = filter[name]
    if (value !== undefined) looked.push(`f.${name} = ${bind(value)}`)
  }
  return db.transaction(
    async (tx) => {
      const stop =
        looked.length === 0
          ? null
          : await stopOf(tx, {
              text: `select array[${by}::text, f.finding_id::text] ${from} ${along.join(' and ')} ${order}`,
              values: atStart,
            })
      if (stop !== null) {
        const [moment, last] = [bind(stop[0] ?? ''), bind(stop[1] ?? '')]
        looked.push(
          `(${by} ${before} ${moment}::timestamptz or (${by} = ${moment}::timestamptz and f.finding_id <= ${last}::uuid))
            and ${by} ${before}= ${moment}::timestamptz`,
        )
      }
      const keys = await tx.query<{ readonly finding_id: string; readonly at: string }>({
        text: `select f.finding_id::text as finding_id, ${by}::text as at ${from} ${[...along, ...looked].join(' and ')}
          ${order} limit ${bind(filter.limit + 1)}`,
        values,
      })
      return { keys, stop }
    },
    { setup: keyedPlans },
  )
}
