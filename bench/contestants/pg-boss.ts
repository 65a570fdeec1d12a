/** pg-boss: jobs fetched and completed by batches, each in a transaction of its own. */
import PgBoss from 'pg-boss'
import type pg from 'pg'
import { countFulfilled, fulfillOne, prepareBusiness, type Session } from './business-writes.ts'
import { expectAll, inParallel, type Contestant } from './contestant.ts'

/** How pg-boss runs, and what else its jobs write. */
export interface PgBossOptions {
  readonly name?: string
  /** Jobs fetched at once. */
  readonly batch: number
  /** Jobs of a batch that run at a time. */
  readonly width: number
  /** Loops that fetch. */
  readonly loops: number
  readonly setUp?: (pool: pg.Pool, schema: string) => Promise<void>
  /** What a job does, in a transaction of its own. Default: fulfill the event. */
  readonly job?: (pool: pg.Pool, schema: string) => (event: Session) => Promise<void>
  /** @throws Error unless everything was written. */
  readonly check?: (pool: pg.Pool, schema: string, expected: number) => Promise<void>
}

/** pg-boss with its own pool replaced by the round's. */
export function pgBoss(options: PgBossOptions): Contestant {
  const { batch, width, loops } = options
  return {
    name: options.name ?? 'pg_boss',
    settings: `${loops} loops, batches of ${batch}, ${width} jobs of each at a time`,
    prepare: async ({ pool, schema, events }) => {
      await prepareBusiness(pool, schema, events)
      await options.setUp?.(pool, schema)
      const boss = new PgBoss({
        db: { executeSql: async (text, values) => pool.query(text, values) },
        schema: `${schema}_jobs`,
        supervise: false,
        schedule: false,
      })
      boss.on('error', () => {})
      await boss.start()
      await boss.createQueue('fulfill')
      for (let from = 0; from < events.length; from += 1000) {
        await boss.insert(
          events.slice(from, from + 1000).map((event) => ({
            name: 'fulfill',
            data: JSON.parse(event.body.toString()) as object,
          })),
        )
      }
      const fulfill = (event: Session): Promise<void> => fulfillOne(pool, schema, event)
      const job = options.job?.(pool, schema) ?? fulfill
      const loop = async (): Promise<void> => {
        for (;;) {
          const jobs = await boss.fetch<Session>('fulfill', { batchSize: batch })
          if (jobs.length === 0) return
          await inParallel(jobs, width, ({ data }) => job(data))
          await boss.complete(
            'fulfill',
            jobs.map((job) => job.id),
          )
        }
      }
      return {
        run: async () => {
          await Promise.all(Array.from({ length: loops }, loop))
        },
        finish: async () => {
          await boss.stop({ graceful: false, wait: true })
          if (options.check !== undefined) await options.check(pool, schema, events.length)
          else expectAll(await countFulfilled(pool, schema), events.length)
        },
      }
    },
  }
}
