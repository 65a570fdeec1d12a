/**
 * Which events a page shows: their keys, the newest first. What is found by an order, by the beginning of an id or in
 * the list of a state is taken from there; everything else goes along the keys of all events. What no index knows is
 * looked for in a bounded stretch, whatever the size of the inbox and of a backlog.
 */
import { HookledgerError } from '../../core/errors.ts'
import type { Executor, Value } from '../../postgres/executor.ts'
import { keyAt } from './key-at.ts'
import { cursorForms, pastPrefix, readCursor, stopOf, type PageRequest } from './keyset.ts'

/** The states of events, in the order of how much they ask of somebody. */
export const eventStates = ['pending', 'deferred', 'dead', 'processed', 'ignored'] as const

/** One of them. */
export type EventState = (typeof eventStates)[number]

/** Which events. */
export interface EventFilter extends PageRequest {
  readonly state?: EventState | undefined
  /** The provider, or `provider:account:environment`. */
  readonly source?: string | undefined
  readonly type?: string | undefined
  readonly order_id?: string | undefined
  /** The beginning of an event's id. */
  readonly text?: string | undefined
  readonly from?: string | undefined
  readonly to?: string | undefined
}

/** Keys, one more than the page holds where there are more; and where looking stopped before the end. */
export interface FoundEvents {
  readonly keys: readonly string[]
  readonly stop: readonly string[] | null
}

/** Finds them. */
export async function findEventKeys(
  tx: Executor,
  s: string,
  filter: EventFilter,
): Promise<FoundEvents> {
  const values: Value[] = [readCursor(filter.cursor, [cursorForms.number])?.[0] ?? null]
  const bind = (value: Value): string => `$${values.push(value)}`
  const bounds = [`($1::bigint is null or k.event_key < $1::bigint)`]
  // what came after the newest that was decided is a backlog, and may be long
  if (filter.state === 'processed')
    bounds.push(
      `k.event_key <= (select max(d.event_key) from ${s}ledger_decisions d where d.final)`,
    )
  const numbered = { table: `${s}inbox_events`, key: 'event_key' }
  if (filter.to !== undefined) {
    const last = await keyAt(tx, numbered, 'last', filter.to)
    bounds.push(`k.event_key <= ${bind((last ?? 0n).toString())}::bigint`)
  }
  if (filter.from !== undefined) {
    const first = await keyAt(tx, numbered, 'first', filter.from)
    if (first === null) return { keys: [], stop: null }
    bounds.push(`k.event_key >= ${bind(first.toString())}::bigint`)
  }
  const named = await keysByName(tx, s, filter)
  const kept = keptAs(filter.state)
  const isAlongState = named === null && kept !== null
  const ids = named === null ? '' : bind(named)
  const along = (bound: string): string => {
    const within = `${bounds.join(' and ')} ${bound}`
    if (named !== null)
      return `select k.event_key from unnest(${ids}::bigint[]) as k(event_key) where ${within} order by k.event_key desc`
    const lists = (isAlongState ? kept : [{ table: 'inbox_events', where: 'true' }]).map(
      ({ table, where }) =>
        `(select k.event_key from ${s}${table} k where ${within} and ${where} order by k.event_key desc)`,
    )
    return `select k.event_key from (${lists.join(' union all ')}) k order by k.event_key desc`
  }
  const atStart = [...values]
  const conditions = filterConditions(s, filter, bind, {
    byState: !isAlongState,
    byText: named === null,
  })
  const isBounded = conditions.length > 0 && named === null
  const stop = isBounded
    ? await stopOf(tx, {
        text: `select array[a.event_key::text] from (${along('')}) a order by a.event_key desc`,
        values: atStart,
      })
    : null
  const bound = stop === null ? '' : `and k.event_key >= ${bind(stop[0] ?? '')}::bigint`
  const where = conditions.length === 0 ? '' : `where ${conditions.join(' and ')}`
  const text = `select a.event_key from (${along(bound)}) a
      cross join lateral (select * from ${s}inbox_events e where e.event_key = a.event_key offset 0) e
      ${where} order by a.event_key desc limit ${bind(filter.limit + 1)}`
  const rows = await tx.query<{ event_key: string }>({ text, values })
  return { keys: rows.map(({ event_key: key }) => key), stop }
}

