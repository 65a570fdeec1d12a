/**
 * The inbox as a list: what arrived, newest first. What is not finished is little and read from where it is
 * kept; everything else goes along the events themselves.
 */
import type { Database } from '../../postgres/executor.ts'
import { keyedPlans } from '../../postgres/keyed-plans.ts'
import { counted, isoTime, requiredTime, type Count, type IsoTime } from '../row-values.ts'
import { eventStates, findEventKeys, type EventFilter, type EventState } from './event-keys.ts'
import { pageOf, type Page } from './keyset.ts'

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

/** A page of the events that fit, the newest first. */
export async function listEvents(db: Database, filter: EventFilter): Promise<Page<ListedEvent>> {
  return db.transaction(
    async (tx) => {
      const { keys, stop } = await findEventKeys(tx, db.schema, filter)
      const rows = await tx.query<EventRow>({
        text: `select v.event_key, concat_ws(':', v.provider, v.provider_account, v.environment) as source, v.event_id,
            v.event_type, v.via, v.state, v.attempts, v.deliveries, v.order_id, v.last_error, v.waits_for, v.received_at,
            v.deadline_at, v.next_attempt_at
          from ${db.schema}webhook_inbox v where v.event_key = any ($1::bigint[]) order by v.event_key desc`,
        values: [keys],
      })
      return pageOf(rows, filter.limit, ({ event_key: key }) => [key], viewOf, stop)
    },
    // ranges of moments are found by block ranges, which only a bitmap can tell
    { setup: `${keyedPlans}; set local enable_bitmapscan = on` },
  )
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
