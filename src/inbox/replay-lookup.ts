/** Finds the events that a replay asks for, by id or by what they have in common. Read-only. */
import { HookledgerError } from '../core/errors.ts'
import type { Database, Value } from '../postgres/executor.ts'

/** The final decision of an event. */
export interface RecordedDecision {
  readonly decision_id: string
  readonly kind: string
  readonly order_id: string | null
  readonly from_state: string | null
  readonly to_state: string | null
  readonly reason: string
  readonly decided_at: Date | string
}

/** An event, and its final decision if it has one. */
export interface ReplayableEvent {
  readonly event_key: string
  readonly decision: RecordedDecision | null
}

/**
 * The event of this id (or `event:<number>`).
 *
 * @throws HookledgerError HKL_INBOX_EVENT_UNKNOWN when there is none, HKL_INBOX_NOT_REPLAYABLE when
 * several sources have one.
 */
export async function findReplayable(
  db: Database,
  id: string,
  source: string | undefined,
): Promise<ReplayableEvent> {
  const s = db.schema
  const number = /^event:(\d{1,18})$/.exec(id)?.[1] ?? null
  const rows = await db.query<
    { event_key: string; source: string } & {
      [K in keyof RecordedDecision]: RecordedDecision[K] | null
    }
  >({
    text: `select e.event_key, n.provider || ':' || n.provider_account as source,
        d.decision_id, d.kind, d.order_id, d.from_state, d.to_state, d.reason, d.decided_at
      from ${s}sources n
      join ${s}inbox_events e on e.source_id = n.source_id and ${number === null ? 'e.event_id = $1' : 'e.event_key = $1::bigint'}
      left join ${s}ledger_decisions d on d.event_key = e.event_key and d.final
      where $2::text is null or n.provider || ':' || n.provider_account = $2
      order by e.event_key`,
    values: [number ?? id, source ?? null],
  })
  const [row] = rows
  if (row === undefined) {
    throw new HookledgerError(
      'HKL_INBOX_EVENT_UNKNOWN',
      `no event ${id} was ever received${source === undefined ? '' : ` from ${source}`}; check the id, or ask the provider to send it`,
    )
  }
  if (rows.length > 1) {
    throw new HookledgerError(
      'HKL_INBOX_NOT_REPLAYABLE',
      `${rows.length} sources have an event ${id} (${rows.map((each) => each.source).join(', ')}): name one with --source`,
    )
  }
  const { event_key, decision_id, kind, reason, decided_at, order_id, from_state, to_state } = row
  if (decision_id === null || kind === null || reason === null || decided_at === null)
    return { event_key, decision: null }
  return {
    event_key,
    decision: { decision_id, kind, order_id, from_state, to_state, reason, decided_at },
  }
}

/** What events have in common; all that is given must fit. */
export interface ReplayFilter {
  readonly types?: readonly string[] | undefined
  /** `provider:account`. */
  readonly source?: string | undefined
  /** Received at or after, and before. */
  readonly since?: Date | undefined
  readonly until?: Date | undefined
}

/** The condition of a filter over `e` (inbox_events) and `n` (sources), with values from `$first` on. */
function conditionOf(
  filter: ReplayFilter,
  first: number,
): { readonly sql: string; readonly values: Value[] } {
  const at = (index: number): string => `$${first + index}`
  return {
    sql: `(cardinality(${at(0)}::text[]) = 0 or e.event_type = any (${at(0)}::text[]))
      and (${at(1)}::text is null or n.provider || ':' || n.provider_account = ${at(1)})
      and (${at(2)}::timestamptz is null or e.received_at >= ${at(2)}::timestamptz)
      and (${at(3)}::timestamptz is null or e.received_at < ${at(3)}::timestamptz)
      -- an app had handled it before Hookledger was there: it has no body, and nothing is to be done
      and e.via <> 'app'`,
    values: [
      filter.types ?? [],
      filter.source ?? null,
      filter.since?.toISOString() ?? null,
      filter.until?.toISOString() ?? null,
    ],
  }
}

/** How many events of a state fit. */
export async function countIn(db: Database, table: string, filter: ReplayFilter): Promise<number> {
  const s = db.schema
  const { sql, values } = conditionOf(filter, 1)
  const [row] = await db.query<{ events: string }>({
    text: `select count(*) as events from ${s}${table} t
      join ${s}inbox_events e on e.event_key = t.event_key
      join ${s}sources n on n.source_id = e.source_id where ${sql}`,
    values,
  })
  return Number(row?.events ?? 0)
}

/** How many events that fit have their final decision. */
export async function countFinal(db: Database, filter: ReplayFilter): Promise<number> {
  const s = db.schema
  const { sql, values } = conditionOf(filter, 1)
  const [row] = await db.query<{ events: string }>({
    text: `select count(*) as events from ${s}ledger_decisions d
      join ${s}inbox_events e on e.event_key = d.event_key
      join ${s}sources n on n.source_id = e.source_id where d.final and ${sql}`,
    values,
  })
  return Number(row?.events ?? 0)
}

/** The next keys of a state that fit, after a key, in order of arrival. */
export async function nextKeys(
  db: Database,
  table: string,
  filter: ReplayFilter,
  after: string,
  limit: number,
): Promise<string[]> {
  const s = db.schema
  const { sql, values } = conditionOf(filter, 3)
  const rows = await db.query<{ event_key: string }>({
    text: `select t.event_key from ${s}${table} t
      join ${s}inbox_events e on e.event_key = t.event_key
      join ${s}sources n on n.source_id = e.source_id
      where t.event_key > $1::bigint and ${sql} order by t.event_key limit $2`,
    values: [after, limit, ...values],
  })
  return rows.map((row) => row.event_key)
}
