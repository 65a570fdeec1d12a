/** Findings, repairs and passes, as the pages show them. */
import { z } from 'zod'
import type { FindingView } from '../../report/findings.ts'
import type { CheckpointView, RepairView, RunView } from '../../report/reconciliation.ts'
import { moment } from '../schemas.ts'
import type { Shape } from '../wire.ts'
import { count } from './story-shapes.ts'

/** A finding. */
export const findingView: Shape<FindingView> = z.strictObject({
  finding_id: z.string(),
  class: z.string(),
  kind: z.string(),
  severity: z.string(),
  state: z.string(),
  owner: z.string(),
  order_id: z.string().nullable(),
  event_key: z.string().nullable(),
  event_id: z.string().nullable(),
  event_type: z.string().nullable(),
  evidence: z.unknown(),
  record: z
    .strictObject({ kind: z.string(), id: z.string(), account: z.string().nullable() })
    .nullable() as unknown as Shape<FindingView['record']>,
  due_at: moment,
  overdue: z.boolean(),
  first_seen_at: moment,
  last_seen_at: moment,
  closed_at: moment.nullable(),
  closed_because: z.string().nullable(),
  dismissed_until: moment.nullable(),
  times_seen: count,
})

/** A repair that was applied. */
export const repairView: Shape<RepairView> = z.strictObject({
  repair_id: z.string(),
  finding_id: z.string(),
  finding_kind: z.string(),
  order_id: z.string().nullable(),
  plan: z.unknown(),
  reason: z.string(),
  actor: z.string(),
  database_role: z.string(),
  previous_state: z.unknown(),
  new_state: z.unknown(),
  decision_id: z.string().nullable(),
  applied_at: moment,
  verified_at: moment.nullable(),
})

/** A pass over the provider's records. */
export const runView: Shape<RunView> = z.strictObject({
  run_id: z.string(),
  source: z.string(),
  how: z.string(),
  actor: z.string(),
  state: z.string(),
  coverage: z.unknown(),
  calls: count,
  injected: count,
  opened: count,
  closed: count,
  repaired: count,
  error: z.string().nullable(),
  started_at: moment,
  seen_at: moment,
  finished_at: moment.nullable(),
})

/** How far the records of one kind have been looked at. */
export const checkpointView: Shape<CheckpointView> = z.strictObject({
  source: z.string(),
  kind: z.string(),
  through: moment,
  age_ms: count,
  moved_at: moment,
  in_work: z.boolean(),
  deep_at: moment.nullable(),
})
