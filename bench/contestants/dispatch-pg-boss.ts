/** pg-boss: jobs fetched and completed by batches; each calls, and how it ended is written. */
import PgBoss from 'pg-boss'
import { inParallel, type Contestant } from './contestant.ts'
import {
  call,
  connect,
  createResults,
  expectRecorded,
  operationOf,
  record,
  type BenchDestination,
  type CallResult,
  type QueuedOperation,
} from './dispatch-call.ts'

/** How pg-boss runs. */
export interface DispatchPgBossOptions {
  /** Loops that fetch. */
  readonly loops: number
  /** Jobs fetched at once. */
  readonly batch: number
  /** Jobs of a batch that run at a time. */
  readonly width: number
  /** Whether results are written when each call has ended, or those of a batch in one statement. */
  readonly records: 'each' | 'batch'
}

/** pg-boss with its own pool replaced by the round's. */
export function dispatchPgBoss(
  destination: BenchDestination,
  { loops, batch, width, records }: DispatchPgBossOptions,
): Contestant {
  return {
    name: records === 'each' ? 'pg_boss' : 'pg_boss_batched',
    settings: `${loops} loops, batches of ${batch}, ${width} jobs of each at a time`,
    prepare: async ({ pool, schema, events }) => {
      await createResults(pool, schema)
      const client = connect(destination, loops * width)
      const boss = new PgBoss({
        db: { executeSql: async (text, values) => pool.query(text, values) },
        schema: `${schema}_jobs`,
        supervise: false,
        schedule: false,
      })
      boss.on('error', () => {})
      await boss.start()
      await boss.createQueue('call')
      for (let from = 0; from < events.length; from += 1000) {
        const jobs = events.slice(from, from + 1000)
        await boss.insert(jobs.map((event) => ({ name: 'call', data: operationOf(event) })))
      }
      const loop = async (): Promise<void> => {
        for (;;) {
          const jobs = await boss.fetch<QueuedOperation>('call', { batchSize: batch })
          if (jobs.length === 0) return
          const results: CallResult[] = []
          await inParallel(jobs, width, async ({ data }) => {
            const result = await call(client, data)
            if (records === 'each') await record(pool, schema, [result])
            else results.push(result)
          })
          if (records === 'batch') await record(pool, schema, results)
          await boss.complete(
            'call',
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
          await client.close()
          await expectRecorded(pool, schema, destination, events.length)
        },
      }
    },
  }
}
