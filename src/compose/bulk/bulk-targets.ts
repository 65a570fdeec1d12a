/** Finds what a bulk act is about, as it stands now. Reads only, and never more than can be planned. */
import { nextKeys } from '../../inbox/replay-lookup.ts'
import { replayableTables } from '../../inbox/replay.ts'
import type { Database } from '../../postgres/executor.ts'
import {
  mostTargets,
  type BulkEvents,
  type BulkFindings,
  type BulkOperations,
  type BulkTarget,
  type BulkWork,
} from './bulk-acts.ts'

/** The targets in the order in which they are done; one more than can be planned where there are too many. */
export function bulkTargets(db: Database, work: BulkWork): Promise<readonly BulkTarget[]> {
  switch (work.act) {
    case 'replay':
      return events(db, work.filter)
    case 'retry':
    case 'discard':
      return operations(db, work.filter)
    default:
      return findings(db, work.filter)
  }
}

async function events(db: Database, filter: BulkEvents): Promise<readonly BulkTarget[]> {
  const fitting = {
    types: filter.types,
    source: filter.source === null ? undefined : await sourceOf(db, filter.source),
    since: filter.from === null ? undefined : new Date(filter.from),
    until: filter.to === null ? undefined : new Date(filter.to),
  }
  const targets: BulkTarget[] = []
  for (const was of filter.states) {
    const left = mostTargets + 1 - targets.length
    if (left <= 0) break
    const keys = await nextKeys(db, replayableTables[was], fitting, '0', left)
    targets.push(...keys.map((key) => ({ target: `event:${key}`, was })))
  }
  return targets
}

/** Lists name a source with its environment, of which there is one in a schema. */
async function sourceOf(db: Database, given: string): Promise<string> {
  const [row] = await db.query<{ source: string }>({
    text: `select concat_ws(':', provider, provider_account) as source from ${db.schema}sources
      where concat_ws(':', provider, provider_account, environment) = $1 limit 1`,
    values: [given],
  })
  return row?.source ?? given
}

async function operations(db: Database, filter: BulkOperations): Promise<readonly BulkTarget[]> {
  return db.query<BulkTarget & object>({
    text: `select 'operation:' || o.operation_id as target, o.state as was from ${db.schema}outbox_operations o
      where o.state in ('dead', 'uncertain') and o.state = any ($1::text[])
        and ($2::text is null or o.destination = $2) and ($3::text is null or o.order_id = $3)
        and ($4::timestamptz is null or o.created_at >= $4::timestamptz)
        and ($5::timestamptz is null or o.created_at < $5::timestamptz)
      order by o.sequence limit $6`,
    values: [
      filter.states,
      filter.destination,
      filter.order_id,
      filter.from,
      filter.to,
      mostTargets + 1,
    ],
  })
}

async function findings(db: Database, filter: BulkFindings): Promise<readonly BulkTarget[]> {
  return db.query<BulkTarget & object>({
    text: `select 'finding:' || f.finding_id as target, f.state as was from ${db.schema}findings f
      where f.state <> 'closed' and f.state = any ($1::text[])
        and ($2::text is null or f.kind = $2) and ($3::text is null or f.class = $3)
        and ($4::text is null or f.owner = $4) and ($5::text is null or f.order_id = $5)
        and (not $6::boolean or (f.due_at < now() and f.state in ('open', 'repairing')))
      order by f.due_at, f.finding_id limit $7`,
    values: [
      filter.states,
      filter.kind,
      filter.class,
      filter.owner,
      filter.order_id,
      filter.overdue,
      mostTargets + 1,
    ],
  })
}
