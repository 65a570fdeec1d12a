/**
 * The outbox as a list, the newest first. What is not finished and little is taken from where it is indexed, and so is
 * what an order has; everything else goes along the numbers of operations, a bounded stretch at a time.
 */
import type { Database, Executor, Value } from '../../postgres/executor.ts'
import { keyedPlans } from '../../postgres/keyed-plans.ts'
import { openStates, operationsWith } from '../operations.ts'
import type { OperationView } from '../record-views.ts'
import { cursorForms, pageOf, readCursor, stopOf, type Page, type PageRequest } from './keyset.ts'

/** Which operations. */
export interface OperationListFilter extends PageRequest {
  readonly destination?: string | undefined
  /** A state, or `unfinished`. */
  readonly state?: string | undefined
  readonly order_id?: string | undefined
}

interface Key {
  readonly operation_id: string
  readonly sequence: string
}

/** A page of operations. */
export async function listOperationPage(
  db: Database,
  filter: OperationListFilter,
): Promise<Page<OperationView>> {
  const { keys, stop } = await db.transaction((tx) => findKeys(tx, db.schema, filter), {
    setup: keyedPlans,
  })
  const ids = keys.slice(0, filter.limit).map(({ operation_id: id }) => id)
  const views = new Map((await operationsWith(db, ids)).map((view) => [view.operation_id, view]))
  return pageOf(
    keys,
    filter.limit,
    ({ sequence }) => [sequence],
    // operations are never removed
    ({ operation_id: id }) => views.get(id) as OperationView,
    stop,
  )
}

async function findKeys(
  tx: Executor,
  s: string,
  filter: OperationListFilter,
): Promise<{ readonly keys: readonly Key[]; readonly stop: readonly string[] | null }> {
  const { state, destination, order_id: order } = filter
  const states = state === undefined ? null : state === 'unfinished' ? openStates : [state]
  const values: Value[] = [readCursor(filter.cursor, [cursorForms.number])?.[0] ?? null]
  const bind = (value: Value): string => `$${values.push(value)}`
  const named = await idsByIndex(tx, s, states, order)
  const rows =
    named === null
      ? `${s}outbox_operations`
      : `(select p.* from unnest(${bind(named)}::uuid[]) as n(id) cross join lateral (
          select * from ${s}outbox_operations p where p.operation_id = n.id offset 0) p)`
  const along = `from ${rows} o where ($1::bigint is null or o.sequence < $1::bigint)`
  const atStart = [...values]
  const looked: string[] = []
  if (states !== null) looked.push(`o.state = any (${bind(states)}::text[])`)
  if (destination !== undefined) looked.push(`o.destination = ${bind(destination)}`)
  if (order !== undefined) looked.push(`o.order_id = ${bind(order)}`)
  const stop =
    looked.length === 0 || named !== null
      ? null
      : await stopOf(tx, {
          text: `select array[o.sequence::text] ${along} order by o.sequence desc`,
          values: atStart,
        })
  if (stop !== null) looked.push(`o.sequence >= ${bind(stop[0] ?? '')}::bigint`)
  const keys = await tx.query<Key>({
    text: `select o.operation_id::text as operation_id, o.sequence ${along} ${looked.map((each) => `and ${each}`).join(' ')}
      order by o.sequence desc limit ${bind(filter.limit + 1)}`,
    values,
  })
  return { keys, stop }
}

/** Operations that are looked up one by one; where there are more, all of them are gone along instead. */
const mostNamed = 1000

/** The operations of an order, or those that are not finished; null where neither is asked for, or they are very many. */
async function idsByIndex(
  tx: Executor,
  s: string,
  states: readonly string[] | null,
  order: string | undefined,
): Promise<readonly string[] | null> {
  const isOpen = states?.every((state) => openStates.includes(state)) === true
  if (order === undefined && !isOpen) return null
  const of = (where: string): string =>
    `(select operation_id from ${s}outbox_operations where ${where} limit ${mostNamed + 1})`
  const lists =
    order === undefined
      ? [
          of('next_attempt_at is not null'),
          of(`state = 'sending'`),
          of(`state in ('dead', 'uncertain')`),
        ]
      : [of('order_id = $1')]
  const rows = await tx.query<{ operation_id: string }>({
    text: `select distinct l.operation_id::text as operation_id from (${lists.join(' union all ')}) l limit ${mostNamed + 1}`,
    values: order === undefined ? [] : [order],
  })
  return rows.length > mostNamed ? null : rows.map((row) => row.operation_id)
}
