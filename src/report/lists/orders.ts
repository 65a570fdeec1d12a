/** Orders as a list, those opened last first; and the subjects that have any. */
import type { Database, Executor, Value } from '../../postgres/executor.ts'
import { keyedPlans } from '../../postgres/keyed-plans.ts'
import { requiredTime, type IsoTime } from '../row-values.ts'
import {
  cursorForms,
  pageOf,
  pastPrefix,
  readCursor,
  stopOf,
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
  return db.transaction(
    async (tx) => {
      const s = db.schema
      const { text: prefix } = filter
      const named = prefix === undefined ? null : await idsThatBegin(tx, s, prefix)
      const { rows: from, where, values } = alongOrders(s, filter, named)
      const bind = (value: Value): string => `$${values.push(value)}`
      const atStart = [...values]
      const looked: string[] = []
      if (filter.workflow !== undefined) looked.push(`o.workflow = ${bind(filter.workflow)}`)
      if (filter.state !== undefined) looked.push(`o.state = ${bind(filter.state)}`)
      if (prefix !== undefined && named === null)
        looked.push(`o.order_id >= ${bind(prefix)} and o.order_id < ${bind(pastPrefix(prefix))}`)
      const stop =
        looked.length === 0
          ? null
          : await stopOf(tx, {
              text: `select array[o.opened_at::text, o.order_id] from ${from} where ${where.join(' and ')} ${order}`,
              values: atStart,
            })
      if (stop !== null) {
        const [moment, last] = [bind(stop[0] ?? ''), bind(stop[1] ?? '')]
        looked.push(
          `(o.opened_at > ${moment}::timestamptz or (o.opened_at = ${moment}::timestamptz and o.order_id <= ${last}))
            and o.opened_at >= ${moment}::timestamptz`,
        )
      }
      const rows = await tx.query<OrderRow>({
        text: `select o.order_id, o.workflow, o.state, coalesce(w.entitles, false) as entitles, o.subject, o.expected_amount,
            o.currency, o.opened_at, o.opened_at::text as opened_text, o.updated_at
          from (select o.* from ${from} where ${[...where, ...looked].join(' and ')} ${order} limit ${bind(filter.limit + 1)}) o
          left join ${s}workflow_states w on w.workflow = o.workflow and w.state = o.state
          ${order}`,
        values,
      })
      return pageOf(
        rows,
        filter.limit,
        (row) => [row.opened_text, row.order_id],
        ({ opened_text: _, ...row }) => ({
          ...row,
          opened_at: requiredTime(row.opened_at),
          updated_at: requiredTime(row.updated_at),
        }),
        stop,
      )
    },
    { setup: keyedPlans },
  )
}

const order = 'order by o.opened_at desc, o.order_id'

/** Ids of orders that are looked up one by one; where more begin so, the list is gone along instead. */
const mostNamed = 5000

/** The orders whose ids begin so; null where there are very many. */
async function idsThatBegin(
  tx: Executor,
  s: string,
  prefix: string,
): Promise<readonly string[] | null> {
  const rows = await tx.query<{ order_id: string }>({
    text: `select order_id from ${s}orders where order_id >= $1 and order_id < $2 order by order_id limit ${mostNamed + 1}`,
    values: [prefix, pastPrefix(prefix)],
  })
  return rows.length > mostNamed ? null : rows.map((row) => row.order_id)
}

/** Which rows, from the cursor on, without the conditions that rows are looked through for. */
function alongOrders(
  s: string,
  filter: OrderFilter,
  named: readonly string[] | null,
): { readonly rows: string; readonly where: readonly string[]; readonly values: Value[] } {
  const cursor = readCursor(filter.cursor, [cursorForms.moment, cursorForms.text])
  const values: Value[] = []
  const bind = (value: Value): string => `$${values.push(value)}`
  const where = ['true']
  if (cursor !== null) {
    const [moment, last] = [bind(cursor[0] ?? ''), bind(cursor[1] ?? '')]
    where.push(
      `(o.opened_at < ${moment}::timestamptz or (o.opened_at = ${moment}::timestamptz and o.order_id > ${last}))
        and o.opened_at <= ${moment}::timestamptz`,
    )
  }
  if (filter.from !== undefined) where.push(`o.opened_at >= ${bind(filter.from)}::timestamptz`)
  if (filter.to !== undefined) where.push(`o.opened_at < ${bind(filter.to)}::timestamptz`)
  const owned = filter.subject === undefined ? 'true' : `o.subject = ${bind(filter.subject)}`
  // named ones, and those of a subject, are few: they are found by that, whatever statistics say
  if (named !== null) {
    const each = `(select * from ${s}orders o where o.order_id = n.id and ${owned} offset 0)`
    return {
      rows: `unnest(${bind(named)}::text[]) as n(id) cross join lateral ${each} o`,
      where,
      values,
    }
  }
  const rows =
    filter.subject === undefined
      ? `${s}orders`
      : `(select * from ${s}orders o where ${owned} offset 0)`
  return { rows: `${rows} o`, where, values }
}

type OrderRow = Omit<ListedOrder, 'opened_at' | 'updated_at'> &
  Record<'opened_at' | 'updated_at', Date | string> & { readonly opened_text: string }
