/** The first page: is everybody who paid served, and what happened lately. */
import { z } from 'zod'
import type { Database } from '../../postgres/executor.ts'
import { Activity, type ActivityWindow } from '../../report/activity.ts'
import { overview } from '../../report/overview.ts'
import { cached } from '../cached.ts'
import { defineRoute, type ApiRoute } from '../route.ts'
import { activityBucket, overviewAnswer } from '../shapes/overview-shapes.ts'

const activities = new WeakMap<Database, Activity>()

/** What was counted of a database stays counted for as long as the process holds it. */
function activityOf(db: Database): Activity {
  const known = activities.get(db) ?? new Activity(db)
  activities.set(db, known)
  return known
}

/** Everybody who looks at the same second sees the same. */
const presentOverview = cached(1000, (db) => overview(db, activityOf(db)))

const seriesOf = {
  '1h': cached(2000, (db) => activityOf(db).buckets('1h')),
  '24h': cached(10_000, (db) => activityOf(db).buckets('24h')),
  '7d': cached(30_000, (db) => activityOf(db).buckets('7d')),
} as const satisfies Readonly<Record<ActivityWindow, unknown>>

/** The routes. */
export const overviewRoutes: readonly ApiRoute[] = [
  defineRoute({
    method: 'GET',
    path: '/overview',
    permission: 'read',
    summary: 'Whether every paid customer is served, and if not, what to do first.',
    shape: { answer: overviewAnswer },
    handle: ({ db }) => presentOverview(db),
  }),
  defineRoute({
    method: 'GET',
    path: '/overview/series',
    permission: 'read',
    summary: 'What happened over an hour, a day or a week, bucket by bucket; none is left out.',
    shape: {
      query: z.strictObject({ window: z.enum(['1h', '24h', '7d']).default('1h') }),
      answer: z.strictObject({
        window: z.enum(['1h', '24h', '7d']),
        buckets: z.array(activityBucket),
      }),
    },
    handle: async ({ db }, { query: { window } }) => ({
      window,
      buckets: await seriesOf[window](db),
    }),
  }),
]