/** Keys that are looked up one by one; where more ids begin so, all events are gone along instead. */
const mostNamed = 5000

/** The events of an order, or those whose ids begin so; null where neither is asked for, or there are very many. */
async function keysByName(
  tx: Executor,
  s: string,
  filter: EventFilter,
): Promise<readonly string[] | null> {
  if (filter.order_id !== undefined) {
    const rows = await tx.query<{ event_key: string }>({
      text: `select d.event_key from (select * from ${s}ledger_decisions where order_id = $1 offset 0) d where d.event_key is not null
        union select g.event_key from ${s}inbox_gathers g where g.order_id = $1`,
      values: [filter.order_id],
    })
    return rows.map(({ event_key: key }) => key)
  }
  if (filter.text === undefined) return null
  const rows = await tx.query<{ event_key: string }>({
    text: `select e.event_key from ${s}sources n cross join lateral (
        select event_key from ${s}inbox_events e where e.source_id = n.source_id and e.event_id >= $1 and e.event_id < $2
        order by e.event_id limit ${mostNamed + 1}) e
      limit ${mostNamed + 1}`,
    values: [filter.text, pastPrefix(filter.text)],
  })
  return rows.length > mostNamed ? null : rows.map(({ event_key: key }) => key)
}

/** What an event `e` has to be besides. */
function filterConditions(
  s: string,
  filter: EventFilter,
  bind: (value: Value) => string,
  { byState, byText }: { readonly byState: boolean; readonly byText: boolean },
): string[] {
  const where: string[] = []
  if (filter.source !== undefined) {
    const source = bind(filter.source)
    where.push(
      `e.source_id in (select n.source_id from ${s}sources n where n.provider = ${source}
        or concat_ws(':', n.provider, n.provider_account, n.environment) = ${source})`,
    )
  }
  if (filter.type !== undefined) where.push(`e.event_type = ${bind(filter.type)}`)
  if (filter.text !== undefined && (byText || filter.order_id !== undefined))
    where.push(
      `e.event_id >= ${bind(filter.text)} and e.event_id < ${bind(pastPrefix(filter.text))}`,
    )
  if (filter.from !== undefined) where.push(`e.received_at >= ${bind(filter.from)}::timestamptz`)
  if (filter.to !== undefined) where.push(`e.received_at < ${bind(filter.to)}::timestamptz`)
  if (filter.state !== undefined && byState) where.push(isInState(s, filter.state))
  return where
}

/** The lists in which events of a state stand; null where it is the absence of one, and a final decision. */
function keptAs(
  state: EventState | undefined,
): readonly { readonly table: string; readonly where: string }[] | null {
  const whole = (table: string) => ({ table, where: 'true' })
  switch (state) {
    case undefined:
    case 'processed':
      return null
    case 'pending':
      return [
        ...['inbox_ready', 'inbox_delayed', 'inbox_suspects'].map(whole),
        { table: 'inbox_gathers', where: 'k.waiting' },
      ]
    case 'deferred':
    case 'dead':
    case 'ignored':
      return [whole(`inbox_${state}`)]
    default:
      throw new HookledgerError('HKL_API_INPUT_INVALID', 'state: there is no such state')
  }
}

/** Whether an event `e` is in a state: one probe by its key for each list. */
function isInState(s: string, state: EventState): string {
  const lists = keptAs(state)
  if (lists === null)
    return `exists (select 1 from ${s}ledger_decisions k where k.event_key = e.event_key and k.final offset 0)`
  const probes = lists.map(
    ({ table, where }) =>
      `exists (select 1 from ${s}${table} k where k.event_key = e.event_key and ${where} offset 0)`,
  )
  return `(${probes.join(' or ')})`
}
