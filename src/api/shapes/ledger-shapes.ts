/** Rows of inbox and ledger, as the pages about one thing show them. */
import { z } from 'zod'
import type {
  DecisionView,
  EffectView,
  EntitlementView,
  EventView,
  OrderView,
  PaymentView,
} from '../../report/record-views.ts'
import type { AnswerView, LookView } from '../../report/looks.ts'
import { exactNumber, moment } from '../schemas.ts'
import type { Shape, Wire } from '../wire.ts'
import { count } from './story-shapes.ts'

/** An order as it is now. */
export const orderView: Shape<Wire<OrderView>> = z.strictObject({
  order_id: z.string(),
  workflow: z.string(),
  state: z.string(),
  entitles: z.boolean(),
  subject: z.string().nullable(),
  expected_amount: exactNumber.nullable(),
  currency: z.string().nullable(),
  provider_account: z.string().nullable(),
  version: count,
  opened_at: moment,
  updated_at: moment,
  names: z.array(z.strictObject({ kind: z.string(), name: z.string() })),
})

/** An event with its deliveries and what it waits for. */
export const eventView: Shape<EventView> = z.strictObject({
  event_key: z.string(),
  source: z.string(),
  event_id: z.string(),
  event_type: z.string(),
  via: z.string(),
  state: z.string(),
  attempts: count,
  last_error: z.string().nullable(),
  received_at: moment,
  occurred_at: moment.nullable(),
  deliveries: count,
  last_delivered_at: moment.nullable(),
  bodies: count,
  waits_for: z.string().nullable(),
  deadline_at: moment.nullable(),
  next_attempt_at: moment.nullable(),
})

/** A decision. */
export const decisionView: Shape<DecisionView> = z.strictObject({
  decision_id: z.string(),
  event_key: z.string().nullable(),
  order_id: z.string().nullable(),
  kind: z.string(),
  final: z.boolean(),
  from_state: z.string().nullable(),
  to_state: z.string().nullable(),
  reason: z.string(),
  evidence: z.unknown(),
  workflow_version: z.string().nullable(),
  actor: z.string(),
  attempts: count,
  decided_at: moment,
})

/** A payment. */
export const paymentView: Shape<Wire<PaymentView>> = z.strictObject({
  payment_id: z.string(),
  amount: exactNumber.nullable(),
  currency: z.string(),
  applied: z.boolean(),
  decision_id: z.string(),
  recorded_at: moment,
})

/** An effect. */
export const effectView: Shape<Wire<EffectView>> = z.strictObject({
  effect_type: z.string(),
  effect_reference: z.string(),
  amount: exactNumber.nullable(),
  currency: z.string().nullable(),
  payment_id: z.string().nullable(),
  data: z.unknown(),
  decision_id: z.string(),
  recorded_at: moment,
})

/** An entitlement of an order. */
export const entitlementView: Shape<Wire<EntitlementView>> = z.strictObject({
  subject: z.string(),
  entitlement: z.string(),
  quantity: exactNumber.nullable(),
  valid_until: moment.nullable(),
  active: z.boolean(),
  stated: z.boolean(),
  granted_by: z.string().nullable(),
  changed_by: z.string(),
})

/** An object of a provider that an order follows. */
export const lookView: Shape<LookView> = z.strictObject({
  source: z.string(),
  kind: z.string(),
  object_id: z.string(),
  sent: z.string(),
  answered: z.string(),
  applied: z.string(),
  decision_id: z.string().nullable(),
  answered_at: moment.nullable(),
  waiting: count,
  asked_at: moment.nullable(),
  next_request_at: moment.nullable(),
  attempts: count,
  last_error: z.string().nullable(),
})

/** An answer about it, without what was answered. */
export const answerView: Shape<AnswerView> = z.strictObject({
  evidence_id: z.string(),
  source: z.string(),
  kind: z.string(),
  object_id: z.string(),
  number: z.string(),
  is_found: z.boolean(),
  is_late: z.boolean(),
  requested_at: moment,
  fetched_at: moment,
  body_sha256: z.string(),
  body_bytes: count,
})
