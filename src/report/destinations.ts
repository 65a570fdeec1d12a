/**
 * Where operations go, and how each destination stands: what is due and for how long, what nobody knows,
 * what needs a person, whether its breaker is open. Only what is not finished is read, by partial indexes.
 */
import type { Database } from '../postgres/executor.ts'
import { counted, isoTime, type Count, type IsoTime } from './row-values.ts'

/** A destination; the keys are what `--json` prints. */
export interface DestinationStatus {
  readonly destination: string
  /** `once` or `at_least_once`; null where no dispatcher has registered it. */
  readonly promise: string | null
  /** To be sent, for the first time or again. */
  readonly pending: Count
  /** Of what is to be sent, looked up or sent again: what is due now. */
  readonly due: Count
  /** For how long the oldest of that has been due; null when nothing is. */
  readonly oldest_due_age_ms: Count | null
  readonly sending: Count
  readonly uncertain: Count
  readonly dead: Count
  /** Dead, or uncertain with nothing left to try: a person decides. */
  readonly asking: Count
  /** Failures in a row. */
  readonly failures: Count
  /** Nothing is sent until then: too many failures in a row. Null while it is not so. */
  readonly closed_until: IsoTime | null
}

type Row = Record<
  'pending' | 'due' | 'sending' | 'uncertain' | 'dead' | 'asking' | 'failures',
  string | number | null
> & {
  destination: string
  promise: string | null
  oldest_due_ms: string | null
  closed_until: Date | string | null
}

/** Every destination that was registered, or that something unfinished goes to. */
export async function destinationStatus(db: Database): Promise<DestinationStatus[]> {
  const s = db.schema
  const rows = await db.query<Row>({
    text: `with unfinished as (
        select destination, state, next_attempt_at from ${s}outbox_operations where next_attempt_at is not null
        union all
        select destination, state, null from ${s}outbox_operations where state = 'sending'
        union all
        select destination, state, null from ${s}outbox_operations where state in ('dead', 'uncertain') and next_attempt_at is null
      ), counts as (
        select destination, count(*) filter (where state = 'pending') as pending,
          count(*) filter (where next_attempt_at <= now()) as due,
          ceil(extract(epoch from clock_timestamp() - min(next_attempt_at) filter (where next_attempt_at <= now())) * 1000)::bigint as oldest_due_ms,
          count(*) filter (where state = 'sending') as sending,
          count(*) filter (where state = 'uncertain') as uncertain,
          count(*) filter (where state = 'dead') as dead,
          count(*) filter (where state in ('dead', 'uncertain') and next_attempt_at is null) as asking
        from unfinished group by destination
      )
      select coalesce(d.destination, c.destination) as destination, d.promise, c.pending, c.due, c.oldest_due_ms, c.sending,
        c.uncertain, c.dead, c.asking, d.failures, case when d.closed_until > now() then d.closed_until end as closed_until
      from ${s}outbox_destinations d full join counts c on c.destination = d.destination
      order by 1`,
  })
  return rows.map((row) => ({
    destination: row.destination,
    promise: row.promise,
    pending: counted(row.pending),
    due: counted(row.due),
    oldest_due_age_ms: row.oldest_due_ms === null ? null : Math.max(0, counted(row.oldest_due_ms)),
    sending: counted(row.sending),
    uncertain: counted(row.uncertain),
    dead: counted(row.dead),
    asking: counted(row.asking),
    failures: counted(row.failures),
    closed_until: isoTime(row.closed_until),
  }))
}
