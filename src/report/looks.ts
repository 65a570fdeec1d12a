/**
 * What was asked of providers about an order: which objects it follows, which answers came, what is still
 * waited for. Never what was answered: that is read with `read_evidence`, and the reading is recorded.
 */
import type { Database } from '../postgres/executor.ts'
import { isoTime, requiredTime, type Count, type IsoTime } from './row-values.ts'

/** An object that an order follows, or an event (kind `event`) for which something is gathered. */
export interface LookView {
  readonly source: string
  readonly kind: string
  readonly object_id: string
  /** The number of the last request. */
  readonly sent: string
  /** The number of the newest answer. */
  readonly answered: string
  /** The number of the newest answer that a decision was made from, and that decision. */
  readonly applied: string
  readonly decision_id: string | null
  readonly answered_at: IsoTime | null
  /** Events that wait for an answer now. */
  readonly waiting: Count
  /** Since when a request is due or under way; null where none is. */
  readonly asked_at: IsoTime | null
  readonly next_request_at: IsoTime | null
  readonly attempts: Count
  readonly last_error: string | null
}

/** One answer. */
export interface AnswerView {
  readonly evidence_id: string
  readonly source: string
  readonly kind: string
  readonly object_id: string
  readonly number: string
  readonly is_found: boolean
  /** It came after the answer to a later request, and changed nothing. */
  readonly is_late: boolean
  readonly requested_at: IsoTime
  readonly fetched_at: IsoTime
  readonly body_sha256: string
  /** Whether its bytes are still kept. */
  readonly body_bytes: Count
}

/** How many answers of one order are read, the newest. */
export const shownAnswers = 200

/** The objects that an order follows. */
export async function looksOf(db: Database, orderId: string): Promise<LookView[]> {
  const s = db.schema
  const rows = await db.query<
    Omit<LookView, 'answered_at' | 'asked_at' | 'next_request_at'> &
      Record<'answered_at' | 'asked_at' | 'next_request_at', Date | string | null>
  >({
    text: `select concat_ws(':', n.provider, n.provider_account, n.environment) as source, l.kind, l.object_id,
        l.sent::text as sent, l.answered::text as answered, l.applied::text as applied, l.applied_by::text as decision_id, l.answered_at,
        (select count(*)::integer from ${s}inbox_gathers g where g.order_id = l.order_id and g.source_id = l.source_id
          and g.kind = l.kind and g.object_id = l.object_id and g.waiting) as waiting,
        f.asked_at, coalesce(f.leased_until, f.due_at) as next_request_at, coalesce(f.attempts, 0) as attempts, f.last_error
      from ${s}looked_at l join ${s}sources n on n.source_id = l.source_id
      left join ${s}fetches f on f.order_id = l.order_id and f.source_id = l.source_id and f.kind = l.kind and f.object_id = l.object_id
      where l.order_id = $1 order by l.source_id, l.kind, l.object_id`,
    values: [orderId],
  })
  return rows.map((row) => ({
    ...row,
    answered_at: isoTime(row.answered_at),
    asked_at: isoTime(row.asked_at),
    next_request_at: isoTime(row.next_request_at),
  }))
}

/** The newest answers about an order's objects, the oldest of them first. */
export async function answersOf(db: Database, orderId: string): Promise<AnswerView[]> {
  const s = db.schema
  const rows = await db.query<
    Omit<AnswerView, 'requested_at' | 'fetched_at'> &
      Record<'requested_at' | 'fetched_at', Date | string>
  >({
    text: `select e.evidence_id::text as evidence_id, concat_ws(':', n.provider, n.provider_account, n.environment) as source,
        e.kind, e.object_id, e.number::text as number, e.is_found, e.is_late, e.requested_at, e.fetched_at,
        encode(e.body_sha256, 'hex') as body_sha256, e.body_bytes
      from ${s}evidence e join ${s}sources n on n.source_id = e.source_id
      where e.order_id = $1 order by e.evidence_id desc limit ${shownAnswers}`,
    values: [orderId],
  })
  return rows.reverse().map((row) => ({
    ...row,
    requested_at: requiredTime(row.requested_at),
    fetched_at: requiredTime(row.fetched_at),
  }))
}

/** Events that wait for an answer about an order. */
export async function gatheringEvents(db: Database, orderId: string): Promise<string[]> {
  const rows = await db.query<{ event_key: string }>({
    text: `select event_key from ${db.schema}inbox_gathers where order_id = $1 and waiting`,
    values: [orderId],
  })
  return rows.map((row) => row.event_key)
}

/** What `status` says of requests to providers. */
export interface GatheringStatus {
  /** Requests that are due, under way or backed off; each serves all events that wait for it. */
  readonly requests: Count
  /** Of those, the ones that failed the last time. */
  readonly failing: Count
  readonly oldest_age_ms: Count | null
  readonly last_error: string | null
  /** Sources and accounts that are left alone for a while. */
  readonly paused: readonly {
    readonly budget: string
    readonly until: IsoTime
    readonly failures: Count
  }[]
}

/** Counts the requests that are open; null where there is nothing to tell. */
export async function gatheringStatus(db: Database): Promise<GatheringStatus | null> {
  const s = db.schema
  const [row] = await db.query<{
    requests: string
    failing: string
    oldest: string | null
    last_error: string | null
  }>({
    text: `select count(*) as requests, count(*) filter (where attempts > 0) as failing,
        ceil(extract(epoch from clock_timestamp() - min(asked_at)) * 1000)::bigint as oldest,
        (array_agg(last_error order by asked_at) filter (where last_error is not null))[1] as last_error
      from ${s}fetches`,
  })
  const paused = await db.query<{ budget: string; until: Date | string; failures: number }>({
    text: `select budget, closed_until as until, failures from ${s}fetch_budgets where closed_until > now() order by budget`,
  })
  const requests = Number(row?.requests ?? 0)
  if (requests === 0 && paused.length === 0) return null
  return {
    requests,
    failing: Number(row?.failing ?? 0),
    oldest_age_ms: row?.oldest == null ? null : Math.max(0, Number(row.oldest)),
    last_error: row?.last_error ?? null,
    paused: paused.map((each) => ({ ...each, until: requiredTime(each.until) })),
  }
}
