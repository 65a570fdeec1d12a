/** One order: its story, why it is in its state, and its way through the workflow. */
import { z } from 'zod'
import { HookledgerError } from '../../core/errors.ts'
import { findOrder } from '../../report/find-order.ts'
import { orderGraph } from '../../report/order-path.ts'
import { readRecord } from '../../report/order-record.ts'
import { openThings, refusedChanges, stateReason } from '../../report/order-why.ts'
import { timelineOf } from '../../report/timeline.ts'
import { configuredWorkflow } from '../configured-workflow.ts'
import { defineRoute, type ApiRoute } from '../route.ts'
import { idText } from '../schemas.ts'
import { sequencedOf } from '../sequenced.ts'
import { orderAnswer, orderGraphAnswer } from '../shapes/order-shapes.ts'
import { toldOperation } from '../told-operation.ts'
import { toWire } from '../wire.ts'

const params = z.strictObject({ order_id: idText })

/** The routes. */
export const orderRoutes: readonly ApiRoute[] = [
  defineRoute({
    method: 'GET',
    path: '/orders/{order_id}',
    permission: 'read',
    summary: 'Everything about an order, as one story and as rows.',
    shape: { params, answer: orderAnswer },
    handle: async ({ db, parts }, { params: { order_id: id } }) => {
      const found = await findOrder(db, id)
      if (found === null) throw unknownOrder()
      const record = await readRecord(db, id, found.event_keys, [], sequencedOf(parts))
      const { operations, ...rest } = record
      return toWire({
        order_id: id,
        why: stateReason(record),
        refused: refusedChanges(record),
        open: openThings(record),
        timeline: timelineOf(record),
        ...rest,
        operations: operations.map(toldOperation),
      })
    },
  }),
  defineRoute({
    method: 'GET',
    path: '/orders/{order_id}/graph',
    permission: 'read',
    summary: 'The states and transitions of its workflow, with the way that the order took.',
    shape: { params, answer: orderGraphAnswer },
    handle: async ({ db, parts }, { params: { order_id: id } }) => {
      const graph = await orderGraph(db, id, (name) => configuredWorkflow(parts, name))
      if (graph === null) throw unknownOrder()
      return graph
    },
  }),
]

function unknownOrder(): HookledgerError {
  return new HookledgerError(
    'HKL_NOT_FOUND',
    'no order has this id, and no event named it: look for a name or a payment of it in the search',
  )
}
