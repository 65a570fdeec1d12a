/** graphile-worker: a job an operation, which calls and writes how it ended. */
import { Logger, run } from 'graphile-worker'
import type { Contestant } from './contestant.ts'
import {
  call,
  connect,
  createResults,
  expectRecorded,
  operationOf,
  record,
  type BenchDestination,
  type QueuedOperation,
} from './dispatch-call.ts'

const quiet = new Logger(() => () => {})

/** graphile-worker with this many jobs at a time. */
export function dispatchGraphileWorker(
  destination: BenchDestination,
  concurrency: number,
): Contestant {
  return {
    name: 'graphile_worker',
    settings: `concurrency ${concurrency}`,
    prepare: async ({ pool, schema, events }) => {
      await createResults(pool, schema)
      const jobs = `${schema}_jobs`
      const client = connect(destination, concurrency)
      let left = events.length
      let done = (): void => {}
      const options = { pgPool: pool, schema: jobs, logger: quiet, noHandleSignals: true }
      const migrator = await run({ ...options, concurrency: 1, taskList: {} })
      await migrator.stop()
      await pool.query(
        `select ${jobs}.add_jobs(array(select row('call', b::json, null, null, null, null, null, null)::${jobs}.job_spec from unnest($1::text[]) as b))`,
        [events.map((event) => JSON.stringify(operationOf(event)))],
      )
      return {
        run: async () => {
          const finished = new Promise<void>((resolve) => (done = resolve))
          const runner = await run({
            ...options,
            concurrency,
            taskList: {
              call: async (payload) => {
                await record(pool, schema, [await call(client, payload as QueuedOperation)])
                if (--left === 0) done()
              },
            },
          })
          await finished
          await runner.stop()
        },
        finish: async () => {
          await client.close()
          await expectRecorded(pool, schema, destination, events.length)
        },
      }
    },
  }
}
