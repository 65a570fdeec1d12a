/** Every route of the operator API: the one table that the server, the OpenAPI document and the tests read. */
import type { ApiRoute } from './route.ts'
import { actRoutes } from './routes/acts.ts'
import { bulkRoutes } from './routes/bulk.ts'
import { grantRoutes } from './routes/grants.ts'
import { redecideRoutes } from './routes/redecide.ts'
import { eraseRoutes } from './routes/erase.ts'
import { listRoutes } from './routes/lists.ts'
import { eventRoutes } from './routes/event.ts'
import { findingRoutes } from './routes/finding.ts'
import { operationRoutes } from './routes/operation.ts'
import { orderRoutes } from './routes/order.ts'
import { overviewRoutes } from './routes/overview.ts'
import { promiseRoutes } from './routes/promises.ts'
import { repairRoutes } from './routes/repair.ts'
import { revealRoutes } from './routes/reveal.ts'
import { sessionRoutes } from './routes/session.ts'
import { subjectRoutes } from './routes/subject.ts'
import { workflowRoutes } from './routes/workflow.ts'

/** The routes of an API that is mounted below a prefix. */
export function routesBelow(prefix: string): readonly ApiRoute[] {
  const all: readonly ApiRoute[] = [
    ...sessionRoutes(() => all, prefix),
    ...overviewRoutes,
    ...orderRoutes,
    ...subjectRoutes,
    ...workflowRoutes,
    ...promiseRoutes,
    ...operationRoutes,
    ...findingRoutes,
    ...eventRoutes,
    ...listRoutes,
    ...actRoutes,
    ...grantRoutes,
    ...repairRoutes,
    ...redecideRoutes,
    ...bulkRoutes,
    ...revealRoutes,
    ...eraseRoutes,
  ]
  return all
}

/** The routes, mounted at the root. */
export const apiRoutes: readonly ApiRoute[] = routesBelow('')
