/** Workflows: what may follow what, which versions ran, how many orders stand where. */
import { z } from 'zod'
import { HookledgerError } from '../../core/errors.ts'
import { countOrders, readWorkflow } from '../../report/workflow-record.ts'
import { cached } from '../cached.ts'
import { configuredWorkflow } from '../configured-workflow.ts'
import { defineRoute, type ApiRoute } from '../route.ts'
import { idText } from '../schemas.ts'
import { workflowAnswer, workflowsAnswer } from '../shapes/workflow-shapes.ts'

/** All orders are counted for it. */
const presentCounts = cached(30_000, countOrders)

/** The routes. */
export const workflowRoutes: readonly ApiRoute[] = [
  defineRoute({
    method: 'GET',
    path: '/workflows',
    permission: 'read',
    summary: 'The workflows of the configuration, and those that only orders know.',
    shape: { answer: workflowsAnswer },
    handle: async ({ db, parts }) => {
      const counts = await presentCounts(db)
      const names = new Set([
        ...parts.config.registry.workflows.keys(),
        ...counts.map(({ workflow }) => workflow),
      ])
      return {
        workflows: [...names].sort().map((name) => {
          const workflow = configuredWorkflow(parts, name)
          const orders = counts.filter((each) => each.workflow === name)
          return {
            workflow: name,
            is_configured: workflow !== null,
            in_shadow: workflow?.shadowOf !== undefined,
            orders: String(orders.reduce((sum, each) => sum + BigInt(each.orders), 0n)),
          }
        }),
      }
    },
  }),
  defineRoute({
    method: 'GET',
    path: '/workflows/{name}',
    permission: 'read',
    summary: 'One workflow: its states with their orders, its transitions, the versions that ran.',
    shape: { params: z.strictObject({ name: idText }), answer: workflowAnswer },
    handle: async ({ db, parts }, { params: { name } }) => {
      const counts = await presentCounts(db)
      const record = await readWorkflow(db, name, configuredWorkflow(parts, name), counts)
      if (record !== null) return record
      throw new HookledgerError(
        'HKL_NOT_FOUND',
        'neither the configuration nor an order knows this workflow: see the list of them',
      )
    },
  }),
]
