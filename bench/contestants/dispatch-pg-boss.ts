/** pg-boss: jobs fetched and completed by batches; each calls, and how it ended is written. */
import PgBoss from 'pg-boss'
import type pg from 'pg'
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
  /**
   * When it is recorded how a call ended: `transaction`: result and end of the job in one transaction of each
   * call; `each`: the result, and then the end of the job; `each_then_batch`: results when each call has
   * ended, the ends of jobs with their batch; `batch`: all of it with the batch.
   */
  readonly records: 'transaction' | 'each' | 'each_then_batch' | 'batch'
}

const names: Readonly<Record<DispatchPgBossOptions['records'], string>> = {
  transaction: 'pg_boss',
  each: 'pg_boss',
  each_then_batch: 'pg_boss_ends_by_batch',
  batch: 'pg_boss_batched',
}

async function endInTransaction(
  boss: PgBoss,
  pool: pg.Pool,
  schema: string,
  jobId: string,
  result: CallResult,
): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query('begin')
    await record(client, schema, [result])
    await boss.complete('call', jobId, undefined as never, {
      db: { executeSql: async (text, values) => client.query(text, values) },
    })
    await client.query('commit')
  } finally {
    client.release()
  }
}

/** pg-boss with its own pool replaced by the round's. */
export function dispatchPgBoss(
  destination: BenchDestination,
  { loops, batch, width, records }: DispatchPgBossOptions,
): Contestant {
  return {
    name: names[records],
    settings: `${loops} loops, batches of ${batch}, ${width} jobs of each at a time; ${records}`,
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
          await inParallel(jobs, width, async ({ id, data }) => {
            const result = await call(client, data)
            if (records === 'batch') results.push(result)
            else if (records === 'transaction')
              await endInTransaction(boss, pool, schema, id, result)
            else await record(pool, schema, [result])
            if (records === 'each') await boss.complete('call', id)
          })
          if (records === 'batch') await record(pool, schema, results)
          if (records === 'batch' || records === 'each_then_batch') {
            const ids = jobs.map((job) => job.id)
            await boss.complete('call', ids)
          }
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
