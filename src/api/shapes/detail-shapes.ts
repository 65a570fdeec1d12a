/** The pages of one event, one operation and one finding, as they are answered. */
import { z } from 'zod'
import { moment } from '../schemas.ts'
import { findingView, repairView } from './finding-shapes.ts'
import { answerView, decisionView, effectView, eventView, lookView } from './ledger-shapes.ts'
import { causedEvent, operationRecord } from './outbox-shapes.ts'
import { actView, count, reference, timelineEntry } from './story-shapes.ts'

const eventHead = z.strictObject({
  order_id: z.string().nullable(),
  api_version: z.string().nullable(),
  body_sha256: z.string(),
  body_bytes: count,
  /** Whether its body is still kept: without one it cannot be replayed. */
  has_body: z.boolean(),
  /** Of a dead one: `redelivery` or `operator`. */
  rearmed_by: z.string().nullable(),
  rearmed_at: moment.nullable(),
  /** A worker has it in a batch at this moment. */
  in_work: z.boolean(),
})

/** Everything about an event, but its body. */
export const eventAnswer: z.ZodObject = z.strictObject({
  event: eventView,
  head: eventHead,
  /** What became of it, as a sentence. */
  verdict: z.string(),
  /** The requests that brought it, the first of them. */
  deliveries: z.array(
    z.strictObject({
      delivery_id: z.string(),
      received_at: moment,
      body_sha256: z.string(),
      same_body: z.boolean(),
    }),
  ),
  /** What wakes it. */
  waits: z.array(
    z.strictObject({
      kind: z.string(),
      name: z.string(),
      source: z.string().nullable(),
      about: reference.nullable(),
    }),
  ),
  decisions: z.array(decisionView),
  effects: z.array(effectView),
  operations: z.array(operationRecord),
  findings: z.array(findingView),
  looks: z.array(lookView),
  answers: z.array(answerView),
  /** The operation of ours that caused it at the provider. */
  caused_by: reference.nullable(),
  timeline: z.array(timelineEntry),
})

/** Everything about an operation, but what was sent and answered. */
export const operationAnswer: z.ZodObject = z.strictObject({
  operation: operationRecord,
  /** Events that it caused at the provider. */
  caused: z.array(causedEvent),
  findings: z.array(findingView),
  timeline: z.array(timelineEntry),
})

/** Everything about a finding. */
export const findingAnswer: z.ZodObject = z.strictObject({
  finding: findingView,
  /** The event that it is about. */
  event: reference.nullable(),
  repairs: z.array(repairView),
  acts: z.array(actView),
  /** What may be done in the state that it is in. */
  allowed: z.array(z.enum(['repair', 'assign', 'dismiss'])),
  timeline: z.array(timelineEntry),
})
