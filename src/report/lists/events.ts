/**
 * The inbox as a list: what arrived, newest first. What is not finished is little and read from where it is
 * kept; everything else goes along the events themselves.
 */
import { HookledgerError } from '../../core/errors.ts'
import type { Database, Value } from '../../postgres/executor.ts'
import { keyedPlans } from '../../postgres/keyed-plans.ts'
import { counted, isoTime, requiredTime, type Count, type IsoTime } from '../row-values.ts'
import {
  cursorForms,
  pageOf,
  pastPrefix,
  readCursor,
  type Page,
  type PageRequest,
} from './keyset.ts'

/** The states of events, in the order of how much they ask of somebody. */
export const eventStates = ['pending', 'deferred', 'dead', 'processed', 'ignored'] as const

/** One of them. */
export type EventState = (typeof eventStates)[number]

/** An event in a list; the keys are those of the view `webhook_inbox`. */
export interface ListedEvent {
  readonly event_key: string
  /** `provider:account:environment`. */
  readonly source: string
  readonly event_id: string
  readonly event_type: string
  readonly via: string
  readonly state: string
  readonly attempts: Count
  readonly deliveries: Count
  readonly order_id: string | null
  readonly last_error: string | null
  readonly waits_for: string | null
  readonly received_at: IsoTime
  readonly deadline_at: IsoTime | null
  readonly next_attempt_at: IsoTime | null
}

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

/** A page of the events that fit, the newest first. */
export async function listEvents(db: Database, filter: EventFilter): Promise<Page<ListedEvent>> {
  const { text, values } = eventsStatement(db.schema, filter)
  return db.transaction(
    async (tx) => {
      const keys = await tx.query<{ event_key: string }>({ text, values })
      const rows = await tx.query<EventRow>({
        text: `select v.event_key, concat_ws(':', v.provider, v.provider_account, v.environment) as source, v.event_id,
            v.event_type, v.via, v.state, v.attempts, v.deliveries, v.order_id, v.last_error, v.waits_for, v.received_at,
            v.deadline_at, v.next_attempt_at
          from ${db.schema}webhook_inbox v where v.event_key = any ($1::bigint[]) order by v.event_key desc`,
        values: [keys.map(({ event_key: key }) => key)],
      })
      return pageOf(rows, filter.limit, ({ event_key: key }) => [key], viewOf)
    },
    { setup: keyedPlans },
  )
}

/** The statement that finds a page's keys, exported so that its plan can be asserted. */
export function eventsStatement(
  s: string,
  filter: EventFilter,
): { readonly text: string; readonly values: readonly Value[] } {
  const cursor = readCursor(filter.cursor, [cursorForms.number])
  const values: Value[] = [cursor?.[0] ?? null, filter.limit + 1]
  const bind = (value: Value): string => `$${values.push(value)}`
  const where = [`($1::bigint is null or e.event_key < $1::bigint)`]
  if (filter.source !== undefined) {
    const source = bind(filter.source)
    where.push(
      `e.source_id in (select n.source_id from ${s}sources n where n.provider = ${source}
        or concat_ws(':', n.provider, n.provider_account, n.environment) = ${source})`,
    )
  }
  if (filter.type !== undefined) where.push(`e.event_type = ${bind(filter.type)}`)
  if (filter.text !== undefined) {
    where.push(
      `e.event_id >= ${bind(filter.text)} and e.event_id < ${bind(pastPrefix(filter.text))}`,
    )
    if (filter.source === undefined)
      where.push(`e.source_id in (select n.source_id from ${s}sources n)`)
  }
  if (filter.from !== undefined) where.push(`e.received_at >= ${bind(filter.from)}::timestamptz`)
  if (filter.to !== undefined) where.push(`e.received_at < ${bind(filter.to)}::timestamptz`)
  if (filter.order_id !== undefined) {
    where.push(`e.event_key in (
      select d.event_key from ${s}ledger_decisions d where d.order_id = ${bind(filter.order_id)} and d.event_key is not null
      union select g.event_key from ${s}inbox_gathers g where g.order_id = $${values.length})`)
  }
  if (filter.state !== undefined) where.push(`e.event_key in (${keysOf(s, filter.state)})`)
  const text = `select e.event_key from ${s}inbox_events e where ${where.join('\n and ')}
    order by e.event_key desc limit $2`
  return { text, values }
}

/** Where the events of a state are kept. */
function keysOf(s: string, state: EventState): string {
  const isFinal = `exists (select 1 from ${s}ledger_decisions f where f.event_key = e.event_key and f.final)`
  switch (state) {
    case 'pending':
      return `select event_key from ${s}inbox_ready union all select event_key from ${s}inbox_delayed
        union all select event_key from ${s}inbox_suspects union all select event_key from ${s}inbox_gathers where waiting`
    case 'deferred':
      return `select event_key from ${s}inbox_deferred`
    case 'dead':
      return `select event_key from ${s}inbox_dead`
    case 'ignored':
      return `select event_key from ${s}inbox_ignored`
    case 'processed':
      return `select e.event_key where ${isFinal}`
    default:
      throw new HookledgerError('HKL_API_INPUT_INVALID', 'state: there is no such state')
  }
}

/** How many events are in each state: of what is finished, as the status counts it. */
export async function countEvents(
  db: Database,
): Promise<readonly { readonly state: EventState; readonly events: Count }[]> {
  const s = db.schema
  const [row] = await db.query<Record<Exclude<EventState, 'processed'> | 'total', string>>({
    text: `select
        (select count(*) from ${s}inbox_ready) + (select count(*) from ${s}inbox_delayed)
          + (select count(*) from ${s}inbox_suspects) + (select count(*) from ${s}inbox_gathers where waiting) as pending,
        (select count(*) from ${s}inbox_deferred) as deferred, (select count(*) from ${s}inbox_dead) as dead,
        (select count(*) from ${s}inbox_ignored) as ignored, (select count(*) from ${s}inbox_events) as total`,
  })
  const of = (state: Exclude<EventState, 'processed'> | 'total'): Count => counted(row?.[state])
  const open = of('pending') + of('deferred') + of('dead') + of('ignored')
  return eventStates.map((state) => ({
    state,
    events: state === 'processed' ? Math.max(0, of('total') - open) : of(state),
  }))
}

type EventRow = Omit<ListedEvent, 'received_at' | 'deadline_at' | 'next_attempt_at'> & {
  readonly received_at: Date | string
  readonly deadline_at: Date | string | null
  readonly next_attempt_at: Date | string | null
}

function viewOf(row: EventRow): ListedEvent {
  return {
    ...row,
    attempts: counted(row.attempts),
    deliveries: counted(row.deliveries),
    received_at: requiredTime(row.received_at),
    deadline_at: isoTime(row.deadline_at),
    next_attempt_at: isoTime(row.next_attempt_at),
  }
}
