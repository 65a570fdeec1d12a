/** What pages about one thing share: references to other things, the story, what people did. */
import { z } from 'zod'
import type { Reference } from '../../report/reference.ts'
import type { SubjectActView } from '../../report/acts-about-subjects.ts'
import type { ActView } from '../../report/record-views.ts'
import type { TimelineEntry } from '../../report/timeline-entry.ts'
import { exactNumber, moment } from '../schemas.ts'
import type { Shape, Wire } from '../wire.ts'

/** A whole number that stays far below 2^53. */
export const count: z.ZodNumber = z.number().int()

/** Another thing that has a page: an event's id is `source/event_id`. */
export const reference: Shape<Reference> = z.strictObject({
  kind: z.enum(['order', 'event', 'operation', 'finding', 'subject', 'workflow']),
  id: z.string(),
})

/** One line of a story. */
export const timelineEntry: Shape<Wire<TimelineEntry>> = z.strictObject({
  at: moment,
  what: z.enum([
    'arrived',
    'redelivered',
    'decided',
    'recorded',
    'called',
    'looked',
    'found',
    'repaired',
    'verified',
    'closed',
    'acted',
  ]),
  text: z.string(),
  details: z.array(z.string()),
  event_id: z.string().nullable(),
  decision_id: z.string().nullable(),
  /** What it is about, where that has a page of its own. */
  links: z.array(reference),
  /** Money that it moved. */
  figures: z.array(z.strictObject({ name: z.string(), amount: exactNumber, currency: z.string() })),
})

/** What an operator did. */
export const actView: Shape<ActView> = z.strictObject({
  act: z.string(),
  target: z.string(),
  reason: z.string(),
  actor: z.string(),
  acted_at: moment,
})

/** A link of a customer, or a merge of a subject. */
export const subjectActView: Shape<SubjectActView> = z.strictObject({
  act: z.string(),
  target: z.string(),
  reason: z.string(),
  actor: z.string(),
  acted_at: moment,
  subject: z.string(),
  source: z.string().nullable(),
})
