/** What lists answer: the shapes of their rows. */
import { z } from 'zod'
import { exactNumber, moment } from '../schemas.ts'

const count = z.number().int()
const text = z.string()
const maybe = z.string().nullable()
const maybeMoment = moment.nullable()

/** A moment as a filter. */
export const momentFilter: z.ZodOptional<z.ZodISODateTime> = z.iso
  .datetime({ offset: true })
  .optional()

/** A text as a filter. */
export const textFilter: z.ZodOptional<z.ZodString> = z.string().min(1).max(512).optional()

/** `true` or `false` as a filter. */
export const flagFilter: z.ZodOptional<
  z.ZodPipe<z.ZodEnum<{ true: 'true'; false: 'false' }>, z.ZodTransform<boolean, 'true' | 'false'>>
> = z
  .enum(['true', 'false'])
  .transform((value) => value === 'true')
  .optional()

export const listedEvent: z.ZodObject = z.strictObject({
  event_key: exactNumber,
  source: text,
  event_id: text,
  event_type: text,
  via: text,
  state: text,
  attempts: count,
  deliveries: count,
  order_id: maybe,
  last_error: maybe,
  waits_for: maybe,
  received_at: moment,
  deadline_at: maybeMoment,
  next_attempt_at: maybeMoment,
})

export const listedDelivery: z.ZodObject = z.strictObject({
  delivery_id: exactNumber,
  source: text,
  event_id: text,
  event_type: maybe,
  verdict: z.enum(['new', 'duplicate']),
  body_sha256: text,
  received_at: moment,
})

export const listedRejection: z.ZodObject = z.strictObject({
  rejection_id: exactNumber,
  source: text,
  reason: text,
  /** What the reason means, and what to do about it. */
  means: text,
  next: text,
  times: count,
  first_at: moment,
  last_at: moment,
})

export const listedOrder: z.ZodObject = z.strictObject({
  order_id: text,
  workflow: text,
  state: text,
  entitles: z.boolean(),
  subject: maybe,
  expected_amount: exactNumber.nullable(),
  currency: maybe,
  opened_at: moment,
  updated_at: moment,
})

export const listedDecision: z.ZodObject = z.strictObject({
  decision_id: exactNumber,
  kind: text,
  final: z.boolean(),
  order_id: maybe,
  workflow: maybe,
  from_state: maybe,
  to_state: maybe,
  reason: text,
  actor: text,
  source: maybe,
  event_id: maybe,
  event_type: maybe,
  decided_at: moment,
})

export const listedEffect: z.ZodObject = z.strictObject({
  order_id: text,
  effect_type: text,
  effect_reference: text,
  amount: exactNumber.nullable(),
  currency: maybe,
  payment_id: maybe,
  data: z.unknown(),
  decision_id: exactNumber,
  absorbed: exactNumber,
  recorded_at: moment,
})

export const listedPayment: z.ZodObject = z.strictObject({
  source: text,
  payment_id: text,
  order_id: text,
  amount: exactNumber.nullable(),
  currency: text,
  applied: z.boolean(),
  decision_id: exactNumber,
  recorded_at: moment,
})

export const listedEntitlement: z.ZodObject = z.strictObject({
  subject: text,
  entitlement: text,
  order_id: text,
  quantity: exactNumber.nullable(),
  valid_until: maybeMoment,
  in_force: z.boolean(),
  granted_by: exactNumber.nullable(),
  changed_by: exactNumber,
})

export const blockingOperation: z.ZodObject = z.strictObject({
  operation_id: text,
  name: text,
  destination: text,
  effect_reference: maybe,
  state: text,
  asks: z.boolean(),
})

export const listedOperation: z.ZodObject = z.strictObject({
  operation_id: text,
  sequence: exactNumber,
  destination: text,
  name: text,
  order_id: maybe,
  effect_type: maybe,
  effect_reference: maybe,
  decision_id: exactNumber.nullable(),
  state: text,
  promise: text,
  key: text,
  key_generation: count,
  attempts: count,
  created_at: moment,
  next_attempt_at: maybeMoment,
  first_attempt_at: maybeMoment,
  key_until: maybeMoment,
  uncertain_since: maybeMoment,
  leased_until: maybeMoment,
  leased_by: maybe,
  last_error: maybe,
  receipt: z.unknown(),
  while_states: z.array(text).readonly().nullable(),
  request_sha256: text,
  request_bytes: count,
  has_request: z.boolean(),
  finished_at: maybeMoment,
  blocked_by: blockingOperation.nullable(),
})

export const listedFinding: z.ZodObject = z.strictObject({
  finding_id: text,
  class: text,
  kind: text,
  severity: text,
  state: text,
  owner: text,
  order_id: maybe,
  event_key: exactNumber.nullable(),
  event_id: maybe,
  event_type: maybe,
  evidence: z.unknown(),
  record: z.strictObject({ kind: text, id: text, account: text }).nullable(),
  due_at: moment,
  overdue: z.boolean(),
  first_seen_at: moment,
  last_seen_at: moment,
  closed_at: maybeMoment,
  closed_because: maybe,
  dismissed_until: maybeMoment,
  times_seen: count,
})

export const listedRun: z.ZodObject = z.strictObject({
  run_id: text,
  source: text,
  how: text,
  actor: text,
  state: text,
  coverage: z.unknown(),
  calls: count,
  injected: count,
  opened: count,
  closed: count,
  repaired: count,
  error: maybe,
  started_at: moment,
  seen_at: moment,
  finished_at: maybeMoment,
})

export const checkpoint: z.ZodObject = z.strictObject({
  source: text,
  kind: text,
  through: moment,
  age_ms: count,
  moved_at: moment,
  in_work: z.boolean(),
  deep_at: maybeMoment,
})

export const listedAct: z.ZodObject = z.strictObject({
  act_id: text,
  act: text,
  target: text,
  reason: text,
  actor: text,
  database_role: text,
  acted_at: moment,
})

export const searchHit: z.ZodObject = z.strictObject({
  kind: z.enum(['order', 'event', 'operation', 'finding', 'subject']),
  id: text,
  title: text,
  where: text,
})
