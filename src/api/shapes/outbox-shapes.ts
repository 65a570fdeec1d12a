/** Operations and their attempts, as the pages show them. Never a request or an answer. */
import { z } from 'zod'
import type { CausedEvent } from '../../report/operation-consequences.ts'
import type { NextStep } from '../../report/operation-story.ts'
import type { BlockingOperation, OperationRecord } from '../../report/record-views.ts'
import { moment } from '../schemas.ts'
import type { Shape } from '../wire.ts'
import { count } from './story-shapes.ts'

const attemptView = z.strictObject({
  number: count,
  kind: z.string(),
  key_generation: count,
  dispatcher: z.string(),
  started_at: moment,
  outcome: z.string().nullable(),
  status: count.nullable(),
  error: z.string().nullable(),
  late: z.boolean(),
  answered_at: moment.nullable(),
})

const blockingOperation: Shape<BlockingOperation> = z.strictObject({
  operation_id: z.string(),
  name: z.string(),
  destination: z.string(),
  effect_reference: z.string().nullable(),
  state: z.string(),
  asks: z.boolean(),
})

/** What happens to it next, and whether a person has to decide. */
export const nextStepView: Shape<NextStep> = z.strictObject({
  at: moment.nullable(),
  text: z.string(),
  asks: z.boolean(),
})

/** An operation with what was tried, what happens next and what its promise means. */
export type ToldOperation = OperationRecord & {
  readonly next: NextStep
  readonly promise_text: string
}

/** Its shape. */
export const operationRecord: Shape<ToldOperation> = z.strictObject({
  operation_id: z.string(),
  sequence: z.string(),
  destination: z.string(),
  name: z.string(),
  order_id: z.string().nullable(),
  effect_type: z.string().nullable(),
  effect_reference: z.string().nullable(),
  decision_id: z.string().nullable(),
  state: z.string(),
  promise: z.string(),
  promise_text: z.string(),
  key: z.string(),
  key_generation: count,
  attempts: count,
  created_at: moment,
  next_attempt_at: moment.nullable(),
  first_attempt_at: moment.nullable(),
  key_until: moment.nullable(),
  uncertain_since: moment.nullable(),
  leased_until: moment.nullable(),
  leased_by: z.string().nullable(),
  last_error: z.string().nullable(),
  receipt: z.unknown(),
  while_states: z.array(z.string()).nullable(),
  request_sha256: z.string(),
  request_bytes: count,
  has_request: z.boolean(),
  finished_at: moment.nullable(),
  blocked_by: blockingOperation.nullable(),
  tries: z.array(attemptView),
  next: nextStepView,
})

/** An event that an operation caused. */
export const causedEvent: Shape<CausedEvent> = z.strictObject({
  event_id: z.string(),
  event_type: z.string(),
  decision_id: z.string(),
  kind: z.string(),
})
