/** The pages of workflows, as they are answered. */
import { z } from 'zod'
import type { WorkflowRecord } from '../../report/workflow-record.ts'
import { exactNumber, moment } from '../schemas.ts'
import type { Shape } from '../wire.ts'
import { count } from './story-shapes.ts'

/** One workflow. */
export const workflowAnswer: Shape<WorkflowRecord> = z.strictObject({
  workflow: z.string(),
  is_configured: z.boolean(),
  in_shadow: z.boolean(),
  initial: z.string().nullable(),
  opens: z.string().nullable(),
  sources: z.array(z.string()),
  states: z.array(
    z.strictObject({
      state: z.string(),
      entitles: z.boolean(),
      is_initial: z.boolean(),
      is_declared: z.boolean(),
      orders: exactNumber,
    }),
  ),
  transitions: z.array(z.strictObject({ from: z.string(), to: z.string() })),
  histories: count.nullable(),
  versions: z.array(
    z.strictObject({
      version: z.string(),
      is_current: z.boolean(),
      event_types: z.array(z.string()),
      effect_types: z.array(z.string()),
      first_registered_at: moment,
      last_registered_at: moment,
      retired_at: moment.nullable(),
    }),
  ),
})

/** All workflows, in a line each. */
export const workflowsAnswer: z.ZodObject = z.strictObject({
  workflows: z.array(
    z.strictObject({
      workflow: z.string(),
      is_configured: z.boolean(),
      in_shadow: z.boolean(),
      orders: exactNumber,
    }),
  ),
})
