/** What belongs to one finding alone: its repairs, what people did about it, and its own story. */
import type { Database } from '../postgres/executor.ts'
import { isSeenByPasses, type FindingView } from './findings.ts'
import { actsAbout } from './order-record.ts'
import { repairsAbout, runsAt, type RepairView } from './reconciliation.ts'
import type { ActView } from './record-views.ts'
import { eventReference, type Reference } from './reference.ts'
import { timelineOf } from './timeline.ts'
import type { TimelineEntry } from './timeline-entry.ts'

/** All of it. */
export interface FindingStory {
  /** The event that it is about. */
  readonly event: Reference | null
  readonly repairs: readonly RepairView[]
  readonly acts: readonly ActView[]
  readonly timeline: readonly TimelineEntry[]
}

/** Reads it. */
export async function findingStory(db: Database, finding: FindingView): Promise<FindingStory> {
  const { finding_id: id, first_seen_at: first, closed_at: closed } = finding
  const moments = isSeenByPasses(finding) ? [first, ...(closed === null ? [] : [closed])] : []
  const [event, repairs, acts, runs] = await Promise.all([
    eventOf(db, finding),
    repairsAbout(db, { orderId: null, findingIds: [id] }),
    actsAbout(db, [`finding:${id}`]),
    runsAt(db, moments),
  ])
  const timeline = timelineOf({
    order: null,
    events: [],
    decisions: [],
    payments: [],
    effects: [],
    entitlements: [],
    operations: [],
    findings: [finding],
    acts,
    looks: [],
    answers: [],
    repairs,
    runs,
    omitted_decisions: 0,
  })
  return { event, repairs, acts, timeline }
}

async function eventOf(db: Database, { event_key: key }: FindingView): Promise<Reference | null> {
  if (key === null) return null
  const [row] = await db.query<{ source: string; event_id: string }>({
    text: `select concat_ws(':', n.provider, n.provider_account, n.environment) as source, e.event_id
      from ${db.schema}inbox_events e join ${db.schema}sources n on n.source_id = e.source_id
      where e.event_key = $1::bigint`,
    values: [key],
  })
  return row === undefined ? null : eventReference(row)
}
