/** The order page, as it is answered. */
import { z } from 'zod'
import type { OrderGraph } from '../../report/order-path.ts'
import type { OpenThing, RefusedChange, StateReason } from '../../report/order-why.ts'
import { moment } from '../schemas.ts'
import type { Shape } from '../wire.ts'
import { findingView, repairView, runView } from './finding-shapes.ts'
import {
  answerView,
  decisionView,
  effectView,
  entitlementView,
  eventView,
  lookView,
  orderView,
  paymentView,
} from './ledger-shapes.ts'
import { operationRecord } from './outbox-shapes.ts'
import { actView, count, reference, timelineEntry } from './story-shapes.ts'

const stateReason: Shape<StateReason> = z.strictObject({
  state: z.string(),
  since: moment.nullable(),
  text: z.string(),
  decision_id: z.string().nullable(),
  event: reference.nullable(),
})

/** A change that was not made, and why. */
export const refusedChange: Shape<RefusedChange> = z.strictObject({
  at: moment,
  decision_id: z.string(),
  event: reference.nullable(),
  event_type: z.string().nullable(),
  verdict: z.enum(['refused', 'waits']),
  from_state: z.string().nullable(),
  to_state: z.string().nullable(),
  reason: z.string(),
  finding_ids: z.array(z.string()),
})

/** Something unfinished, and what happens next. */
export const openThing: Shape<OpenThing> = z.strictObject({
  about: reference.nullable(),
  text: z.string(),
  at: moment.nullable(),
  asks: z.boolean(),
})

/** Everything about an order. */
export const orderAnswer: z.ZodObject = z.strictObject({
  order_id: z.string(),
  /** Null for one that was never opened: what named it was refused. */
  order: orderView.nullable(),
  /** Why it is in its state. */
  why: stateReason.nullable(),
  /** What was refused, or waits, and why. */
  refused: z.array(refusedChange),
  /** What is not finished, what asks for a person first. */
  open: z.array(openThing),
  timeline: z.array(timelineEntry),
  events: z.array(eventView),
  decisions: z.array(decisionView),
  payments: z.array(paymentView),
  effects: z.array(effectView),
  entitlements: z.array(entitlementView),
  operations: z.array(operationRecord),
  findings: z.array(findingView),
  repairs: z.array(repairView),
  acts: z.array(actView),
  looks: z.array(lookView),
  answers: z.array(answerView),
  runs: z.array(runView),
  /** Older decisions, of which only the newest are told. */
  omitted_decisions: count,
})

/** The way through the workflow. */
export const orderGraphAnswer: Shape<OrderGraph> = z.strictObject({
  workflow: z.string(),
  is_configured: z.boolean(),
  initial: z.string().nullable(),
  current: z.string(),
  states: z.array(
    z.strictObject({
      state: z.string(),
      entitles: z.boolean(),
      is_initial: z.boolean(),
      is_current: z.boolean(),
      is_declared: z.boolean(),
      visits: count,
      stays: count,
    }),
  ),
  transitions: z.array(
    z.strictObject({
      from: z.string(),
      to: z.string(),
      is_declared: z.boolean(),
      taken: count,
      last_at: moment.nullable(),
      refused: count,
    }),
  ),
  path: z.array(
    z.strictObject({
      at: moment,
      from: z.string().nullable(),
      to: z.string(),
      decision_id: z.string(),
      kind: z.string(),
      event: reference.nullable(),
    }),
  ),
  omitted_steps: count,
})
