/** The page of a subject, as it is answered. */
import { z } from 'zod'
import type { AccessCause, SubjectRecord } from '../../report/subject-record.ts'
import { exactNumber, moment } from '../schemas.ts'
import type { Shape } from '../wire.ts'
import { reference, subjectActView } from './story-shapes.ts'

const cause: Shape<AccessCause> = z.strictObject({
  decision_id: z.string(),
  kind: z.string(),
  reason: z.string(),
  decided_at: moment,
  event: reference.nullable(),
})

/** What a subject may use, and because of what. */
export const subjectAnswer: Shape<SubjectRecord> = z.strictObject({
  subject: z.string(),
  /** What it is now: itself, or what it was merged into. */
  present: z.string(),
  merged: z.array(z.string()),
  may_use: z.array(
    z.strictObject({
      entitlement: z.string(),
      quantity: exactNumber,
      valid_until: moment.nullable(),
      combine: z.string(),
    }),
  ),
  /** What each order entitles it to; what counts now comes first. */
  grounds: z.array(
    z.strictObject({
      subject: z.string(),
      entitlement: z.string(),
      order_id: z.string(),
      workflow: z.string(),
      order_state: z.string(),
      entitles: z.boolean(),
      in_force: z.boolean(),
      quantity: exactNumber.nullable(),
      valid_until: moment.nullable(),
      granted: cause.nullable(),
      changed: cause.nullable(),
    }),
  ),
  orders: z.array(
    z.strictObject({
      order_id: z.string(),
      workflow: z.string(),
      state: z.string(),
      entitles: z.boolean(),
      opened_at: moment,
      updated_at: moment,
    }),
  ),
  findings: z.array(
    z.strictObject({
      finding_id: z.string(),
      kind: z.string(),
      state: z.string(),
      owner: z.string(),
      due_at: moment,
      order_id: z.string(),
    }),
  ),
  customers: z.array(
    z.strictObject({
      source: z.string(),
      customer_id: z.string(),
      linked_at: moment.nullable(),
    }),
  ),
  acts: z.array(subjectActView),
  is_cut: z.boolean(),
})
