/** Orders as a list, those opened last first; and the subjects that have any. */
import type { Database, Value } from '../../postgres/executor.ts'
import { requiredTime, type IsoTime } from '../row-values.ts'
import {
  cursorForms,
  pageOf,
  pastPrefix,
  readCursor,
  type Page,
  type PageRequest,
} from './keyset.ts'

/** An order in a list. */
export interface ListedOrder {
  readonly order_id: string
  readonly workflow: string
  readonly state: string
  readonly entitles: boolean
  readonly subject: string | null
  readonly expected_amount: string | null
  readonly currency: string | null
  readonly opened_at: IsoTime
  readonly updated_at: IsoTime
}

/** Which orders. */
export interface OrderFilter extends PageRequest {
  readonly workflow?: string | undefined
  readonly state?: string | undefined
  readonly subject?: string | undefined
  /** The beginning of an id. */
  readonly text?: string | undefined
  readonly from?: string | undefined
  readonly to?: string | undefined
}

/** A page of orders. */
export async function listOrders(db: Database, filter: OrderFilter): Promise<Page<ListedOrder>> {
  const { text, values } = ordersStatement(db.schema, filter)
  const rows = await db.query<OrderRow>({ text, values })
  return pageOf(
    rows,
    filter.limit,
    (row) => [row.opened_text, row.order_id],
    ({ opened_text: _, ...row }) => ({
      ...row,
      opened_at: requiredTime(row.opened_at),
      updated_at: requiredTime(row.updated_at),
    }),
  )
}

/** The statement, exported so that its plan can be asserted. */
export function ordersStatement(
  s: string,
  filter: OrderFilter,
): { readonly text: string; readonly values: readonly Value[] } {
  const cursor = readCursor(filter.cursor, [cursorForms.moment, cursorForms.text])
  const values: Value[] = [filter.limit + 1]
  const bind = (value: Value): string => `$${values.push(value)}`
  const where: string[] = []
  if (cursor !== null) {
    const [at = '', id = ''] = cursor
    const [moment, order] = [bind(at), bind(id)]
    where.push(
      `(o.opened_at < ${moment}::timestamptz or (o.opened_at = ${moment}::timestamptz and o.order_id > ${order}))
        and o.opened_at <= ${moment}::timestamptz`,
    )
  }
  if (filter.workflow !== undefined) where.push(`o.workflow = ${bind(filter.workflow)}`)
  if (filter.state !== undefined) where.push(`o.state = ${bind(filter.state)}`)
  if (filter.subject !== undefined) where.push(`o.subject = ${bind(filter.subject)}`)
  if (filter.text !== undefined)
    where.push(
      `o.order_id >= ${bind(filter.text)} and o.order_id < ${bind(pastPrefix(filter.text))}`,
    )
  if (filter.from !== undefined) where.push(`o.opened_at >= ${bind(filter.from)}::timestamptz`)
  if (filter.to !== undefined) where.push(`o.opened_at < ${bind(filter.to)}::timestamptz`)
  const text = `select o.order_id, o.workflow, o.state, coalesce(w.entitles, false) as entitles, o.subject, o.expected_amount,
      o.currency, o.opened_at, o.opened_at::text as opened_text, o.updated_at
    from ${s}orders o left join ${s}workflow_states w on w.workflow = o.workflow and w.state = o.state
    ${where.length === 0 ? '' : `where ${where.join(' and ')}`}
    order by o.opened_at desc, o.order_id limit $1`
  return { text, values }
}

type OrderRow = Omit<ListedOrder, 'opened_at' | 'updated_at'> &
  Record<'opened_at' | 'updated_at', Date | string> & { readonly opened_text: string }
