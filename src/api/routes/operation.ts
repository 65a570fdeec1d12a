/** One operation: what it promises, what was tried, what happens next, what it caused. */
import { z } from 'zod'
import { HookledgerError } from '../../core/errors.ts'
import { causedBy } from '../../report/operation-consequences.ts'
import { readRecord } from '../../report/order-record.ts'
import { timelineOf } from '../../report/timeline.ts'
import { defineRoute, type ApiRoute } from '../route.ts'
import { sequencedOf } from '../sequenced.ts'
import { operationAnswer } from '../shapes/detail-shapes.ts'
import { toldOperation } from '../told-operation.ts'
import { toWire } from '../wire.ts'

/** The routes. */
export const operationRoutes: readonly ApiRoute[] = [
  defineRoute({
    method: 'GET',
    path: '/operations/{operation_id}',
    permission: 'read',
    summary: 'Everything about an operation, but what was sent and answered.',
    shape: { params: z.strictObject({ operation_id: z.uuid() }), answer: operationAnswer },
    handle: async ({ db, parts }, { params: { operation_id: id } }) => {
      const record = await readRecord(db, null, [], [id], sequencedOf(parts))
      const operation = record.operations.find((each) => each.operation_id === id.toLowerCase())
      if (operation === undefined)
        throw new HookledgerError(
          'HKL_OUTBOX_OPERATION_UNKNOWN',
          'there is no operation with this id: look for it in the list',
        )
      return toWire({
        operation: toldOperation(operation),
        caused: await causedBy(db, operation),
        findings: record.findings,
        timeline: timelineOf(record),
      })
    },
  }),
]
