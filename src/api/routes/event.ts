/** One event: what arrived and how often, what was decided, what it made, what it waits for. */
import { z } from 'zod'
import { eventRecord, verdictOf } from '../../report/event-record.ts'
import { timelineOf } from '../../report/timeline.ts'
import { requireEvent, unknownEvent } from '../event-named.ts'
import { defineRoute, type ApiRoute } from '../route.ts'
import { idText } from '../schemas.ts'
import { sequencedOf } from '../sequenced.ts'
import { eventAnswer } from '../shapes/detail-shapes.ts'
import { toldOperation } from '../told-operation.ts'
import { toWire } from '../wire.ts'

/** The routes. */
export const eventRoutes: readonly ApiRoute[] = [
  defineRoute({
    method: 'GET',
    path: '/events/{source}/{event_id}',
    permission: 'read',
    summary: 'Everything about an event, but its body.',
    shape: {
      params: z.strictObject({ source: idText, event_id: idText }),
      answer: eventAnswer,
    },
    handle: async ({ db, parts }, { params }) => {
      const { event_key: key } = await requireEvent(db, params)
      const found = await eventRecord(db, key, sequencedOf(parts))
      if (found === null) throw unknownEvent()
      const { record, operations, ...rest } = found
      const { decisions, findings, looks, answers } = record
      return toWire({
        ...rest,
        verdict: verdictOf(found),
        decisions,
        findings,
        looks,
        answers,
        operations: operations.map(toldOperation),
        timeline: timelineOf(record),
      })
    },
  }),
]
