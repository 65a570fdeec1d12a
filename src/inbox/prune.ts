/**
 * Retention: bodies after their days, identities long after any provider resends, refusals after a
 * month. What is not finished is never touched; the functions of the schema see to that themselves.
 */
import type { Database } from '../postgres/executor.ts'
import type { Limits } from '../core/limits.ts'

/** What pruning did; the keys are what `--json` prints. */
export interface PruneReport {
  /** Day partitions made ahead, and days dropped with their bodies. */
  readonly partitions_made: number
  readonly partitions_dropped: number
  /** Bodies of unfinished events whose day is gone. */
  readonly bodies_held: number
  readonly identities_dropped: number
  readonly rejections_dropped: number
}

/** Refusals are counted by the minute; after this many days nobody asks. */
const rejectionDays = 30
const identityChunk = 5000

/** Prunes once. Safe beside everything else, and any number of times. */
export async function prune(
  db: Database,
  limits: Pick<Limits, 'payloadRetentionDays' | 'identityRetentionDays' | 'partitionsAheadDays'>,
): Promise<PruneReport> {
  const s = db.schema
  const call = (name: string, ...values: number[]): Promise<number> =>
    single(db, `select ${s}${name}(${values.map((_, index) => `$${index + 1}::integer`).join(', ')}) as count`, values)
  const made = await call('make_payload_partitions', limits.partitionsAheadDays)
  const dropped = await call('drop_payload_partitions', limits.payloadRetentionDays)
  let identities = 0
  for (;;) {
    const gone = await call('drop_identities', limits.identityRetentionDays, identityChunk)
    identities += gone
    if (gone < identityChunk) break
  }
  const rejections = await single(
    db,
    `with gone as (delete from ${s}rejections where last_at < now() - make_interval(days => $1::integer) returning 1)
      select count(*) as count from gone`,
    [rejectionDays],
  )
  const held = await single(db, `select count(*) as count from ${s}payloads_held`, [])
  return {
    partitions_made: made,
    partitions_dropped: dropped,
    bodies_held: held,
    identities_dropped: identities,
    rejections_dropped: rejections,
  }
}

async function single(db: Database, text: string, values: readonly number[]): Promise<number> {
  const [row] = await db.query<{ count: string | number }>({ text, values })
  return Number(row?.count ?? 0)
}
