/** The first page, as it is answered. */
import { z } from 'zod'
import type { ActivityBucket, ActivityFigures } from '../../report/activity.ts'
import type { Advice } from '../../report/advice.ts'
import type { DestinationStatus } from '../../report/destinations.ts'
import type { GatheringStatus } from '../../report/looks.ts'
import type { Overview } from '../../report/overview.ts'
import type { ShadowStatus } from '../../report/shadow.ts'
import { moment } from '../schemas.ts'
import type { Shape } from '../wire.ts'
import { checkpointView, runView } from './finding-shapes.ts'
import { count, reference } from './story-shapes.ts'

const figures = {
  received: count,
  decided: count,
  duplicates: count,
  failed: count,
  sent: count,
  rejected: count,
}

const activityFigures: Shape<ActivityFigures> = z.strictObject(figures)

/** One stretch of time of the charts. */
export const activityBucket: Shape<ActivityBucket> = z.strictObject({ at: moment, ...figures })

const adviceView: Shape<Advice> = z.strictObject({
  code: z.string(),
  text: z.string(),
  kind: z.enum(['order', 'event', 'operation', 'finding', 'subject', 'workflow']).nullable(),
  id: z.string().nullable(),
})

const stage = z.strictObject({
  stage: z.enum(['inbox', 'waiting', 'gathering', 'outbox', 'findings', 'reconciliation']),
  unfinished: count,
  /** Of the oldest unfinished thing; of reconciliation: of the oldest checkpoint. */
  oldest_age_ms: count.nullable(),
  dead: count,
  overdue: count,
  uncertain: count,
})

const destination: Shape<DestinationStatus> = z.strictObject({
  destination: z.string(),
  promise: z.string().nullable(),
  pending: count,
  due: count,
  oldest_due_age_ms: count.nullable(),
  sending: count,
  uncertain: count,
  dead: count,
  asking: count,
  failures: count,
  closed_until: moment.nullable(),
})

const gathering: Shape<GatheringStatus> = z.strictObject({
  requests: count,
  failing: count,
  oldest_age_ms: count.nullable(),
  last_error: z.string().nullable(),
  paused: z.array(z.strictObject({ budget: z.string(), until: moment, failures: count })),
})

const shadow: Shape<ShadowStatus> = z.strictObject({
  workflows: z.array(z.strictObject({ workflow: z.string(), since: moment })),
  last: z
    .strictObject({ compared_at: moment, subjects: count, differences: count, too_young: count })
    .nullable(),
})

/** All of it. */
export const overviewAnswer: Shape<Overview> = z.strictObject({
  at: moment,
  /** Whether every paid customer is served, as far as anybody can know. */
  served: z.enum(['yes', 'no']),
  /** The same as a sentence. */
  verdict: z.string(),
  unserved: z.strictObject({
    count,
    orders: count,
    events: count,
    items: z.array(
      z.strictObject({
        about: reference,
        order_id: z.string().nullable(),
        subject: z.string().nullable(),
        why: z.string(),
        since: moment,
      }),
    ),
  }),
  first: adviceView.nullable(),
  /** Everything that there is to do, the worst first. */
  todo: z.array(adviceView),
  stages: z.array(stage),
  last_minute: activityFigures,
  last_day: activityFigures,
  /** In the last 24 hours. */
  duplicates_absorbed: count,
  decided_last_minute: count,
  asking: count,
  findings: z.strictObject({
    open: count,
    overdue: count,
    lag: count,
    contradiction: count,
    by_kind: z.array(
      z.strictObject({ class: z.string(), kind: z.string(), open: count, overdue: count }),
    ),
  }),
  destinations: z.array(destination),
  gathering: gathering.nullable(),
  checkpoints: z.array(checkpointView),
  runs: z.array(runView),
  repairs: z.strictObject({
    applied: count,
    unverified: count,
    oldest_unverified_age_ms: count.nullable(),
  }),
  processes: z.array(
    z.strictObject({
      process_id: z.string(),
      host: z.string(),
      pid: count,
      roles: z.array(z.string()),
      version: z.string(),
      started_at: moment,
      seen_at: moment,
      alive: z.boolean(),
    }),
  ),
  schema: z.strictObject({
    name: z.string(),
    environment: z.string(),
    migration: count,
    newest: count,
    drift: z.enum(['none', 'older', 'newer']),
    partitions_until: z.string().nullable(),
  }),
  rejections: z.array(
    z.strictObject({ source: z.string(), reason: z.string(), times: count, last_at: moment }),
  ),
  shadow: shadow.nullable(),
})
