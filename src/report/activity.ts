/**
 * How much happened, bucket by bucket: what arrived, was decided, absorbed, sent, and what failed. Counted by
 * block range indexes; a bucket that is over is counted once and kept, so that looking again costs what is new.
 */
import type { Database } from '../postgres/executor.ts'
import { counted, type Count, type IsoTime } from './row-values.ts'

/** What happened in one stretch of time. */
export interface ActivityFigures {
  /** New events, through whichever door. */
  readonly received: Count
  /** Events that got their last word. */
  readonly decided: Count
  /** Deliveries of events that were stored already. */
  readonly duplicates: Count
  /** Calls that did not do what they should, and events that died. */
  readonly failed: Count
  /** Operations that their destination took. */
  readonly sent: Count
  /** Requests that were refused. */
  readonly rejected: Count
}

/** A bucket. */
export interface ActivityBucket extends ActivityFigures {
  /** When it begins. */
  readonly at: IsoTime
}

/** How far back. */
export type ActivityWindow = '1h' | '24h' | '7d'

/** How each window is cut, in seconds. */
const cuts: Readonly<Record<ActivityWindow, { readonly step: number; readonly buckets: number }>> =
  {
    '1h': { step: 60, buckets: 60 },
    '24h': { step: 900, buckets: 96 },
    '7d': { step: 3600, buckets: 168 },
  }

/** A commit may take so long to be seen after the moment that stands in its rows, in milliseconds. */
const lateMs = 120_000

const nothing: ActivityFigures = Object.freeze({
  received: 0,
  decided: 0,
  duplicates: 0,
  failed: 0,
  sent: 0,
  rejected: 0,
})

/** The statement, exported so that its plan can be asserted: $1 seconds of a bucket, $2 the first moment. */
export function activityStatement(s: string): string {
  const bucket = (column: string): string =>
    `date_bin($1::integer * interval '1 second', ${column}, timestamptz '1970-01-01 00:00:00+00')`
  const counts = (
    what: string,
    table: string,
    column: string,
    { count = 'count(*)', where = '' } = {},
  ): string =>
    `select '${what}' as what, extract(epoch from ${bucket(column)})::bigint as at, ${count} as n
      from ${s}${table} where ${column} >= $2::timestamptz${where} group by 2`
  return [
    counts('received', 'inbox_events', 'received_at'),
    counts('delivered', 'inbox_events', 'received_at', { where: ` and via = 'webhook'` }),
    counts('deliveries', 'deliveries', 'received_at'),
    counts('decided', 'ledger_decisions', 'decided_at', {
      where: ' and final and event_key is not null',
    }),
    counts('died', 'ledger_decisions', 'decided_at', { where: ` and kind = 'dead'` }),
    counts('sent', 'outbox_answers', 'answered_at', {
      where: ` and outcome in ('sent', 'present')`,
    }),
    counts('uncalled', 'outbox_answers', 'answered_at', {
      where: ` and outcome in ('retry', 'refused', 'uncertain', 'no_answer')`,
    }),
    counts('rejected', 'rejections', 'minute', { count: 'sum(times)::bigint' }),
  ].join('\nunion all\n')
}

/** Counts what happened; one of these for each database, since it keeps what it has counted. */
export class Activity {
  readonly #db: Database
  readonly #over = new Map<ActivityWindow, Map<number, ActivityFigures>>()

  constructor(db: Database) {
    this.#db = db
  }

  /** Every bucket of the window, the oldest first; the last one is not over. */
  async buckets(window: ActivityWindow): Promise<ActivityBucket[]> {
    const { step, buckets } = cuts[window]
    const now = await databaseNow(this.#db)
    const last = Math.floor(now / 1000 / step) * step
    const starts = Array.from({ length: buckets }, (_, n) => last - (buckets - 1 - n) * step)
    const kept = this.#over.get(window) ?? new Map<number, ActivityFigures>()
    const first = starts.find((at) => !kept.has(at)) ?? last
    const read = await this.#read(step, first)
    const figures = (at: number): ActivityFigures =>
      (at < first ? kept.get(at) : read.get(at)) ?? nothing
    const over = starts.filter((at) => (at + step) * 1000 + lateMs < now)
    this.#over.set(window, new Map(over.map((at) => [at, figures(at)])))
    return starts.map((at) => ({ at: new Date(at * 1000).toISOString(), ...figures(at) }))
  }

  async #read(step: number, first: number): Promise<Map<number, ActivityFigures>> {
    const rows = await this.#db.query<{ what: string; at: string; n: string }>({
      text: activityStatement(this.#db.schema),
      values: [step, new Date(first * 1000).toISOString()],
    })
    const byBucket = new Map<number, Map<string, number>>()
    for (const { what, at, n } of rows) {
      const bucket = byBucket.get(Number(at)) ?? new Map<string, number>()
      byBucket.set(Number(at), bucket.set(what, counted(n)))
    }
    return new Map([...byBucket].map(([at, counts]) => [at, figuresOf(counts)]))
  }
}

function figuresOf(counts: ReadonlyMap<string, number>): ActivityFigures {
  const of = (what: string): number => counts.get(what) ?? 0
  return {
    received: of('received'),
    decided: of('decided'),
    duplicates: Math.max(0, of('deliveries') - of('delivered')),
    failed: of('died') + of('uncalled'),
    sent: of('sent'),
    rejected: of('rejected'),
  }
}

/** The sum over buckets. */
export function totalOf(buckets: readonly ActivityFigures[]): ActivityFigures {
  return buckets.reduce(
    (sum, each) => ({
      received: sum.received + each.received,
      decided: sum.decided + each.decided,
      duplicates: sum.duplicates + each.duplicates,
      failed: sum.failed + each.failed,
      sent: sum.sent + each.sent,
      rejected: sum.rejected + each.rejected,
    }),
    nothing,
  )
}

async function databaseNow(db: Database): Promise<number> {
  const [row] = await db.query<{ now: string }>({
    text: `select (extract(epoch from clock_timestamp()) * 1000)::bigint as now`,
  })
  return Number(row?.now)
}
